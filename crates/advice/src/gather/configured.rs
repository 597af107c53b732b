//! Facts from a configuration. The probe and the loads use the same names and come first, so a configuration only fills
//! in facts that were not measured.

mod haproxy;
mod nginx;

use crate::config::{Config, Parsed};
use crate::fact::Facts;
use std::net::Ipv4Addr;

impl Facts {
    /// Adds the facts of a configuration, each with its file and line.
    pub fn add_config(&mut self, config: &Config) {
        match &config.0 {
            Parsed::Nginx(directives) => nginx::add(self, directives),
            Parsed::Haproxy(sections) => haproxy::add(self, sections),
        }
    }

    /// Adds that the server issues no sessions.
    fn add_no_sessions(&mut self, source: &str) {
        self.add("resumption.sessions", 0.0, source);
        self.add("resumption.share", 0.0, source);
    }

    /// Adds that each request opens an upstream connection.
    fn add_upstream_closed(&mut self, source: &str) {
        self.add("upstream.connections_per_request", 1.0, source);
    }

    fn add_keep_alive(&mut self, seconds: f64, source: &str) {
        self.add("http.keep_alive", seconds > 0.0, source);
        match seconds > 0.0 {
            true => self.add("http.keep_alive_s", seconds, source),
            false => self.add("http.requests_in_a_row", 1.0, source),
        }
    }

    /// Adds a retry if the server lacks X25519, the key share that most clients send.
    fn add_curves(&mut self, curves: &str, source: &str) {
        let curves: Vec<String> = curves.split(':').map(str::to_ascii_lowercase).collect();
        let is_any = curves.iter().any(|curve| curve == "auto" || curve.contains("x25519"));
        self.add("tls.retries_x25519", !is_any, source);
        if let Some(first) = curves.first().filter(|_| !is_any) {
            self.add("tls.retries_to", first.as_str(), source);
            self.add("tls.retry_share", 1.0, source);
        }
    }
}

/// Parses `75s`, `1m30s`, `500ms` or, in units of `unit_ms` milliseconds, `75` into seconds.
fn seconds(text: &str, unit_ms: u64) -> Option<f64> {
    weir_syntax::time(text, unit_ms).map(|ms| ms as f64 / 1000.0)
}

/// Parses `16k`, `1m` or `4096` into bytes.
fn bytes(text: &str) -> Option<f64> {
    weir_syntax::bytes(text).map(|bytes| bytes as f64)
}

/// Whether a URL's authority begins with an IP address, which cannot be sent as SNI (RFC 6066 section 3).
fn is_address(authority: &str) -> bool {
    let host = authority.split(['/', ':']).next().unwrap_or_default();
    authority.starts_with('[') || host.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests;
