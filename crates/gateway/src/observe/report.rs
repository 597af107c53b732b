//! A snapshot of the gateway's state, for people and programs.

use super::Counters;
use super::counters::{Accepted, BOUNDS, By, Bytes, Negotiated};
use super::exposition::Exposition;
use super::servers::{self, CLASSES, ServerReport};
use crate::limits::Open;
use serde::Serialize;
use weir_tls::TicketCounts;

/// The state of one worker, or of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub counters: Counters,
    /// Open connections from clients.
    pub clients: usize,
    /// Open tunnels.
    pub tunnels: usize,
    /// Requests that wait for a connection to a server.
    pub waiting: usize,
    /// Active timers.
    pub timers: usize,
    /// Lost lines of the access log.
    pub lost_lines: u64,
    pub draining: bool,
    /// Memory in use by connections, in bytes.
    pub memory: usize,
    /// Whether connections have reached their memory limit.
    pub is_short: bool,
    /// Unfinished handshakes with clients.
    pub handshakes: usize,
    /// Unfinished handshakes with clients that wait for their turn.
    pub handshakes_waiting: usize,
    /// The descriptors of connections, in use and allowed, of the whole process.
    pub descriptors: Open,
    /// Counts of clients' tickets, by outcome.
    pub tickets: Tickets,
    pub servers: Vec<ServerReport>,
}

/// Counts of clients' tickets, by outcome.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Tickets {
    pub issued: u64,
    /// Accepted: the session was resumed.
    pub redeemed: u64,
    /// Rejected: sealed under a key of this gateway that has expired.
    pub expired: u64,
    /// Rejected: sealed under an unknown key, or for other certificates.
    pub unknown_key: u64,
    /// Rejected: modified since it was sealed.
    pub damaged: u64,
    /// Opened, then rejected: for another version, suite or name, or too old by its own date.
    pub mismatched: u64,
}

impl Tickets {
    /// Adds the counts of one acceptor.
    pub(crate) fn add(&mut self, counts: TicketCounts) {
        self.issued += counts.issued;
        self.expired += counts.expired;
        self.unknown_key += counts.unknown_key;
        self.damaged += counts.damaged;
        // [`Tickets::redeem`] subtracts the redeemed ones.
        self.mismatched += counts.opened;
    }

    /// Separates redeemed tickets from those that were opened and then rejected.
    pub(crate) fn redeem(&mut self, redeemed: u64) {
        self.redeemed = redeemed;
        self.mismatched = self.mismatched.saturating_sub(redeemed);
    }

    fn refused(&self) -> [(&'static str, u64); 4] {
        [
            ("expired", self.expired),
            ("unknown_key", self.unknown_key),
            ("damaged", self.damaged),
            ("mismatched", self.mismatched),
        ]
    }
}

/// The number of heads that broke a relaxed rule.
#[derive(Debug, Serialize)]
struct AcceptedReport<'a> {
    #[serde(flatten)]
    what: &'a Accepted,
    count: u64,
}

