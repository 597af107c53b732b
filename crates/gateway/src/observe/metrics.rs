//! The table of metrics. It defines each counter and gauge of the workers in one row.
//!
//! The rows generate the fields of [`Counters`], their sum over workers, Prometheus' text, the JSON of `/status`, and
//! the keys that `weir top` reads. A test compares them with the list in docs/gateway/monitoring.md.

use super::counters::{Accepted, CLASSES, DIRECTIONS, FORMS, KINDS, Negotiated, REFUSALS, RULES, SIDES};
use super::exposition::Exposition;
use super::histogram::Histogram;
use super::row::Json::{Hidden, Member, Members, Number, Numbers, Objects, Pairs};
use super::row::{Kind, Row};
use super::values::{Counts, Field, Process, Seconds};
use crate::grpc::STATUSES;
use crate::limits::EXHAUSTED;
use crate::mirror::FATES;
use crate::reason::CODES;
use serde_json::Value;
use std::collections::BTreeMap;

/// `visibility field: type, kind, name, help, labels, JSON;`, in the order of Prometheus' text.
macro_rules! table {
    ($($vis:vis $field:ident: $type:ty, $kind:ident, $name:literal, $help:literal, $labels:expr, $json:expr;)*) => {
        /// The counters of one worker, or the sum for several. Gauges are set only in reports.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $(#[doc = $help] $vis $field: $type,)*
        }

        /// The table row of each field of [`Counters`].
        #[derive(Debug)]
        pub struct Rows {
            $(#[doc = $help] pub $field: Row,)*
        }

        /// The rows of all counters and gauges.
        pub static ROWS: Rows = Rows {
            $($field: Row { kind: Kind::$kind, name: $name, help: $help, labels: $labels, json: $json },)*
        };

        impl Counters {
            /// Adds the counters of another worker.
            pub fn add(&mut self, other: &Self) {
                $(Field::add(&mut self.$field, &other.$field);)*
            }

            /// Appends all counters and gauges.
            pub(super) fn write(&self, text: &mut Exposition) {
                $(self.$field.write(&ROWS.$field, text);)*
            }

            /// Returns the JSON object of the counters in `/status`.
            pub(super) fn json(&self) -> Value {
                let mut object = Value::default();
                $(ROWS.$field.put(&self.$field.samples(&ROWS.$field), &mut object);)*
                object
            }
        }
    };
}

