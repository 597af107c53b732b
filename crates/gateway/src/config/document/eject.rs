//! The failures that eject a server, and the ejection's periods.

use super::error_statuses::{ErrorStatuses, STATUSES, statuses};
use super::value_schemas;
use super::values::{duration, texts};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// The failures after which a server gets no requests for a while. Each worker counts failures separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Eject {
    /// The failures that count: kinds by name, and statuses. Without statuses, as by default in nginx and
    /// HAProxy, [a server that responds with errors](services.md#servers-that-respond-with-errors) keeps getting
    /// requests. `"connect"`: no connection or handshake. `"timeout"`: no response in time, or a response that stalls.
    /// `"invalid"`: a truncated response, or one that is not HTTP.
    #[schemars(extend("default" = EjectOn::default().written()))]
    pub on: EjectOn,
    /// Consecutive failures that eject a server; 0: no such limit. During its slow return, one failure ejects it again.
    pub failures: u32,
    /// The percentage of failures within `window` that ejects a server. It catches a server that fails half of its
    /// requests, but never five in a row. Default: none.
    #[schemars(transform = value_schemas::within(Eject::PERCENT))]
    pub percent: Option<u32>,
    /// The period over which `percent` counts; it starts with a failure.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time", extend("default" = Eject::default().window()))]
    pub window: Option<Duration>,
    /// Minimum number of requests within `window` for `percent` to apply.
    #[schemars(transform = value_schemas::at_least(1), extend("default" = Eject::default().min_requests()))]
    pub min_requests: Option<u32>,
    /// Duration of an ejection; it doubles with each consecutive ejection, up to 5 minutes.
    #[serde(deserialize_with = "duration", rename = "for")]
    #[schemars(schema_with = "value_schemas::time")]
    pub period: Duration,
    /// Time over which a returning server's share of the requests grows from a tenth to the whole: after an ejection,
    /// failed health checks, a drain or a weight of 0.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub slow_return: Duration,
}

impl Eject {
    pub(crate) const PERCENT: RangeInclusive<u64> = 1..=100;

    pub(crate) fn window(&self) -> Duration {
        self.window.unwrap_or(Duration::from_secs(10))
    }

    pub(crate) fn min_requests(&self) -> u32 {
        self.min_requests.unwrap_or(20)
    }
}

impl Default for Eject {
    fn default() -> Self {
        // Both periods are 10 s, since a restart of a server takes seconds.
        Self {
            on: EjectOn::default(),
            failures: 5,
            percent: None,
            window: None,
            min_requests: None,
            period: Duration::from_secs(10),
            slow_return: Duration::from_secs(10),
        }
    }
}

/// A kind of failure of a server; [`EjectOn`] selects those that count towards its ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection or the TLS handshake failed, or the server did not agree to HTTP/2.
    Connect,
    /// The server did not respond in time, or stalled.
    Timeout,
    /// The server closed or reset the connection before the end of its response, or sent an invalid one.
    Invalid,
    /// The server responded with this status.
    Status(u16),
}

/// Failures for which a server may be ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectOn {
    /// The connection or the TLS handshake failed.
    pub connect: bool,
    /// The response was late, or stalled.
    pub timeout: bool,
    /// The response is cut off or invalid.
    pub invalid: bool,
    /// The response has one of these statuses.
    pub statuses: ErrorStatuses,
}

impl EjectOn {
    /// The names of failures other than statuses.
    pub(super) const NAMES: [&str; 3] = ["connect", "timeout", "invalid"];

    /// The failures as an operator writes them in the configuration file.
    pub(super) fn written(&self) -> Vec<String> {
        self.to_string().split_whitespace().map(str::to_owned).collect()
    }

    pub(crate) fn has(&self, failure: Failure) -> bool {
        match failure {
            Failure::Connect => self.connect,
            Failure::Timeout => self.timeout,
            Failure::Invalid => self.invalid,
            Failure::Status(status) => self.statuses.contains(status),
        }
    }
}

impl Default for EjectOn {
    fn default() -> Self {
        Self { connect: true, timeout: true, invalid: true, statuses: ErrorStatuses::default() }
    }
}

impl fmt::Display for EjectOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statuses = self.statuses.to_string();
        let named = [("connect", self.connect), ("timeout", self.timeout), ("invalid", self.invalid)];
        let named = named.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name);
        let all: Vec<_> = named.chain(Some(statuses.as_str()).filter(|text| !text.is_empty())).collect();
        f.write_str(&all.join(" "))
    }
}

impl<'de> Deserialize<'de> for EjectOn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut on =
            Self { connect: false, timeout: false, invalid: false, statuses: ErrorStatuses::default() };
        for word in texts::<_, Word>(deserializer)? {
            match word.0.as_str() {
                "connect" => on.connect = true,
                "timeout" => on.timeout = true,
                "invalid" => on.invalid = true,
                text => match statuses(text) {
                    Some(statuses) => on.statuses.insert(statuses),
                    None => {
                        return Err(D::Error::custom(format!(
                            "invalid failure `{text}`: expected `connect`, `timeout`, `invalid`, or {STATUSES}"
                        )));
                    }
                },
            }
        }
        Ok(on)
    }
}

/// The name of a failure, or a status.
struct Word(String);

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Written {
        #[serde(default)]
        on: EjectOn,
    }

    #[test]
    fn failures_have_names_and_statuses() {
        for (text, shown) in [
            ("", "connect timeout invalid"),
            ("on = []", ""),
            ("on = 'connect'", "connect"),
            ("on = ['timeout', '5xx']", "timeout 500-599"),
            ("on = ['503', '502', '500', '429']", "429 500 502-503"),
            ("on = ['4xx', '500-599']", "400-599"),
        ] {
            let written: Written = toml::from_str(text).unwrap();
            assert_eq!(written.on.to_string(), shown, "{text}");
        }
        for text in ["on = 'http'", "on = '200'", "on = '600'", "on = '504-502'", "on = '6xx'"] {
            let error = toml::from_str::<Written>(text).unwrap_err().to_string();
            assert!(error.contains("expected `connect`, `timeout`, `invalid`, or a status"), "{error}");
        }
        let on = toml::from_str::<Written>("on = ['connect', '503']").unwrap().on;
        assert!(on.has(Failure::Connect) && on.has(Failure::Status(503)));
        assert!(!on.has(Failure::Timeout) && !on.has(Failure::Invalid) && !on.has(Failure::Status(502)));
        assert!([0, 200, 399, 600, u16::MAX].iter().all(|status| !on.has(Failure::Status(*status))));
    }
}