impl Report {
    /// Adds the report of another worker.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.clients += other.clients;
        self.tunnels += other.tunnels;
        self.waiting += other.waiting;
        self.timers += other.timers;
        // All workers report the same number.
        self.lost_lines = self.lost_lines.max(other.lost_lines);
        self.draining |= other.draining;
        self.memory += other.memory;
        self.is_short |= other.is_short;
        self.handshakes += other.handshakes;
        self.handshakes_waiting += other.handshakes_waiting;
        self.descriptors = other.descriptors;
        let theirs = other.tickets;
        self.tickets = Tickets {
            issued: self.tickets.issued + theirs.issued,
            redeemed: self.tickets.redeemed + theirs.redeemed,
            expired: self.tickets.expired + theirs.expired,
            unknown_key: self.tickets.unknown_key + theirs.unknown_key,
            damaged: self.tickets.damaged + theirs.damaged,
            mismatched: self.tickets.mismatched + theirs.mismatched,
        };
        for theirs in &other.servers {
            let is_same =
                |mine: &&mut ServerReport| (&mine.service, &mine.server) == (&theirs.service, &theirs.server);
            match self.servers.iter_mut().find(is_same) {
                Some(mine) => mine.add(theirs),
                None => self.servers.push(theirs.clone()),
            }
        }
    }

    /// The report as a JSON object.
    pub(crate) fn json(&self) -> String {
        #[derive(Serialize)]
        struct Object<'a> {
            connections: u64,
            clients: usize,
            requests: u64,
            underscore_fields_dropped: u64,
            retries: u64,
            ejections: u64,
            tunnels: usize,
            waiting: usize,
            timers: usize,
            answers: [u64; 6],
            took_us: u64,
            upstream_connections: u64,
            handshakes: Vec<(&'static str, u64)>,
            upstream_handshakes: Vec<(&'static str, u64)>,
            tickets: Tickets,
            accepted: Vec<AcceptedReport<'a>>,
            ended_early: Vec<(&'static str, u64)>,
            draining: bool,
            servers: &'a [ServerReport],
        }
        let counters = &self.counters;
        let object = Object {
            connections: counters.connections,
            clients: self.clients,
            requests: counters.requests,
            underscore_fields_dropped: counters.underscored,
            retries: counters.retries,
            ejections: counters.ejections,
            tunnels: self.tunnels,
            waiting: self.waiting,
            timers: self.timers,
            answers: counters.responses,
            took_us: counters.took_us,
            upstream_connections: counters.upstream_connections,
            handshakes: counters.handshakes().collect(),
            upstream_handshakes: counters.upstream_handshakes().collect(),
            tickets: self.tickets,
            accepted: counters.accepted().map(|(what, count)| AcceptedReport { what, count }).collect(),
            ended_early: counters.ended().collect(),
            draining: self.draining,
            servers: &self.servers,
        };
        serde_json::to_string(&object).unwrap_or_default()
    }

    /// The report in Prometheus' text format, version 0.0.4.
    pub(crate) fn metrics(&self) -> Exposition {
        let mut text = Exposition::default();
        let counters = &self.counters;
        text.family("weir_build_info", "gauge", "1, with the version of the program.");
        text.sample("weir_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        text.family("weir_connections_total", "counter", "Connections from clients.");
        text.sample("weir_connections_total", &[], counters.connections);
        text.family("weir_clients", "gauge", "Open connections from clients.");
        text.sample("weir_clients", &[], self.clients as u64);
        text.family("weir_tunnels", "gauge", "Connections that carry another protocol.");
        text.sample("weir_tunnels", &[], self.tunnels as u64);
        text.family("weir_waiting_requests", "gauge", "Requests that wait for a connection to a server.");
        text.sample("weir_waiting_requests", &[], self.waiting as u64);
        text.family("weir_timers", "gauge", "Active timers: at most a few for each connection.");
        text.sample("weir_timers", &[], self.timers as u64);
        text.family(
            "weir_requests_total",
            "counter",
            "Requests that the gateway forwarded, or responded to itself.",
        );
        text.sample("weir_requests_total", &[], counters.requests);
        text.family(
            "weir_answers_total",
            "counter",
            "Responses by class of status; none: requests without a response.",
        );
        for (class, count) in CLASSES.iter().zip(counters.responses) {
            text.sample("weir_answers_total", &[("class", class)], count);
        }
        text.family("weir_request_seconds", "histogram", "From a request's head to the end of its response.");
        let mut sum = 0;
        for (bound, count) in BOUNDS.iter().zip(counters.took) {
            sum += count;
            text.sample("weir_request_seconds_bucket", &[("le", &(*bound as f64 / 1e6).to_string())], sum);
        }
        let all: u64 = counters.took.iter().sum();
        text.sample("weir_request_seconds_bucket", &[("le", "+Inf")], all);
        text.sample("weir_request_seconds_sum", &[], counters.took_us as f64 / 1e6);
        text.sample("weir_request_seconds_count", &[], all);
        self.byte_metrics(&mut text);
        text.family("weir_handshakes_total", "counter", "Finished TLS handshakes with clients by kind.");
        for (kind, count) in counters.handshakes() {
            text.sample("weir_handshakes_total", &[("kind", kind)], count);
        }
        text.family(
            "weir_upstream_handshakes_total",
            "counter",
            "Finished TLS handshakes with servers by kind.",
        );
        for (kind, count) in counters.upstream_handshakes() {
            text.sample("weir_upstream_handshakes_total", &[("kind", kind)], count);
        }
        let name = "weir_tls_negotiated_total";
        text.family(name, "counter", "Finished TLS handshakes by version, suite and group.");
        for (with_upstream, Negotiated { version, suite, group }, count) in counters.negotiated() {
            let with = if with_upstream { "server" } else { "client" };
            let labels = [("with", with), ("version", version), ("suite", suite), ("group", group)];
            text.sample(name, &labels, count);
        }
        text.family("weir_tickets_issued_total", "counter", "TLS tickets issued to clients.");
        text.sample("weir_tickets_issued_total", &[], self.tickets.issued);
        text.family(
            "weir_tickets_redeemed_total",
            "counter",
            "TLS tickets with which clients resumed a session.",
        );
        text.sample("weir_tickets_redeemed_total", &[], self.tickets.redeemed);
        text.family("weir_tickets_refused_total", "counter", "Rejected TLS tickets, by reason.");
        for (reason, count) in self.tickets.refused() {
            text.sample("weir_tickets_refused_total", &[("reason", reason)], count);
        }
        text.family(
            "weir_ended_early_total",
            "counter",
            "Requests and connections that ended early, by reason.",
        );
        for (reason, count) in counters.ended() {
            text.sample("weir_ended_early_total", &[("reason", reason)], count);
        }
        let name = "weir_accepted_total";
        text.family(name, "counter", "Message heads that broke a rule relaxed by `accept`.");
        for (Accepted { rule, by }, count) in counters.accepted() {
            let by = match by {
                By::Listener(name) => ("listener", name.as_str()),
                By::Service(name) => ("service", name.as_str()),
            };
            text.sample(name, &[("rule", rule), by], count);
        }
        let name = "weir_underscore_fields_dropped_total";
        text.family(name, "counter", "Request fields dropped for an underscore in their name.");
        text.sample(name, &[], counters.underscored);
        text.family("weir_retries_total", "counter", "Requests that were sent again.");
        text.sample("weir_retries_total", &[], counters.retries);
        text.family("weir_ejections_total", "counter", "Ejections of servers.");
        text.sample("weir_ejections_total", &[], counters.ejections);
        text.family("weir_mirrored_total", "counter", "Mirrored requests, by their fate.");
        for (fate, count) in counters.mirrors() {
            text.sample("weir_mirrored_total", &[("fate", fate)], count);
        }
        text.family("weir_upstream_connections_total", "counter", "Connections to servers.");
        text.sample("weir_upstream_connections_total", &[], counters.upstream_connections);
        let name = "weir_upstream_connections_taken_over_total";
        text.family(name, "counter", "Idle connections to servers handed from one worker to another.");
        text.sample(name, &[], counters.taken_over);
        text.family("weir_access_log_lost_lines_total", "counter", "Lost lines of the access log.");
        text.sample("weir_access_log_lost_lines_total", &[], self.lost_lines);
        self.resource_metrics(&mut text);
        servers::metrics(&self.servers, &mut text);
        text
    }

    fn byte_metrics(&self, text: &mut Exposition) {
        let families = [
            ("weir_received_bytes_total", "Bytes from connections, with heads, TLS and tunnels.", false),
            ("weir_sent_bytes_total", "Bytes to connections, with heads, TLS and tunnels.", true),
        ];
        for (name, help, is_sent) in families {
            text.family(name, "counter", help);
            for (with, Bytes { received, sent }) in self.counters.bytes() {
                text.sample(name, &[("with", with)], if is_sent { sent } else { received });
            }
        }
    }

    fn resource_metrics(&self, text: &mut Exposition) {
        let Open { limit, connections, most_clients, clients, upstreams } = self.descriptors;
        let name = "weir_descriptors";
        text.family(
            name,
            "gauge",
            "File descriptors: the limits of the process and of connections, and those in use.",
        );
        let kinds = [
            ("limit", limit),
            ("connections_limit", connections),
            ("clients_limit", most_clients),
            ("clients", clients),
            ("servers", upstreams),
        ];
        for (kind, count) in kinds {
            text.sample(name, &[("kind", kind)], count as u64);
        }
        text.family(
            "weir_memory_bytes",
            "gauge",
            "Memory in use by connections, in bytes, as the gateway counts it.",
        );
        text.sample("weir_memory_bytes", &[], self.memory as u64);
        text.family(
            "weir_memory_limited",
            "gauge",
            "1 while connections use as much memory as limits.memory allows.",
        );
        text.sample("weir_memory_limited", &[], u64::from(self.is_short));
        let name = "weir_handshakes_unfinished";
        text.family(name, "gauge", "Unfinished handshakes with clients, including what precedes TLS.");
        text.sample(name, &[], self.handshakes as u64);
        let name = "weir_handshakes_waiting";
        text.family(name, "gauge", "Unfinished handshakes with clients that wait for their turn.");
        text.sample(name, &[], self.handshakes_waiting as u64);
        let name = "weir_accept_rests_total";
        text.family(name, "counter", "Pauses of listeners, by the exhausted resource.");
        for (cause, count) in self.counters.rests() {
            text.sample(name, &[("cause", cause)], count);
        }
        let name = "weir_evicted_total";
        text.family(name, "counter", "Idle connections closed to make room, by the exhausted resource.");
        for (kind, cause, count) in self.counters.evictions() {
            text.sample(name, &[("kind", kind), ("cause", cause)], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use crate::limits::{Exhausted, Kind};
    use crate::mirror::Fate;
    use crate::reason::Reason;
    use serde_json::Value;
    use std::time::Duration;
    use weir_http1::{Rule, Rules};
    use weir_tls::{Facts, HandshakeKind};

    fn facts(version: &str, suite: &str, group: Option<&str>, kind: HandshakeKind) -> Facts {
        Facts {
            version: version.parse().unwrap(),
            suite: suite.parse().unwrap(),
            group: group.map(|group| group.parse().unwrap()),
            signature: None,
            kind,
            hello_retry: false,
            alpn: None,
            chain: None,
        }
    }

    /// The report of one worker in which each number is another one.
    fn of_worker() -> Report {
        let mut counters = Counters::default();
        counters.connections = 101;
        counters.upstream_connections = 102;
        counters.taken_over = 103;
        counters.requests = 104;
        counters.underscored = 105;
        counters.retries = 106;
        counters.tunnels = 107;
        counters.ejections = 108;
        for (count, (status, ms)) in
            [(0, 0), (101, 1), (200, 2), (302, 20), (404, 300), (500, 4000), (599, 100_000)]
                .into_iter()
                .enumerate()
        {
            for _ in 0..=count {
                counters.response(status, Duration::from_millis(ms));
            }
        }
        counters.client_bytes(Bytes { received: 1001, sent: 1002 });
        counters.server_bytes(Bytes { received: 1003, sent: 1004 });
        for fate in [Fate::Answered, Fate::Upgrade, Fate::Upgrade] {
            counters.mirror(fate);
        }
        for scarce in [Exhausted::Connections, Exhausted::Memory, Exhausted::Memory] {
            counters.rested(scarce);
            counters.evicted(Kind::Client, scarce);
        }
        counters.evicted(Kind::Upstream, Exhausted::System);
        let full = facts("1.3", "aes128-gcm-sha256", Some("x25519"), HandshakeKind::Full);
        let psk = facts("1.3", "aes256-gcm-sha384", Some("p256"), HandshakeKind::Resume13Psk);
        let ticket = facts("1.2", "ecdhe-ecdsa-aes128-gcm-sha256", None, HandshakeKind::Resume12Ticket);
        for client in [&full, &full, &psk, &ticket] {
            counters.handshake(Some(client));
        }
        for server in [&full, &psk, &psk] {
            counters.upstream_handshake(Some(server));
        }
        for reason in [Reason::BodyTooLarge, Reason::UpstreamClosed, Reason::UpstreamClosed] {
            counters.end(&reason);
        }
        let of_requests: Rules = [Rule::EmptyHost, Rule::HttpMinor].into_iter().collect();
        counters.accept(By::Listener("web".to_owned()), of_requests);
        counters.accept(By::Service("a \"b\"".to_owned()), Rules::NONE.with(Rule::BareLf));
        Report {
            counters,
            clients: 201,
            tunnels: 202,
            waiting: 203,
            timers: 204,
            lost_lines: 205,
            draining: false,
            memory: 206,
            is_short: true,
            handshakes: 207,
            handshakes_waiting: 208,
            descriptors: Open {
                limit: 301,
                connections: 302,
                most_clients: 303,
                clients: 304,
                upstreams: 305,
            },
            tickets: Tickets {
                issued: 401,
                redeemed: 402,
                expired: 403,
                unknown_key: 404,
                damaged: 405,
                mismatched: 406,
            },
            servers: [("app", "10.0.0.1:80", State::Up), ("app", "10.0.0.2:80", State::Down)]
                .map(|(service, server, state)| ServerReport {
                    service: service.to_owned(),
                    server: server.to_owned(),
                    state,
                    weight: 2,
                    configured_weight: 3,
                    in_flight: 501,
                    idle: 502,
                    responses: [1, 2, 3, 4, 5, 6],
                    ejected: 1,
                    down: state == State::Down,
                })
                .into(),
        }
    }

    fn of_two_workers() -> Report {
        let mut report = Report::default();
        report.add(&of_worker());
        report.add(&Report { draining: true, ..of_worker() });
        report
    }

    /// Monitoring depends on each name and label.
    #[test]
    fn metrics_are_as_recorded() {
        let found = of_two_workers().metrics().finish();
        let found = found.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        assert_eq!(found, include_str!("../../testdata/metrics.txt"));
    }

    #[test]
    fn the_status_is_as_recorded() {
        let found: Value = serde_json::from_str(&of_two_workers().json()).unwrap();
        let recorded: Value = serde_json::from_str(include_str!("../../testdata/status.json")).unwrap();
        assert_eq!(found, recorded);
    }
}
