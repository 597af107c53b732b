//! `health` of a service: its checks, and the statuses of a healthy server, with which
//! `health/check/expected_response.rs` compares a response.

use super::value_schemas;
use super::values::{duration, texts};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// Health checks. A server whose checks fail gets no requests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Health {
    /// The path of a GET request, sent by HTTP/2 with `http2`. Without `path` and `grpc`, the check opens a connection
    /// and, with TLS, completes a handshake. Default: none.
    pub path: Option<String>,
    /// With `http2`, instead of `path`: the service to query by the [gRPC health checking
    /// protocol](services.md#grpc-health-checks); `""` queries the whole server. Default: none.
    pub grpc: Option<String>,
    /// With `path` or `grpc`: the check's `Host`, with HTTP/2 its `:authority`. Default: the server's.
    pub host: Option<String>,
    /// With `path`: statuses of a healthy server.
    #[serde(deserialize_with = "texts")]
    #[schemars(
        schema_with = "value_schemas::one_or_many::<Statuses>",
        extend("default" = Health::default().status.iter().map(ToString::to_string).collect::<Vec<_>>())
    )]
    pub status: Vec<Statuses>,
    /// Time from the end of a check to the next check.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub every: Duration,
    /// Timeout of a whole check.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time")]
    pub timeout: Duration,
    /// Consecutive passed checks that bring a server up.
    #[schemars(transform = value_schemas::at_least(1))]
    pub rise: u32,
    /// Consecutive failed checks that take a server down.
    #[schemars(transform = value_schemas::at_least(1))]
    pub fall: u32,
}

/// A range of statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statuses {
    first: u16,
    last: u16,
}

impl Health {
    /// The maximum length of the gRPC service name in `grpc`, in bytes.
    pub(crate) const MOST_NAME: usize = 256;
}

impl Statuses {
    pub(crate) fn range(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            path: None,
            grpc: None,
            host: None,
            status: vec![Statuses { first: 200, last: 399 }],
            every: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            rise: 2,
            fall: 3,
        }
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { first, last } if first == last => write!(f, "{first}"),
            Self { first, last } => write!(f, "{first}-{last}"),
        }
    }
}

impl FromStr for Statuses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let statuses = first.parse().ok().zip(last.parse().ok());
        let statuses =
            statuses.filter(|(first, last)| (100..=599).contains(first) && (first..=&599).contains(&last));
        let wrong =
            || format!("invalid status `{text}`: expected one such as 200, or a range such as 200-399");
        statuses.map(|(first, last)| Self { first, last }).ok_or_else(wrong)
    }
}
