//! A snapshot of the gateway's state, for people and programs.

use super::exposition::Exposition;
use super::latency::{self, LatencyByName};
use super::metrics::Counters;
use super::servers::{self, ServerReport};
use serde::Serialize;
use serde_json::Value;

/// The state of one worker, or of all workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub counters: Counters,
    pub draining: bool,
    pub servers: Vec<ServerReport>,
    /// The response times of the services that had a response.
    pub service_latencies: LatencyByName,
    /// The response times of the named routes that had a response.
    pub route_latencies: LatencyByName,
}

impl Report {
    /// Adds the report of another worker.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.draining |= other.draining;
        latency::add(&mut self.service_latencies, &other.service_latencies);
        latency::add(&mut self.route_latencies, &other.route_latencies);
        servers::add(&mut self.servers, &other.servers);
    }

    /// The report as a JSON object.
    pub(crate) fn json(&self) -> String {
        #[derive(Serialize)]
        struct Object<'a> {
            #[serde(flatten)]
            counters: Value,
            draining: bool,
            servers: &'a [ServerReport],
        }
        let Self { counters, draining, servers, .. } = self;
        let object = Object { counters: counters.json(), draining: *draining, servers };
        serde_json::to_string(&object).unwrap_or_default()
    }

    /// The report in Prometheus' text format, version 0.0.4.
    pub(crate) fn metrics(&self) -> Exposition {
        let mut text = Exposition::default();
        text.family("weir_build_info", "gauge", "1, with the version of the program.");
        text.sample("weir_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        self.counters.write(&mut text);
        latency::metrics(&self.service_latencies, &self.route_latencies, &mut text);
        servers::metrics(&self.servers, &mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::{Counts, Process, Seconds};
    use super::super::{By, Bytes, Latency, Measured, RetryRule, Source, State};
    use super::*;
    use crate::limits::{Exhausted, Kind};
    use crate::mirror::Fate;
    use crate::reason::Reason;
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

    /// The report of one worker, with a different value for each number.
    fn of_worker() -> Report {
        let mut counters = Counters {
            connections: 101,
            upstream_connections: 102,
            taken_over: 103,
            requests: 104,
            underscored: 105,
            retries: 103,
            grpc: Counts([1; 17]),
            tunnels: 107,
            ejections: 108,
            clients: 201,
            open_tunnels: 202,
            waiting: 203,
            timers: 204,
            lost_lines: Process([205]),
            memory: 206,
            memory_limited: Process([1]),
            handshakes_unfinished: 207,
            handshakes_waiting: 208,
            descriptors: Process([301, 302, 303, 304, 305]),
            tickets_issued: 401,
            tickets_redeemed: 402,
            tickets_refused: Counts([403, 404, 405, 406]),
            http2_field_bytes: Counts([501, 502, 503, 504, 505, 506, 507, 508]),
            http2_window_seconds: Seconds([1_500_000, 250]),
            ..Counters::default()
        };
        for (count, (status, ms)) in
            [(0, 0), (101, 1), (200, 2), (302, 20), (404, 300), (500, 4000), (599, 100_000)]
                .into_iter()
                .enumerate()
        {
            for _ in 0..=count {
                counters.response(status, Duration::from_millis(ms));
            }
        }
        let (mut of_service, mut of_route) = (Latency::default(), Latency::default());
        for (status, ms) in [(200, 1), (200, 30), (503, 9000)] {
            let measured = Measured::new(status, Duration::from_millis(ms));
            of_service.record(measured);
            of_route.record(measured);
        }
        of_route.record(Measured::new(302, Duration::ZERO));
        counters.client_bytes(Bytes { received: 1001, sent: 1002 });
        counters.server_bytes(Bytes { received: 1003, sent: 1004 });
        for rule in [RetryRule::ReusedConnection, RetryRule::GoAway, RetryRule::GoAway] {
            counters.retry(rule);
        }
        for fate in [Fate::Responded, Fate::Upgrade, Fate::Upgrade] {
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
            draining: false,
            servers: [("app", "10.0.0.1:80", State::Up), ("app", "10.0.0.2:80", State::Down)]
                .map(|(service, server, state)| ServerReport {
                    service: service.to_owned(),
                    server: server.to_owned(),
                    state,
                    from: Source::File,
                    weight: 2,
                    configured_weight: 3,
                    in_flight: 501,
                    idle: 502,
                    responses: [1, 2, 3, 4, 5, 6],
                    ejected: 1,
                    down: state == State::Down,
                })
                .into(),
            service_latencies: [("app".to_owned(), of_service)].into(),
            route_latencies: [("shop".to_owned(), of_route)].into(),
        }
    }

    fn of_two_workers() -> Report {
        let mut report = Report::default();
        report.add(&of_worker());
        report.add(&Report { draining: true, ..of_worker() });
        report
    }

    /// Dashboards and alerts depend on each name and label, so the recorded lines must not change. New metrics may be
    /// missing in the recording.
    #[test]
    fn metrics_are_as_recorded() {
        let page = of_two_workers().metrics().finish().replace(env!("CARGO_PKG_VERSION"), "VERSION");
        let recorded = include_str!("../../testdata/metrics.txt");
        let families = page.split("# HELP ").skip(1).map(|family| format!("# HELP {family}"));
        let kinds: Vec<_> = recorded.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let is_recorded =
            |family: &String| kinds.iter().any(|kind| family.contains(&format!("# TYPE {kind}\n")));
        let found: String = families.filter(is_recorded).collect();
        for (line, expected) in found.lines().zip(recorded.lines()) {
            assert_eq!(line, expected);
        }
        assert_eq!(found.len(), recorded.len());
    }

    /// docs/gateway/monitoring.md must list each metric, with its kind, labels and help.
    #[test]
    fn metrics_are_documented() {
        let document = include_str!("../../../../docs/gateway/monitoring.md");
        let page = of_two_workers().metrics().finish();
        for family in page.split("# HELP ").skip(1) {
            let mut lines = family.lines();
            let (name, help) = lines.next().unwrap().split_once(' ').unwrap();
            let (_, kind) = lines.next().unwrap().rsplit_once(' ').unwrap();
            let labels = lines.next().unwrap().split(['{', ',']).filter_map(|part| part.split_once("=\""));
            let labels: Vec<_> = labels.map(|(label, _)| format!("`{label}`")).collect();
            let labels = if labels.is_empty() { "-".to_owned() } else { labels.join(", ") };
            let row = format!("| `{name}` | {kind} | {labels} | {help} |");
            assert!(document.lines().any(|line| line == row), "docs/gateway/monitoring.md has no {row}");
        }
    }

    #[test]
    fn the_status_is_as_recorded() {
        let found: Value = serde_json::from_str(&of_two_workers().json()).unwrap();
        let recorded: Value = serde_json::from_str(include_str!("../../testdata/status.json")).unwrap();
        for (key, value) in recorded.as_object().unwrap() {
            assert_eq!(&found[key], value, "{key}");
        }
    }
}
