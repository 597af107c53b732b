//! What the engine is told.

mod tls;

pub use tls::TlsOptions;

use crate::check::Expect;
use crate::result::Role;
use crate::target::{Resolve, Target, host_port};
use crate::usage::{Usage, time};
use clap::{Args, ValueEnum};
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use weir_reactor::cores::Cores;
use weir_transport::Endpoint;

/// What the engine is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Scheme, host and port of the server; it is also what `Host` and SNI say, unless they are told otherwise.
    pub endpoint: Endpoint,
    /// Where connections really go.
    pub route: Route,
    /// What is asked for.
    pub requests: Vec<RequestOptions>,
    /// Connections in all, at least one per worker.
    pub connections: u32,
    /// What is not measured before the window, and how long it is.
    pub phases: Phases,
    /// Threads.
    pub workers: usize,
    /// The cores that the workers are put on, one after the other.
    pub cores: Option<Cores>,
    /// When requests are sent.
    pub schedule: Schedule,
    /// How connections are made, used and ended.
    pub policy: Policy,
    /// What is said and believed in TLS.
    pub tls: TlsOptions,
    /// Servers whose CPU is accounted.
    pub servers: Vec<Server>,
    /// How long a request, or the making of a connection, may take.
    pub timeout: Duration,
    /// What all random choices are drawn from: arrivals, requests on a connection.
    pub seed: u64,
    /// The share of the requests that may go without an answer before the run is invalid, 0 to 100 percent. A wrong answer
    /// is never allowed.
    pub error_budget: f64,
    /// Whether the warm-up begins when standard input says, see [`crate::OPEN`].
    pub rendezvous: bool,
    /// The calibrated ceilings to compare with; `None` where there are none.
    pub ceilings: Option<PathBuf>,
}

/// Where connections go instead of the URL's host and port, and where they come from.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = CONNECTIONS)]
pub struct Route {
    /// Local addresses, used in turn; empty lets the system choose.
    #[arg(skip)]
    pub sources: Vec<IpAddr>,
    /// The address of a host and port, instead of the resolver's; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    pub resolve: Vec<Resolve>,
    /// Connect to another host and port than the URL's
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    pub connect_to: Option<(String, u16)>,
    /// Connect to a socket in the file system
    #[arg(long = "unix-socket", value_name = "FILE", conflicts_with_all = ["source", "resolve", "connect_to"])]
    pub unix: Option<PathBuf>,
}

/// One kind of request in the mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestOptions {
    /// Path and query; at least `/`.
    pub path: String,
    /// How often it comes compared with the others; at least 1.
    pub weight: u32,
    /// Method; `None` is GET, or POST with a body.
    pub method: Option<String>,
    /// Further fields. A `Host` among them replaces the URL's.
    pub fields: Vec<(String, String)>,
    /// The request's body.
    pub body: Option<Vec<u8>>,
    /// The bytes of a chunk, where the body is framed in chunks; `None` frames it by its length.
    pub chunk: Option<u64>,
    /// What its answers must be.
    pub expect: Expect,
}

/// The phases around the window.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
#[command(next_help_heading = SCHEDULE)]
pub struct Phases {
    // Caches, pools and just-in-time compilers fill.
    /// What runs before the window and is not measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub warmup: Duration,
    /// Between warm-up and window, at the window's rate: what the warm-up left waiting is worked off
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub settle: Duration,
    /// Length of the measured window.
    #[arg(skip)]
    pub window: Duration,
}

/// When requests are sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Each connection sends its next request when it has its answer and has thought.
    Closed {
        /// The pause between an answer and the next request.
        think: Duration,
    },
    /// Arrivals are planned before anything is sent.
    Open {
        /// How the gaps between arrivals are distributed.
        arrivals: ArrivalKind,
        /// Rates, one after the other, over the window; at least one. The last one's time may be left to the window.
        steps: Vec<RateStep>,
    },
}

