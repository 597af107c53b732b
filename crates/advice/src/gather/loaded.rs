//! Facts from loads: the number of requests per connection, and the share of handshakes with a retry.

use crate::fact::Facts;
use weir_load::result::LoadResult;

impl Facts {
    /// Adds whether clients use TLS.
    pub fn add_client_side(&mut self, is_tls: bool, source: &str) {
        self.add("tls.client_side", is_tls, source);
        if !is_tls {
            self.add("tls.cleartext_clients", true, source);
        }
    }

    /// Adds the facts of a load on keep-alive connections.
    pub fn add_kept_load(&mut self, result: &LoadResult) {
        let source = format!("load, {} requests", result.requests);
        self.add_known("load.p50_us", result.response.p50_us, &source);
        self.add("load.requests_per_second", result.requests_per_second, &source);
        let opened = result.connections_opened_in_window;
        if opened > 0 {
            self.add("http.requests_per_connection", result.requests as f64 / opened as f64, &source);
        }
    }

    /// Adds the ratio of the response time under load to that of a single connection.
    pub(crate) fn add_slowdown(&mut self) {
        let (loaded_us, alone_ms) = (self.number("load.p50_us"), self.number("http.response_ms"));
        if let (Some(loaded_us), Some(alone_ms)) = (loaded_us, alone_ms.filter(|alone| *alone > 0.0)) {
            self.add("load.slowdown", loaded_us / 1000.0 / alone_ms, "response times under load and alone");
        }
    }

    /// Adds the facts of a load that opens a connection for each request, with full handshakes.
    pub fn add_new_load(&mut self, result: &LoadResult) {
        let handshakes = &result.handshakes;
        let source = format!("load, {} full handshakes", handshakes.full);
        self.add("load.handshakes_per_second", handshakes.per_second, &source);
        let full = result.handshake.get("full").and_then(|latency| latency.p50_us);
        self.add_known("load.handshake_p50_us", full, &source);
        if handshakes.full > 0 {
            self.add("tls.retry_share", handshakes.hello_retry as f64 / handshakes.full as f64, &source);
        }
    }
}
