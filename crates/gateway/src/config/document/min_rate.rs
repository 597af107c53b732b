//! The minimum rates at which clients must send and receive bodies.

use super::schema;
use super::values::{duration, size};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The minimum rates at which clients must send request bodies and receive responses while the gateway waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MinRate {
    /// Bytes per second of a request body, without framing; 0: no minimum. The default is Apache's, so clients have met it for
    /// years.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(MinRate::RATE))]
    pub request: u64,
    /// Bytes per second of a response, with its head and TLS, as the client's socket takes them; 0: no minimum. The default is
    /// that of IIS and .NET's server. It is lower, since a slow reader usually occupies a buffer and rarely a thread.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(MinRate::RATE))]
    pub answer: u64,
    /// The credit of a client that falls below the rate, as in a pause: a laptop that changes networks is silent for up
    /// to a minute. Apache's grace is 20 s; nginx waits 60 s for each byte and never ends a client that trickles. Lower
    /// it where each slow client costs a thread. For responses it is at least the time of 64 KiB at the rate (273 s
    /// with the default rate): kernels take bytes in lumps of that size, however steadily the client reads.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "schema::time", transform = schema::lasting(MinRate::WINDOW))]
    pub window: Duration,
}

/// A route's own minimum rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouteMinRate {
    /// Bytes per second of a request body; 0: no minimum, as for deliberately slow uploads from a chat or a sensor. Default:
    /// `request` of `[min_rate]`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(MinRate::RATE))]
    pub request: Option<u64>,
    /// Bytes per second of a response; 0: no minimum. Default: `answer` of `[min_rate]`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "schema::bytes", transform = schema::within(MinRate::RATE))]
    pub answer: Option<u64>,
    /// The credit of a client that falls below the rate. Default: `window` of `[min_rate]`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "schema::time", transform = schema::lasting(MinRate::WINDOW))]
    pub window: Option<Duration>,
}

impl MinRate {
    pub(crate) const RATE: RangeInclusive<u64> = 0..=1 << 30;
    pub(crate) const WINDOW: RangeInclusive<Duration> =
        Duration::from_millis(100)..=Duration::from_secs(3600);
}

impl RouteMinRate {
    /// The general one with this in its place.
    pub(crate) fn over(self, general: MinRate) -> MinRate {
        MinRate {
            request: self.request.unwrap_or(general.request),
            answer: self.answer.unwrap_or(general.answer),
            window: self.window.unwrap_or(general.window),
        }
    }
}

impl Default for MinRate {
    fn default() -> Self {
        Self {
            // Apache has bound bodies so for years: a phone on a bad line is faster.
            request: 500,
            // A laptop that changes networks is silent for a minute, which nginx allows, too.
            window: Duration::from_secs(75),
            // As Windows' and .NET's servers have it. Less than for requests: who reads slowly costs a buffer, rarely a thread.
            answer: 240,
        }
    }
}