/// How the gaps between arrivals are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ArrivalKind {
    /// All alike.
    #[default]
    #[value(help = None)]
    Constant,
    /// Exponentially, as if many users knew nothing of each other.
    #[value(help = None)]
    Poisson,
}

/// A rate, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStep {
    /// Arrivals per second in all.
    pub rate: f64,
    /// How long.
    pub time: Duration,
}

/// How connections are made, used and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Policy {
    /// What one connection is used for.
    pub per_connection: PerConnection,
    /// Share of new TLS connections that resume a session, 0 to 100 percent; the others make full handshakes.
    pub resume: f64,
    /// How the engine ends a connection.
    pub close: Close,
}

/// What one connection is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PerConnection {
    /// All requests.
    #[default]
    Unlimited,
    /// A number of requests from this range, drawn anew for each connection, then a new one.
    Requests {
        /// At least 1.
        least: u64,
        /// At least `least`.
        most: u64,
    },
    /// No request: the handshake is what is measured.
    Handshake,
}

/// How the engine ends a connection that it needs no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Close {
    /// close_notify where there is TLS, then FIN (RFC 8446 section 6.1).
    #[default]
    #[value(help = None)]
    Graceful,
    /// FIN alone.
    #[value(help = None)]
    Fin,
    /// RST: neither side keeps the port in TIME_WAIT, and what is under way is lost.
    #[value(name = "rst", help = None)]
    Reset,
}

/// A server whose CPU is accounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// What it is in the system under test.
    pub role: Role,
    /// Where its CPU time can be read.
    pub meter: Meter,
}

/// Where a server's CPU time can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meter {
    /// A process of this machine, with its descendants.
    Process(u32),
    /// A cgroup (v2) of this machine: its directory.
    Cgroup(PathBuf),
    /// What a shell command prints: CPU seconds so far, or a cgroup's `cpu.stat`. For other machines, over ssh.
    Command(String),
}

/// The headings of `weir load --help` under which this file and the command line put flags.
pub(crate) const SCHEDULE: &str = "Schedule";
pub(crate) const CONNECTIONS: &str = "Connections";

/// The bytes of a chunk: a body is at most as large.
pub(crate) const CHUNKS: RangeInclusive<u64> = 1..=1 << 30;
pub(crate) const CHUNKS_ALLOWED: &str = "1 to 1GiB, in bytes or such as 4KiB";

/// The bytes of a chunk where none are told: programs that pass a stream on read 4 to 64 KiB at once, and a TLS record
/// holds this much (RFC 8446 section 5.1).
pub(crate) const DEFAULT_CHUNK: u64 = 16 * 1024;

/// The application protocol of the engine, by its name in ALPN (RFC 7301 section 6).
const SPOKEN: &str = "http/1.1";

impl Options {
    /// The defaults for a URL: GET, 64 connections that are kept, a window of 10 s after a warm-up of 1 s, 1 worker,
    /// closed loop.
    pub fn new(target: Target) -> Self {
        let request = RequestOptions::new(target.path);
        Self {
            endpoint: target.endpoint,
            route: Route::default(),
            requests: vec![request],
            connections: 64,
            phases: Phases {
                warmup: Duration::from_secs(1),
                settle: Duration::ZERO,
                window: Duration::from_secs(10),
            },
            workers: 1,
            cores: None,
            schedule: Schedule::Closed { think: Duration::ZERO },
            policy: Policy::default(),
            tls: TlsOptions::default(),
            servers: Vec::new(),
            timeout: Duration::from_secs(10),
            seed: 1,
            error_budget: 0.0,
            rendezvous: false,
            ceilings: None,
        }
    }

