//! Failures of servers, and responses that another server may replace.

use super::schema;
use super::values::texts;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Statuses of errors, 400 to 599.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorStatuses([u64; 4]);

impl ErrorStatuses {
    pub(super) const ALL: RangeInclusive<u16> = 400..=599;

    fn place(status: u16) -> Option<(usize, u64)> {
        let bit = usize::from(status.checked_sub(*Self::ALL.start())?);
        (status <= *Self::ALL.end()).then_some((bit / 64, 1 << (bit % 64)))
    }

    /// Whether this is one of them.
    pub(crate) fn contains(self, status: u16) -> bool {
        Self::place(status).is_some_and(|(word, bit)| self.0[word] & bit != 0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    fn insert(&mut self, statuses: RangeInclusive<u16>) {
        for (word, bit) in statuses.filter_map(Self::place) {
            self.0[word] |= bit;
        }
    }
}

impl From<RangeInclusive<u16>> for ErrorStatuses {
    /// Those of the range that are statuses of errors.
    fn from(range: RangeInclusive<u16>) -> Self {
        let mut statuses = Self::default();
        statuses.insert(range);
        statuses
    }
}

impl fmt::Display for ErrorStatuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut separator, mut next) = ("", *Self::ALL.start());
        while let Some(first) = (next..=*Self::ALL.end()).find(|status| self.contains(*status)) {
            let last = (first..=*Self::ALL.end()).take_while(|status| self.contains(*status)).last();
            let last = last.unwrap_or(first);
            match (first, last) {
                (first, last) if first == last => write!(f, "{separator}{first}")?,
                (first, last) => write!(f, "{separator}{first}-{last}")?,
            }
            (separator, next) = (" ", last + 1);
        }
        Ok(())
    }
}

/// A failure of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The gateway could not connect.
    Connect,
    /// The server did not respond in time, or stalled.
    Timeout,
    /// The server closed the connection before the end of its response, or sent an invalid one.
    Invalid,
    /// The server responded with this status.
    Status(u16),
}

/// Failures for which a server may be ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectOn {
    /// There is no connection, or no handshake.
    pub connect: bool,
    /// No response came in time.
    pub timeout: bool,
    /// The response is cut off or invalid.
    pub invalid: bool,
    /// The response has one of these statuses.
    pub statuses: ErrorStatuses,
}

impl EjectOn {
    /// The names of failures other than statuses.
    pub(super) const NAMES: [&str; 3] = ["connect", "timeout", "invalid"];

    /// As in the configuration file.
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

/// A word, or a status.
struct Word(String);

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }
}

const STATUSES: &str = "a status such as \"503\", \"502-504\" or \"5xx\"";

fn statuses(text: &str) -> Option<RangeInclusive<u16>> {
    match text {
        "4xx" => return Some(400..=499),
        "5xx" => return Some(500..=599),
        _ => {}
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let is_within = |status| ErrorStatuses::ALL.contains(&status);
    (is_within(first) && is_within(last) && first <= last).then_some(first..=last)
}

/// The requests that the gateway retries when a pooled connection closes before the first byte of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// GET, HEAD, PUT, DELETE, OPTIONS and TRACE (RFC 9110 section 9.2.2).
    #[default]
    Idempotent,
    /// All, for services that detect a repetition.
    Always,
    /// None.
    Never,
}

/// The conditions for sending a request once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// The requests to send again when a pooled connection closes.
    pub requests: Retry,
    /// The statuses of responses after which another server gets the request.
    pub on: ErrorStatuses,
}

/// Retries as a table.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryTable {
    /// The requests to which `on` applies.
    #[serde(default)]
    requests: Retry,
    /// Statuses that send the request to another server.
    #[schemars(schema_with = "schema::statuses")]
    on: Vec<toml::Value>,
}

impl From<Retry> for Retries {
    fn from(requests: Retry) -> Self {
        Self { requests, on: ErrorStatuses::default() }
    }
}

impl<'de> Deserialize<'de> for Retries {
    /// The name of requests, or a table.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        if !value.is_table() {
            return Retry::deserialize(value).map(Self::from).map_err(D::Error::custom);
        }
        let RetryTable { requests, on } = RetryTable::deserialize(value).map_err(D::Error::custom)?;
        let mut retries = Self::from(requests);
        for value in on {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let wrong = || D::Error::custom(format!("invalid status `{text}`: expected {STATUSES}"));
            retries.on.insert(statuses(&text).ok_or_else(wrong)?);
        }
        Ok(retries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Written {
        #[serde(default)]
        on: EjectOn,
        #[serde(default)]
        retry: Retries,
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

    #[test]
    fn retries_are_a_name_or_a_table() {
        for (text, requests, on) in [
            ("", Retry::Idempotent, ""),
            ("retry = 'never'", Retry::Never, ""),
            ("retry = { on = [502, '503'] }", Retry::Idempotent, "502-503"),
            ("retry = { requests = 'always', on = ['5xx'] }", Retry::Always, "500-599"),
        ] {
            let Retries { requests: found, on: statuses } = toml::from_str::<Written>(text).unwrap().retry;
            assert_eq!((found, statuses.to_string().as_str()), (requests, on), "{text}");
        }
        for text in ["retry = 'sometimes'", "retry = { on = [200] }", "retry = { of = [502] }", "retry = 3"] {
            assert!(toml::from_str::<Written>(text).is_err(), "{text}");
        }
    }
}
