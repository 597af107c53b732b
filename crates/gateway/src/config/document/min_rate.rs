//! How fast clients must send and take bodies.

use super::values::{duration, size};
use serde::Deserialize;
use std::time::Duration;

/// How fast clients must send the bodies of their requests and take the answers, as long as they are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MinRate {
    /// Bytes of a request's body in a second, up to 1 GiB; 0: no limit.
    #[serde(deserialize_with = "size")]
    pub request: u64,
    /// Bytes of an answer in a second, up to 1 GiB; 0: no limit.
    #[serde(deserialize_with = "size")]
    pub answer: u64,
    /// How far a client may fall behind, 100 ms to 1 h.
    #[serde(deserialize_with = "duration")]
    pub window: Duration,
}

/// What a route sets differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouteMinRate {
    /// As [`MinRate::request`].
    #[serde(deserialize_with = "size")]
    pub request: Option<u64>,
    /// As [`MinRate::answer`].
    #[serde(deserialize_with = "size")]
    pub answer: Option<u64>,
    /// As [`MinRate::window`].
    #[serde(deserialize_with = "duration")]
    pub window: Option<Duration>,
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
