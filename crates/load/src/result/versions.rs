//! The figures of each version of HTTP in a run with both.

use super::Latency;
use crate::options::HttpVersion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A value for each version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByVersion<T> {
    /// For HTTP/1.1.
    pub http1: T,
    /// For HTTP/2.
    pub http2: T,
}

/// The figures of one version's connections, within the window unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VersionFigures {
    /// Concurrent connections.
    pub connections: u32,
    /// Worker threads.
    pub workers: u32,
    /// Correct responses.
    pub requests: u64,
    /// `requests` over the window's seconds.
    pub requests_per_second: f64,
    /// Errors by class, as [`super::LoadResult::errors`].
    pub errors: BTreeMap<String, u64>,
    /// Errors over all completed requests.
    pub error_ratio: f64,
    /// Arrivals planned in an open loop; 0 in a closed one.
    pub planned: u64,
    /// Those of them that could not be sent by the end.
    pub unsent: u64,
    /// Response time of requests planned within the window.
    pub response: Latency,
    /// Handshakes of the whole run by the application protocol agreed on, `none` without one; empty in cleartext.
    pub alpn: BTreeMap<String, u64>,
}

/// The figures of one version in a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VersionSecond {
    /// Correct responses in it.
    pub requests: u64,
    /// Errors in it.
    pub errors: u64,
    /// Median response time of requests completed in it, to 2 digits; `None` with fewer than 20.
    pub p50_us: Option<f64>,
    /// 99th percentile, to 2 digits; `None` with fewer than 1000.
    pub p99_us: Option<f64>,
}

/// The key of handshakes without ALPN in [`VersionFigures::alpn`].
pub(crate) const NO_ALPN: &str = "none";

impl VersionFigures {
    /// With its rate over this many seconds.
    pub(crate) fn over(self, seconds: f64) -> Self {
        Self { requests_per_second: self.requests as f64 / seconds, ..self }
    }
}

impl<T> ByVersion<T> {
    /// The value of one version.
    pub fn of(self, version: HttpVersion) -> T {
        match version {
            HttpVersion::Http1 => self.http1,
            HttpVersion::Http2 => self.http2,
        }
    }

    /// The same by reference.
    pub fn as_ref(&self) -> ByVersion<&T> {
        ByVersion { http1: &self.http1, http2: &self.http2 }
    }

    /// The same by mutable reference.
    pub fn as_mut(&mut self) -> ByVersion<&mut T> {
        ByVersion { http1: &mut self.http1, http2: &mut self.http2 }
    }

    /// Applies a function to each value.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> ByVersion<U> {
        ByVersion { http1: change(self.http1), http2: change(self.http2) }
    }

    /// The values with their versions, HTTP/1.1 first.
    pub fn into_pairs(self) -> [(HttpVersion, T); 2] {
        [(HttpVersion::Http1, self.http1), (HttpVersion::Http2, self.http2)]
    }
}
