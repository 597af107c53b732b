//! What the engine is told.

use crate::check::Expect;
use crate::target::Target;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use weir_reactor::cores::Cores;
use weir_tls::{Group, Suite, Version};

/// What the engine is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to ask for.
    pub target: Target,
    /// Connections in all, at least one per worker.
    pub connections: u32,
    /// Length of the measured window.
    pub duration: Duration,
    /// What runs before it and is not measured.
    pub warmup: Duration,
    /// Threads.
    pub workers: usize,
    /// The cores that the workers are put on, one after the other.
    pub cores: Option<Cores>,
    /// Arrivals per second (open loop); `None` has each connection send as soon as it has its answer (closed loop).
    pub rate: Option<f64>,
    /// Method; `None` is GET, or POST with a body.
    pub method: Option<String>,
    /// Further fields. A `Host` among them replaces the URL's.
    pub fields: Vec<(String, String)>,
    /// The request's body.
    pub body: Option<Vec<u8>>,
    /// Requests on one connection, then a new one; 1 is a new connection for each request. `None` is no limit.
    pub per_connection: Option<u64>,
    /// What is said and believed in TLS.
    pub tls: TlsOptions,
    /// Processes whose CPU is accounted, each with its descendants.
    pub pids: Vec<u32>,
    /// What every answer must be.
    pub expect: Expect,
    /// How long a request, or the making of a connection, may take.
    pub timeout: Duration,
}

/// What is said and believed in TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// The only version offered; `None` is both.
    pub version: Option<Version>,
    /// The only suite offered; `None` is all.
    pub suite: Option<Suite>,
    /// The only group offered; `None` is the default list.
    pub group: Option<Group>,
    /// The authorities to believe, PEM; `None` is the system's.
    pub ca: Option<PathBuf>,
    /// Believe anyone.
    pub insecure: bool,
    /// What to present: chain and key, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Offer to resume sessions.
    pub resume: bool,
}

impl Options {
    /// The defaults for a target: 64 connections, a window of 10 s after a warm-up of 1 s, 1 worker, closed loop.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            connections: 64,
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(1),
            workers: 1,
            cores: None,
            rate: None,
            method: None,
            fields: Vec::new(),
            body: None,
            per_connection: None,
            tls: TlsOptions::default(),
            pids: Vec::new(),
            expect: Expect::default(),
            timeout: Duration::from_secs(10),
        }
    }

    /// Checks what the types allow and the engine cannot do.
    ///
    /// # Errors
    /// The first flag that cannot be followed.
    pub fn check(&self) -> Result<(), Usage> {
        let range = |flag, value: &dyn fmt::Display, ok: bool, allowed| match ok {
            true => Ok(()),
            false => Err(Usage::new(flag, &value.to_string(), allowed)),
        };
        let workers = self.workers;
        range("-t", &workers, (1..=1024).contains(&workers), "1 to 1024")?;
        let connections = self.connections;
        range("-c", &connections, (1..=1_000_000).contains(&connections), "1 to 1000000")?;
        range(
            "-c",
            &connections,
            connections as usize >= workers,
            "at least as many connections as workers (-t)",
        )?;
        let seconds = |time: Duration| time.as_secs_f64();
        let (duration, warmup, timeout) =
            (seconds(self.duration), seconds(self.warmup), seconds(self.timeout));
        range("-d", &duration, (0.001..=86_400.0).contains(&duration), "1ms to 24h")?;
        range("--warmup", &warmup, warmup <= 3600.0, "0s to 1h")?;
        range("--timeout", &timeout, (0.001..=3600.0).contains(&timeout), "1ms to 1h")?;
        if let Some(rate) = self.rate {
            range("--rate", &rate, (0.001..=1e7).contains(&rate), "0.001 to 10000000 requests per second")?;
        }
        if let Some(number) = self.per_connection {
            range("--requests-per-connection", &number, number >= 1, "at least 1")?;
        }
        if let Some(status) = self.expect.status {
            range("--expect-status", &status, (200..=999).contains(&status), "a final status, 200 to 999")?;
        }
        Ok(())
    }
}

/// A flag that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flag}: `{value}` cannot be used; allowed: {allowed}")]
pub struct Usage {
    flag: &'static str,
    value: String,
    allowed: String,
}

impl Usage {
    pub(crate) fn new(flag: &'static str, value: &str, allowed: &str) -> Self {
        Self { flag, value: value.to_string(), allowed: allowed.to_string() }
    }
}

/// Reads a time as people write it: `500ms`, `5s`, `1.5s`, `2m`, `1h`.
///
/// # Errors
/// When the number or the unit is missing.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and a unit: us, ms, s, m or h, such as 500ms or 2m".to_string();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

/// Reads a size as people write it: `1000`, `64KiB`, `1MB`. `None` when it is no size.
pub fn size(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_as_people_write_them() {
        for (text, ms) in [("500ms", 500), ("5s", 5000), ("1.5s", 1500), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "5", "s", "-1s", "5 s", "1d", "1e400s", "nans", "infs"] {
            assert!(time(text).unwrap_err().contains("500ms"), "{text}");
        }
        let sizes = [("0", 0), ("1000", 1000), ("64KiB", 65_536), ("1MB", 1_000_000), ("2GiB", 2 << 30)];
        for (text, bytes) in sizes {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "x", "1k", "MB", "-1", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn options_that_cannot_be_followed_name_flag_value_and_what_is_allowed() {
        type Change = fn(&mut Options);
        let table: [(Change, &str); 8] = [
            (|o| o.connections = 0, "-c: `0` cannot be used; allowed: 1 to 1000000"),
            (
                |o| o.workers = 65,
                "-c: `64` cannot be used; allowed: at least as many connections as workers (-t)",
            ),
            (|o| o.workers = 0, "-t: `0` cannot be used; allowed: 1 to 1024"),
            (|o| o.duration = Duration::ZERO, "-d: `0` cannot be used; allowed: 1ms to 24h"),
            (|o| o.timeout = Duration::ZERO, "--timeout: `0` cannot be used; allowed: 1ms to 1h"),
            (
                |o| o.rate = Some(0.0),
                "--rate: `0` cannot be used; allowed: 0.001 to 10000000 requests per second",
            ),
            (
                |o| o.per_connection = Some(0),
                "--requests-per-connection: `0` cannot be used; allowed: at least 1",
            ),
            (
                |o| o.expect.status = Some(100),
                "--expect-status: `100` cannot be used; allowed: a final status, 200 to 999",
            ),
        ];
        for (change, message) in table {
            let mut options = Options::new("http://a/".parse().unwrap());
            assert_eq!(options.check(), Ok(()));
            change(&mut options);
            assert_eq!(options.check().unwrap_err().to_string(), message);
        }
    }
}
