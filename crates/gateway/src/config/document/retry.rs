//! The requests that the gateway may send once more, and the responses that another server may replace.

use super::error_statuses::{ErrorStatuses, STATUSES, statuses};
use super::value_schemas;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};

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

/// The conditions for a retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// The requests that may be sent again, after a pooled connection closes or a response with a status in `on`.
    pub requests: Retry,
    /// Response statuses after which the gateway retries on another server.
    pub on: ErrorStatuses,
}

/// Retries as a table.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryTable {
    /// The requests that may be retried, whether a pooled connection closes or `on` contains the response status.
    #[serde(default)]
    requests: Retry,
    /// Response statuses after which the gateway retries on another server.
    #[schemars(schema_with = "value_schemas::statuses")]
    on: Vec<toml::Value>,
}

impl From<Retry> for Retries {
    fn from(requests: Retry) -> Self {
        Self { requests, on: ErrorStatuses::default() }
    }
}

impl<'de> Deserialize<'de> for Retries {
    /// Reads the name of the requests to retry, or a table.
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
        retry: Retries,
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
