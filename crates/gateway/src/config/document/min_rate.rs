//! The minimum rates at which clients must send and receive bodies.

use super::value_schemas;
use super::values::{duration, size};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The minimum rates at which clients must send request bodies and receive responses while the gateway waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MinRate {
    /// Bytes per second of a request body, without framing; 0: no minimum. The default is Apache's, so clients have had
    /// to meet it for years.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(MinRate::RATE))]
    pub request: u64,
    /// Bytes per second of a response; 0: no minimum. Over HTTP/1.1 they are the bytes that the kernel accepts from the
    /// gateway, with head and TLS; on an HTTP/2 stream, the body's bytes that its connection accepts. The default is
    /// that of IIS and .NET's server. It is lower than `request`: a slow reader usually occupies only a buffer, a slow
    /// sender often a thread.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(MinRate::RATE))]
    pub response: u64,
    /// The time by which a client may lag behind the rate, as after a pause: a laptop that changes networks is silent
    /// for up to a minute. Apache's grace is 20 s; nginx waits 60 s for each byte and never disconnects a client that
    /// trickles. Lower it where each slow client occupies a thread. For responses it is at least the time of 64 KiB at
    /// the rate (273 s with the default rate), since kernels take bytes in lumps of that size, however steadily the
    /// client reads.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time", transform = value_schemas::lasting(MinRate::WINDOW))]
    pub window: Duration,
}

/// A route's own minimum rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouteMinRate {
    /// Bytes per second of a request body; 0: no minimum, as for deliberately slow uploads from a chat or a sensor.
    /// Default: `request` of `[min_rate]`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(MinRate::RATE))]
    pub request: Option<u64>,
    /// Bytes per second of a response; 0: no minimum. Default: `response` of `[min_rate]`.
    #[serde(deserialize_with = "size")]
    #[schemars(schema_with = "value_schemas::bytes", transform = value_schemas::within(MinRate::RATE))]
    pub response: Option<u64>,
    /// The time by which a client may lag behind the rate. Default: `window` of `[min_rate]`.
    #[serde(deserialize_with = "duration")]
    #[schemars(schema_with = "value_schemas::time", transform = value_schemas::lasting(MinRate::WINDOW))]
    pub window: Option<Duration>,
}

impl MinRate {
    pub(crate) const RATE: RangeInclusive<u64> = 0..=1 << 30;
    pub(crate) const WINDOW: RangeInclusive<Duration> =
        Duration::from_millis(100)..=Duration::from_secs(3600);
}

impl RouteMinRate {
    /// The general minimum rates, overridden by those of the route.
    pub(crate) fn over(self, general: MinRate) -> MinRate {
        MinRate {
            request: self.request.unwrap_or(general.request),
            response: self.response.unwrap_or(general.response),
            window: self.window.unwrap_or(general.window),
        }
    }
}

impl Default for MinRate {
    fn default() -> Self {
        Self {
            // Apache's minimum for years: even a phone on a bad line is faster.
            request: 500,
            // A laptop that changes networks is silent for a minute, which nginx allows, too.
            window: Duration::from_secs(75),
            // The minimum of IIS and .NET's server, lower than for requests: a slow reader occupies a buffer, rarely a
            // thread.
            response: 240,
        }
    }
}