    /// The first URL.
    pub fn url(&self) -> String {
        let path = self.requests.first().map_or("/", |request| &request.path);
        format!("{}{path}", self.endpoint)
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
        let Phases { warmup, settle, window } = self.phases;
        let (window, warmup, settle) = (seconds(window), seconds(warmup), seconds(settle));
        range("-d", &window, (0.001..=86_400.0).contains(&window), "1ms to 24h")?;
        range("--warmup", &warmup, warmup <= 3600.0, "0s to 1h")?;
        range("--settle", &settle, settle <= 3600.0, "0s to 1h")?;
        let timeout = seconds(self.timeout);
        range("--timeout", &timeout, (0.001..=3600.0).contains(&timeout), "1ms to 1h")?;
        match &self.schedule {
            Schedule::Closed { think } => {
                let think = seconds(*think);
                range("--think", &think, think <= 3600.0, "0s to 1h")?;
            }
            Schedule::Open { steps, .. } => {
                let none = "at least one rate";
                range("--rate", &"", !steps.is_empty(), none)?;
                for RateStep { rate, time } in steps {
                    let allowed = "0.001 to 10000000 requests per second";
                    range("--rate", rate, (0.001..=1e7).contains(rate), allowed)?;
                    range("--rate", &seconds(*time), !time.is_zero(), "steps that are longer than nothing")?;
                }
            }
        }
        if let PerConnection::Requests { least, most } = self.policy.per_connection {
            let text = if least == most { least.to_string() } else { format!("{least}-{most}") };
            let allowed = "a number from 1, or a range such as 5-10";
            range("--requests-per-connection", &text, least >= 1 && least <= most, allowed)?;
        }
        let resume = self.policy.resume;
        range("--resume", &resume, (0.0..=100.0).contains(&resume), "0 to 100 percent")?;
        if !self.endpoint.tls {
            let cleartext = "an https URL";
            range("--resume", &resume, resume == 0.0, cleartext)?;
            let handshakes = self.policy.per_connection == PerConnection::Handshake;
            range("--handshake-only", &self.url(), !handshakes, cleartext)?;
        }
        if resume > 0.0 {
            let allowed = "with --new-connection, --requests-per-connection or --handshake-only: \
                           connections that are kept make no handshakes";
            range("--resume", &resume, !self.policy.per_connection.keeps(), allowed)?;
        }
        for protocol in &self.tls.alpn {
            let allowed = "http/1.1, the only protocol that the engine speaks (HTTP/1.1)";
            range("--alpn", protocol, protocol == SPOKEN, allowed)?;
        }
        let budget = self.error_budget;
        range("--error-budget", &budget, (0.0..=100.0).contains(&budget), "0 to 100 percent")?;
        for request in &self.requests {
            if let Some(chunk) = request.chunk {
                range("--chunked", &chunk, CHUNKS.contains(&chunk), CHUNKS_ALLOWED)?;
                let allowed = "beside --data: without a body there is nothing to frame";
                range("--chunked", &chunk, request.body.is_some(), allowed)?;
            }
            if let Some(status) = request.expect.status {
                let allowed = "a final status, 200 to 999";
                range("--expect-status", &status, (200..=999).contains(&status), allowed)?;
            }
        }
        Ok(())
    }
}

impl RequestOptions {
    /// GET, no body, any answer of 200 to 299.
    pub fn new(path: String) -> Self {
        Self {
            path,
            weight: 1,
            method: None,
            fields: Vec::new(),
            body: None,
            chunk: None,
            expect: Expect::default(),
        }
    }
}

impl PerConnection {
    /// Whether connections are kept for all requests.
    pub fn keeps(self) -> bool {
        self == Self::Unlimited
    }

    /// Whether no connection takes a second request.
    pub fn is_single(self) -> bool {
        matches!(self, Self::Requests { most: 1, .. } | Self::Handshake)
    }
}

impl Schedule {
    /// An open loop at one constant rate.
    pub fn constant(rate: f64, time: Duration) -> Self {
        Self::Open { arrivals: ArrivalKind::Constant, steps: vec![RateStep { rate, time }] }
    }

    /// The first rate; `None` in a closed loop.
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { steps, .. } => steps.first().map(|step| step.rate),
        }
    }
}

#[cfg(test)]
mod tests;
