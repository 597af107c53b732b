//! The limits, timeouts and other settings of exchanges, with those that a route overrides.

use super::document::{Retries, Timeouts};
use std::num::NonZeroU64;
use std::time::Duration;

/// The limits, timeouts and retries of an exchange.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// Limits of interim responses (1xx).
    pub interims: InterimLimits,
    /// The maximum size of a request body, in bytes.
    pub max_body: u64,
    pub timeouts: Timeouts,
    pub min_rates: MinRates,
    /// Whether the route's limits on a client that receives a response (`stall`, `response_body` and the minimum rate)
    /// differ from the general ones.
    pub has_own_response_limits: bool,
    pub retry: Retries,
    /// Bytes of a request's body that the gateway collects before it forwards the request.
    pub request_buffer: usize,
    /// Bytes of a response that may wait for the client before the gateway stops reading from the server.
    pub response_buffer: usize,
}

/// The maximum number of interim responses in one exchange, and of bytes in all of their heads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InterimLimits {
    pub responses: usize,
    pub bytes: usize,
}

/// The minimum rate at which a client must send or receive a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinRate {
    /// The minimum rate, in bytes per second.
    pub per_second: NonZeroU64,
    /// The time by which the client may lag behind the rate.
    pub window: Duration,
}

/// The minimum rates of a client in both directions; `None`: no minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinRates {
    pub request: Option<MinRate>,
    pub response: Option<MinRate>,
}

/// The maximum rate of requests, and the burst that may exceed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimit {
    /// The number of requests within `per`; at least 1.
    pub requests: u32,
    pub per: Duration,
    /// The maximum burst of requests; at least 1.
    pub burst: u32,
    /// Whether all clients share one limit, rather than each having a separate one.
    pub in_common: bool,
}

/// The service that gets copies of requests, and the share to copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MirrorTo {
    /// The index of the service that gets the copies.
    pub service: usize,
    /// The share of requests to copy, from 0 to 1.
    pub share: f64,
    /// The maximum size of a copied request's body, in bytes.
    pub max_body: usize,
    /// The maximum number of concurrent copies in each worker; the worker drops further copies.
    pub most: usize,
}

/// The fields that describe the client to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forms {
    pub x_forwarded: bool,
    pub forwarded: bool,
}

impl Forms {
    /// The default: the fields that nearly all servers understand.
    pub(crate) const USUAL: Self = Self { x_forwarded: true, forwarded: false };
}

/// The number of bytes that may wait for a receiver before the gateway stops reading from its sender. One more read may
/// exceed this number.
pub(crate) const MAX_PENDING: usize = 64 * 1024;

/// The minimum of buffer settings: with less, a slow client would still occupy a server's connection for most messages.
pub(crate) const LEAST_BUFFER: usize = 16 * 1024;
