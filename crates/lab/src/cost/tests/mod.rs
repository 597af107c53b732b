//! A made-up service and its loads: the report, and the order of the loads.

mod answer;
mod rounds;

use super::*;
use crate::cost::rounds::run;
use std::collections::BTreeMap;
use weir_load::Target;
use weir_load::result::{
    Cost as Cpu, EngineCost, Handshakes, Latency, Negotiated as Seen, ServerCost, Tickets, WorkerCost,
};
use weir_load::{Meter, PerConnection, Schedule, meter};
use weir_probe::{Certificate, Chain, Resumed, Tickets13, Verification};
use weir_tls::Roots;

/// A service over TLS, and the results of its loads.
struct World {
    question: Question,
    probe: Report,
    /// Changes a result, by its case.
    spoil: fn(Case, &Options, &mut LoadResult),
}

impl World {
    fn new() -> Self {
        let question = Question {
            url: "https://127.0.0.1:8443/bytes/1000".parse().unwrap(),
            plain: Some("http://127.0.0.1:8080".parse().unwrap()),
            roots: Roots::DangerouslyNone,
            servers: vec![meter::process("4711").unwrap()],
            window: Duration::from_secs(4),
            connections: 4,
        };
        Self { question, probe: report(), spoil: |_, _, _| () }
    }

    /// Everything after the probe. The machine's speed varies, alike for all cases.
    fn answer(&self) -> Result<Cost, CostError> {
        let mut rounds = BTreeMap::new();
        let mut measure = |options: &Options| {
            let case = case_of(options);
            let key = (case, options.policy.resume as u32, is_paced(options));
            let round = rounds.entry(key).or_insert(0);
            let slow = [1.0, 1.02, 1.01, 1.04, 1.03][*round];
            let own = if case == Case::KeptTls { [1.0, 1.02, 0.98, 1.01, 0.99][*round] } else { 1.0 };
            *round = (*round + 1) % 5;
            let mut result = result(case, options, slow * own);
            (self.spoil)(case, options, &mut result);
            Ok(result)
        };
        answer(&self.question, self.probe.clone(), &mut measure, |_| ())
    }

    fn measured(&self) -> Cost {
        let cost = self.answer().unwrap();
        for (at, line) in cost.lines.iter().enumerate() {
            let line = format!("{}. {line}", at + 1);
            assert!(line.chars().count() <= 100, "{}: {line}", line.chars().count());
            assert!(line.ends_with('.'), "{line}");
        }
        assert!(cost.notes.last().unwrap().starts_with("An estimate: medians of 5 rounds (least..most)"));
        cost
    }
}

fn is_paced(options: &Options) -> bool {
    matches!(options.schedule, Schedule::Closed { think } if !think.is_zero())
}

fn case_of(options: &Options) -> Case {
    match (options.endpoint.tls, options.policy.per_connection) {
        (false, PerConnection::Unlimited) => Case::KeptCleartext,
        (false, _) => Case::NewCleartext,
        (true, PerConnection::Unlimited) => Case::KeptTls,
        (true, _) if options.policy.resume > 0.0 => Case::NewResumed,
        (true, _) => Case::NewFull,
    }
}

/// A valid run in which everything takes `slow` times as long as usual.
fn result(case: Case, options: &Options, slow: f64) -> LoadResult {
    let (time_us, cpu_us, handshake) = match case {
        Case::NewCleartext => (200.0, 50.0, None),
        Case::NewFull => (1000.0, 450.0, Some(("full", 800.0))),
        Case::NewResumed => (700.0, 250.0, Some(("resume-1.3-psk", 480.0))),
        Case::KeptCleartext => (50.0, 10.0, None),
        Case::KeptTls => (60.0, 12.0, None),
    };
    let latency =
        |us: f64| Latency { count: 1000, mean_us: us * slow, p50_us: Some(us * slow), ..Latency::default() };
    let requests = 1000;
    let seen = |kind: &str, count| Seen {
        version: "1.3".into(),
        suite: "aes128-gcm-sha256".into(),
        group: Some("x25519".into()),
        signature: Some("ecdsa-p256-sha256".into()),
        kind: kind.into(),
        count,
        ..Seen::default()
    };
    let full = Handshakes {
        full: requests,
        in_window: requests,
        tickets: [("full".to_owned(), Tickets { least: 2, most: 2 })].into(),
        negotiated: vec![seen("full", requests)],
        ..Handshakes::default()
    };
    let handshakes = match case {
        Case::NewFull => full,
        Case::NewResumed => Handshakes {
            resumed: [("resume-1.3-psk".to_owned(), requests)].into(),
            offered: requests,
            resumed_in_window: requests,
            negotiated: vec![seen("resume-1.3-psk", requests)],
            ..full
        },
        Case::NewCleartext | Case::KeptCleartext | Case::KeptTls => Handshakes::default(),
    };
    let cost = |us: f64| Cpu { cpu_us_per_request: Some(us * slow), cores: 1, ..Cpu::default() };
    let mut result = LoadResult {
        url: options.url(),
        window_s: options.phases.window.as_secs_f64(),
        requests,
        bytes_received: requests * 1139,
        response: latency(time_us),
        handshake: handshake.map(|(kind, us)| (kind.to_owned(), latency(us))).into_iter().collect(),
        handshakes,
        connections_opened_in_window: if case.keeps() { 0 } else { requests },
        engine: EngineCost {
            workers: vec![WorkerCost { utilisation: 0.5, ..WorkerCost::default() }],
            ..EngineCost::default()
        },
        servers: options
            .servers
            .iter()
            .map(|_| ServerCost { cost: cost(cpu_us), ..ServerCost::default() })
            .collect(),
        validity: "valid".into(),
        ..LoadResult::default()
    };
    result.asked.resume_percent = options.policy.resume;
    result
}

fn report() -> Report {
    let certificate = |key: &str| Certificate {
        subject: "CN=a".into(),
        issuer: "CN=a".into(),
        key: key.into(),
        signature: "ecdsa-sha256".into(),
        not_before: "2026-01-01".into(),
        not_after: "2026-04-01".into(),
        days_left: 60,
        bytes: 500,
        self_issued: true,
    };
    let chain = |key: &str| Chain {
        certificates: vec![certificate(key)],
        bytes: 500,
        over_initial_window: false,
        root_sent: false,
        ocsp_bytes: 0,
    };
    Report {
        schema: 1,
        host: "127.0.0.1".into(),
        port: 8443,
        address: "127.0.0.1:8443".into(),
        addresses: 1,
        server_name: None,
        connections: 60,
        elapsed_ms: 300,
        versions: Vec::new(),
        negotiated: Some(weir_probe::Negotiated {
            version: "1.3",
            suite: "aes128-gcm-sha256".into(),
            group: Some("x25519".into()),
            signature: Some("ecdsa-p256-sha256".into()),
            hello_retry: false,
        }),
        first_shares: Vec::new(),
        alpn: None,
        verification: Verification::Verified,
        chains: vec![chain("rsa 2048"), chain("ecdsa p-256")],
        client_certificate: None,
        tickets_13: Some(Tickets13 { count: 2, tickets: Vec::new() }),
        session_12: None,
        resumptions: vec![Resumed {
            kind: "resume-1.3-psk",
            tries: 5,
            resumed: 5,
            failed: 0,
            not_tried: None,
        }],
        notes: Vec::new(),
        advice: Vec::new(),
        load: None,
    }
}