table! {
    pub connections: u64, Counter, "weir_connections_total", "Connections from clients.", &[], Number("connections");
    pub(crate) clients: u64, Gauge, "weir_clients", "Open connections from clients.", &[], Number("clients");
    pub(crate) open_tunnels: u64, Gauge, "weir_tunnels", "Connections and streams that carry another protocol.", &[], Number("tunnels");
    pub(crate) waiting: u64, Gauge, "weir_waiting_requests",
        "Requests that wait for a connection to a server.", &[], Number("waiting");
    pub(crate) timers: u64, Gauge, "weir_timers", "Active timers: at most a few for each connection.", &[], Number("timers");
    pub requests: u64, Counter, "weir_requests_total",
        "Requests that the gateway forwarded, or responded to itself.", &[], Number("requests");
    pub(crate) http2_connections: u64, Counter, "weir_http2_connections_total",
        "Connections from clients that speak HTTP/2.", &[], Member("http2", "connections");
    pub(crate) http2_requests: u64, Counter, "weir_http2_requests_total",
        "Requests from clients by HTTP/2.", &[], Member("http2", "requests");
    pub(crate) http2_reads: u64, Counter, "weir_http2_reads_total",
        "Reads that began requests by HTTP/2: more requests than reads share the cost of one.",
        &[], Member("http2", "reads");
    pub(crate) http2_writes: u64, Counter, "weir_http2_writes_total",
        "Writes to clients by HTTP/2.", &[], Member("http2", "writes");
    pub(crate) upstream_http2_connections: u64, Counter, "weir_upstream_http2_connections_total",
        "Connections to servers that speak HTTP/2.", &[], Member("upstream_http2", "connections");
    pub(crate) upstream_http2_requests: u64, Counter, "weir_upstream_http2_requests_total",
        "Requests to servers by HTTP/2.", &[], Member("upstream_http2", "requests");
    pub(crate) upstream_http2_reads: u64, Counter, "weir_upstream_http2_reads_total",
        "Reads that brought responses by HTTP/2: more requests than reads share the cost of one.",
        &[], Member("upstream_http2", "reads");
    pub(crate) upstream_http2_writes: u64, Counter, "weir_upstream_http2_writes_total",
        "Writes to servers by HTTP/2.", &[], Member("upstream_http2", "writes");
    pub unprocessed_retries: u64, Counter, "weir_retries_unprocessed_total",
        "Requests that were sent again because their server did not process them.",
        &[], Member("upstream_http2", "retries");
    pub(crate) retries_by_rule: Counts<{ RULES.len() }>, Counter, "weir_retries_by_rule_total",
        "Requests that were sent again, by the rule that allows it.", &[("rule", &RULES)], Hidden;
    pub(crate) http2_field_bytes: Counts<{ SIDES.len() * DIRECTIONS.len() * FORMS.len() }>, Counter,
        "weir_http2_field_bytes_total",
        "Bytes of heads and trailers by HTTP/2, as HPACK encodes them and as lines of text.",
        &[("with", &SIDES), ("direction", &DIRECTIONS), ("form", &FORMS)], Hidden;
    pub(crate) http2_window_seconds: Seconds<{ SIDES.len() }>, Counter, "weir_http2_window_wait_seconds_total",
        "Time in which parts of bodies waited for the peer's flow-control window, summed over streams.",
        &[("with", &SIDES)], Hidden;
    pub(crate) http2_window_waits: u64, Counter, "weir_http2_window_waits_total",
        "Parts of responses that had to wait for the client's flow-control window.",
        &[], Member("http2", "window_waits");
    pub responses: Counts<{ CLASSES.len() }>, Counter, "weir_responses_total",
        "Responses by class of status; none: requests without a response.", &[("class", &CLASSES)], Numbers("responses");
    pub(crate) grpc: Counts<{ STATUSES.len() }, false>, Counter, "weir_grpc_responses_total",
        "Responses of gRPC by status.", &[("status", &STATUSES)], Pairs("grpc");
    pub(crate) took: Histogram, Histogram, "weir_request_seconds",
        "From a request's head to the end of its response.", &[], Number("took_us");
    pub(crate) received: Counts<{ SIDES.len() }>, Counter, "weir_received_bytes_total",
        "Bytes from connections, with heads, TLS and tunnels.", &[("with", &SIDES)], Hidden;
    pub(crate) sent: Counts<{ SIDES.len() }>, Counter, "weir_sent_bytes_total",
        "Bytes to connections, with heads, TLS and tunnels.", &[("with", &SIDES)], Hidden;
    pub(crate) handshakes: Counts<{ KINDS.len() }>, Counter, "weir_handshakes_total",
        "Finished TLS handshakes with clients by kind.", &[("kind", &KINDS)], Pairs("handshakes");
    pub(crate) upstream_handshakes: Counts<{ KINDS.len() }>, Counter, "weir_upstream_handshakes_total",
        "Finished TLS handshakes with servers by kind.", &[("kind", &KINDS)], Pairs("upstream_handshakes");
    pub(crate) negotiated: BTreeMap<Negotiated, u64>, Counter, "weir_tls_negotiated_total",
        "Finished TLS handshakes by version, suite and group.", &[], Hidden;
    pub(crate) tickets_issued: u64, Counter, "weir_tickets_issued_total",
        "TLS tickets issued to clients.", &[], Member("tickets", "issued");
    pub(crate) tickets_redeemed: u64, Counter, "weir_tickets_redeemed_total",
        "TLS tickets with which clients resumed a session.", &[], Member("tickets", "redeemed");
    pub(crate) tickets_refused: Counts<{ REFUSALS.len() }>, Counter, "weir_tickets_refused_total",
        "Rejected TLS tickets, by reason.", &[("reason", &REFUSALS)], Members("tickets");
    pub(crate) ended: Counts<{ CODES.len() }, false>, Counter, "weir_ended_early_total",
        "Requests and connections that ended early, by reason.", &[("reason", &CODES)], Pairs("ended_early");
    pub(crate) accepted: BTreeMap<Accepted, u64>, Counter, "weir_accepted_total",
        "Message heads that broke a rule relaxed by `accept`.", &[], Objects("accepted");
    pub(crate) underscored: u64, Counter, "weir_underscore_fields_dropped_total",
        "Request fields dropped for an underscore in their name.", &[], Number("underscore_fields_dropped");
    pub retries: u64, Counter, "weir_retries_total", "Requests that were sent again.", &[], Number("retries");
    pub ejections: u64, Counter, "weir_ejections_total", "Ejections of servers.", &[], Number("ejections");
    pub(crate) mirrors: Counts<{ FATES.len() }>, Counter, "weir_mirrored_total",
        "Mirrored requests, by their fate.", &[("fate", &FATES)], Hidden;
    pub(crate) upstream_connections: u64, Counter, "weir_upstream_connections_total",
        "Connections to servers.", &[], Number("upstream_connections");
    pub taken_over: u64, Counter, "weir_upstream_connections_taken_over_total",
        "Idle connections to servers handed from one worker to another.", &[], Hidden;
    pub(crate) lost_lines: Process<1>, Counter, "weir_access_log_lost_lines_total",
        "Lost lines of the access log.", &[], Hidden;
    pub(crate) descriptors: Process<5>, Gauge, "weir_descriptors",
        "File descriptors: the limits of the process and of connections, and those in use.",
        &[("kind", &["limit", "connections_limit", "clients_limit", "clients", "servers"])], Hidden;
    pub(crate) memory: u64, Gauge, "weir_memory_bytes",
        "Memory in use by connections, in bytes, as the gateway counts it.", &[], Hidden;
    pub(crate) memory_limited: Process<1>, Gauge, "weir_memory_limited",
        "1 while connections use as much memory as limits.memory allows.", &[], Hidden;
    pub(crate) handshakes_unfinished: u64, Gauge, "weir_handshakes_unfinished",
        "Unfinished handshakes with clients, including what precedes TLS.", &[], Hidden;
    pub(crate) handshakes_waiting: u64, Gauge, "weir_handshakes_waiting",
        "Unfinished handshakes with clients that wait for their turn.", &[], Hidden;
    pub(crate) rests: Counts<{ EXHAUSTED.len() }>, Counter, "weir_accept_rests_total",
        "Pauses of listeners, by the exhausted resource.", &[("cause", &EXHAUSTED)], Hidden;
    pub(crate) evicted: Counts<{ SIDES.len() * EXHAUSTED.len() }>, Counter, "weir_evicted_total",
        "Idle connections closed to make room, by the exhausted resource.",
        &[("kind", &SIDES), ("cause", &EXHAUSTED)], Hidden;
    pub(crate) tunnels: u64, Total, "", "Connections and streams that became tunnels, for the totals at exit.", &[], Hidden;
}
