//! Facts that a load engine's result implies beyond its fields.

use crate::stats::histogram::Latencies;
use weir_load::result::{Latency, LoadResult};

/// The name of the policy of connections without requests in a result.
pub(crate) const HANDSHAKE_ONLY: &str = "handshake-only";

/// Older results have it only in their histogram.
pub(crate) fn p95_us(latency: &Latency) -> Option<f64> {
    latency.p95_us.or_else(|| Latencies::merge(&[latency.hdr_v2.as_str()])?.quantile_us(0.95))
}

/// Whether connections carry requests; if not, their rate and cost are those of handshakes.
pub(crate) fn has_requests(load: &LoadResult) -> bool {
    load.asked.requests_per_connection != HANDSHAKE_ONLY
}

/// Whether a percentile falls among censored samples: timeouts, arrivals never sent.
pub(crate) fn is_lower_bound(latency: &Latency, percentile: Option<f64>) -> bool {
    latency.censored_from_us.zip(percentile).is_some_and(|(from, percentile)| from <= percentile)
}
