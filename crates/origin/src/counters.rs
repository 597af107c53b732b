//! The origin's counters. Each worker writes its own with plain stores; any thread may add them up.

use std::sync::atomic::{AtomicU64, Ordering};
use weir_tls::{Facts, HandshakeKind};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Totals so far.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// One worker's counters, on their own cache lines.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
            fn add_to(&self, totals: &mut Totals) {
                $(totals.$name += self.$name.get();)*
            }
        }

        impl Totals {
            /// The counters as JSON.
            pub fn to_json(&self) -> String {
                serde_json::json!({ $(stringify!($name): self.$name,)* }).to_string()
            }
        }
    };
}

counters!(
    /// Requests received completely, with their bodies.
    requests,
    /// Those of them by HTTP/2.
    requests_http2,
    /// Responses sent completely.
    answers,
    /// Requests, and HTTP/2 connections, rejected as malformed.
    refused,
    /// Connections accepted.
    connections,
    /// Connections that spoke HTTP/2.
    connections_http2,
    /// HTTP/2 requests that the client reset before their response was complete.
    reset,
    /// Connections that failed: reset, no TLS handshake, truncated during a request.
    failed,
    /// Bytes of request bodies.
    bytes_received,
    /// Bytes of response bodies.
    bytes_sent,
    /// Full handshakes.
    handshakes_full,
    /// Resumptions in TLS 1.2 by session ID.
    resumed_12_id,
    /// Resumptions in TLS 1.2 by ticket.
    resumed_12_ticket,
    /// Resumptions in TLS 1.3.
    resumed_13_psk,
);

/// Written by one thread, read by any.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        // One writer: load and store need no locked instruction.
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn handshake(&self, facts: &Facts) {
        match facts.kind {
            HandshakeKind::Full => self.handshakes_full.add(1),
            HandshakeKind::Resume12Id => self.resumed_12_id.add(1),
            HandshakeKind::Resume12Ticket => self.resumed_12_ticket.add(1),
            HandshakeKind::Resume13Psk => self.resumed_13_psk.add(1),
        }
    }

    pub(crate) fn sum(all: &[Self]) -> Totals {
        let mut totals = Totals::default();
        for counters in all {
            counters.add_to(&mut totals);
        }
        totals
    }
}

impl Totals {
    /// Handshakes that resumed a session, of all kinds.
    pub fn handshakes_resumed(&self) -> u64 {
        self.resumed_12_id + self.resumed_12_ticket + self.resumed_13_psk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_all_workers_and_name_every_number() {
        let all: [Counters; 2] = Default::default();
        all[0].requests.add(3);
        all[1].requests.add(4);
        all[1].resumed_13_psk.add(1);
        let totals = Counters::sum(&all);
        assert_eq!(totals, Totals { requests: 7, resumed_13_psk: 1, ..Totals::default() });
        assert_eq!(totals.handshakes_resumed(), 1);
        let json: serde_json::Value = serde_json::from_str(&totals.to_json()).unwrap();
        assert_eq!((json["requests"].as_u64(), json["answers"].as_u64()), (Some(7), Some(0)));
    }
}
