//! The answer to made-up loads: what is told, what is left out, and that it fits.

use super::*;
use crate::cost::rounds::run;
use std::collections::BTreeMap;
use weir_load::result::{
    Cost as Cpu, EngineCost, Handshakes, Latency, Negotiated as Seen, ServerCost, Tickets, WorkerCost,
};
use weir_load::{Meter, PerConnection, Schedule, meter};
use weir_probe::{Certificate, Chain, Resumed, Tickets13, Verification};

/// A service over TLS, and what a load of it finds.
struct World {
    question: Question,
    probe: Report,
    /// What becomes of a result, by its case.
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

    /// All but the probe. The machine is now faster, now slower, for all alike.
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

    fn told(&self) -> Cost {
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

/// Cleartext answered sooner, so it was asked more often, and each request cost less: TLS was charged for its absence.
#[test]
fn kept_connections_are_compared_at_nearly_one_rate() {
    let asked = |world: &World| {
        let mut asked = Vec::new();
        let mut measure = |options: &Options| {
            asked.push((case_of(options), is_paced(options)));
            Ok(result(case_of(options), options, 1.0))
        };
        answer(&world.question, world.probe.clone(), &mut measure, |_| ()).unwrap();
        asked
    };
    let mut world = World::new();
    let all = asked(&world);
    assert_eq!(all[0], (Case::KeptTls, false), "finds the pace");
    assert!(all[1..].iter().all(|(case, is_paced)| *is_paced == case.keeps()), "{all:?}");
    world.question.plain = None;
    assert!(asked(&world).iter().all(|(_, is_paced)| !is_paced), "nothing to compare with");
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

#[test]
fn a_service_with_everything() {
    let cost = World::new().told();
    assert_eq!(
        cost.lines,
        [
            "TLS 1.3, x25519, aes128-gcm-sha256, ecdsa p-256 key; resumes (2 tickets).",
            "A full handshake takes 816 us, 408 us CPU; a new connection 1.02 ms, in cleartext 204 us.",
            "A resumed one takes 490 us, 204 us CPU: 50 % (50..50 %) less CPU.",
            "A kept request takes 61.2 us, 12.2 us CPU; cleartext 51.0 us, 10.2 us: CPU x 1.20 (1.18..1.22).",
            "Keep connections: from 300 requests on (resumed 150) the handshake is under 10 % of the CPU.",
        ]
    );
    assert_eq!(cost.notes.len(), 1, "{:?}", cost.notes);
    assert!(cost.invalid().is_empty());
    assert_eq!(cost.cleartext.target().unwrap().to_string(), "http://127.0.0.1:8080/bytes/1000");
    let value = serde_json::to_value(&cost).unwrap();
    assert_eq!(value["findings"]["cases"]["kept-cleartext"]["cpu_us"]["min"], 10.0);
    assert_eq!(value["phases"].as_array().unwrap().len(), 5);
    assert_eq!(value["cleartext"]["given"], "http://127.0.0.1:8080/bytes/1000");
}

/// Changes what is asked for, what the probe saw, or what a load finds.
type Change = fn(&mut World);

#[test]
fn what_is_missing_is_said_with_the_flag_that_adds_it() {
    let no_plain: Change = |world| world.question.plain = None;
    let no_pid: Change = |world| world.question.servers.clear();
    let table: [(&str, &[Change], usize, &str, &str); 8] = [
        (
            "no cleartext",
            &[no_plain],
            1,
            "a new connection with a request 1.02 ms, 459 us CPU",
            "--plain http",
        ),
        (
            "no cleartext",
            &[no_plain],
            3,
            "kept connection takes 61.2 us, 12.2 us CPU over TLS.",
            "--plain http",
        ),
        (
            "no process",
            &[no_pid],
            1,
            "takes 816 us; a new connection 1.02 ms, in cleartext 204 us.",
            "--pid PID",
        ),
        ("no process", &[no_pid], 2, "40 % (40..40 %) less time", "--pid PID"),
        ("no process", &[no_pid], 3, "61.2 us; cleartext 51.0 us: time x 1.20", "--pid PID"),
        ("no process", &[no_pid], 4, "is under 10 % of the time.", "--pid PID"),
        ("neither", &[no_plain, no_pid], 2, "takes 490 us: 40 %", "--plain http"),
        ("neither", &[no_plain, no_pid], 4, "from 120 requests on (resumed 70)", "--pid PID"),
    ];
    for (what, changes, at, line, note) in table {
        let mut world = World::new();
        changes.iter().for_each(|change| change(&mut world));
        let cost = world.told();
        assert!(cost.lines[at].contains(line), "{what}: {}", cost.lines[at]);
        assert!(cost.notes.iter().any(|text| text.contains(note)), "{what}: {:?}", cost.notes);
        assert!(cost.invalid().is_empty(), "{what}");
    }
}

#[test]
fn a_server_that_does_not_resume_is_a_finding() {
    let had_nothing: fn(Case, &Options, &mut LoadResult) = |case, _, result| {
        if case == Case::NewResumed {
            result.handshakes.resumed.clear();
            (result.handshakes.offered, result.handshakes.had_nothing) = (0, 1000);
            result.validity =
                "invalid: negotiated (1000 connections were to resume and had no session)".into();
        }
    };
    let declines: fn(Case, &Options, &mut LoadResult) = |case, _, result| {
        if case == Case::NewResumed {
            result.handshakes.resumed.clear();
            result.handshakes.declined = 1000;
            result.validity = "invalid: negotiated (1000 resumptions were declined by the server)".into();
        }
    };
    let some: fn(Case, &Options, &mut LoadResult) = |case, _, result| {
        if case == Case::NewResumed {
            *result.handshakes.resumed.get_mut("resume-1.3-psk").unwrap() = 400;
            result.handshakes.declined = 600;
            result.validity = "invalid: negotiated (600 resumptions were declined by the server)".into();
        }
    };
    for (spoil, first, third) in [
        (had_nothing, "resumes nothing.", "no ticket is given. Turn session tickets on"),
        (declines, "resumes nothing.", "no ticket is taken. Give all workers and hosts one key."),
        (some, "40 % resumed.", "Only 400 of 1000 returning clients resumed."),
    ] {
        let cost = World { spoil, ..World::new() }.told();
        assert!(cost.lines[0].ends_with(first), "{}", cost.lines[0]);
        assert!(cost.lines[2].contains(third), "{}", cost.lines[2]);
        assert!(!cost.lines[4].contains("resumed"), "{}", cost.lines[4]);
        assert!(cost.invalid().is_empty(), "it is no failure");
        let phase = cost.phases.iter().find(|phase| phase.case == Case::NewResumed).unwrap();
        assert_eq!(phase.rounds.len(), 1, "it is not asked again");
    }
}

/// As Node's does: two tickets after a full handshake, none after a resumption.
#[test]
fn a_server_whose_resumed_sessions_bring_no_ticket_is_measured_half_and_half() {
    let spoil: fn(Case, &Options, &mut LoadResult) = |case, options, result| match case {
        Case::NewResumed if options.policy.resume == 100.0 => {
            (result.handshakes.offered, result.handshakes.had_nothing) = (600, 400);
            result.handshakes.resumed.insert("resume-1.3-psk".into(), 600);
            result.validity =
                "invalid: negotiated (400 connections were to resume and had no session)".into();
        }
        Case::NewResumed => {
            (result.handshakes.offered, result.handshakes.resumed_in_window) = (500, 500);
            result.handshakes.resumed.insert("resume-1.3-psk".into(), 500);
            // 450 of the full ones and 250 of the resumed ones, each in its half.
            let slow = result.response.p50_us.unwrap() / 700.0;
            result.servers[0].cost.cpu_us_per_request = Some(350.0 * slow);
        }
        _ => {}
    };
    let cost = World { spoil, ..World::new() }.told();
    let resumed = &cost.findings.cases[&Case::NewResumed];
    assert!(cost.findings.resumed_among_full && resumed.time_us.is_none());
    assert!((resumed.cpu_us.unwrap().median / 250.0 - 1.0).abs() < 0.05, "{resumed:?}");
    assert!(cost.lines[2].starts_with("A resumed one takes 490 us, 2"), "{}", cost.lines[2]);
    assert!(cost.notes.iter().any(|note| note.contains("brings no new ticket")), "{:?}", cost.notes);
    assert!(cost.invalid().is_empty(), "{:?}", cost.invalid());
}

#[test]
fn a_load_that_is_no_evidence_is_named_and_the_rest_is_told() {
    let wrong: fn(Case, &Options, &mut LoadResult) = |case, _, result| {
        if case == Case::KeptCleartext {
            result.errors.insert("status".into(), 3);
            result.error_examples.insert("status".into(), "status 301".into());
            result.validity = "invalid: errors (3 status)".into();
        }
    };
    let few: fn(Case, &Options, &mut LoadResult) = |case, _, result| {
        if case == Case::NewFull {
            (result.response.count, result.response.p50_us) = (10, None);
        }
    };
    let closing: fn(Case, &Options, &mut LoadResult) = |case, _, result| {
        if case == Case::KeptTls {
            result.connections_opened_in_window = 11;
        }
    };
    for (spoil, at, line, invalid) in [
        (
            wrong,
            3,
            "on a kept connection takes",
            "kept-cleartext, round 1 of 5: errors (3 status): status 301",
        ),
        (
            few,
            1,
            "Not measured: full handshakes",
            "10 answers are too few for a median; give the cases more time: -d 12s",
        ),
        (closing, 3, "Not measured: kept connections", "11 new ones for 1000 requests; turn keep-alive on"),
    ] {
        let cost = World { spoil, ..World::new() }.told();
        assert!(cost.lines[at].contains(line), "{}", cost.lines[at]);
        let [reason] = &cost.invalid()[..] else { panic!("{:?}", cost.invalid()) };
        assert!(reason.contains(invalid), "{reason}");
        assert!(cost.lines[0].contains("TLS 1.3, x25519"), "{}", cost.lines[0]);
    }
    let nothing: fn(Case, &Options, &mut LoadResult) = |_, _, result| result.validity = "invalid: x".into();
    let cost = World { spoil: nothing, ..World::new() }.told();
    assert_eq!((cost.invalid().len(), cost.phases[0].rounds.len()), (5, 1));
    assert!(cost.lines[0].ends_with("resumes (2 tickets)."), "as the probe saw: {}", cost.lines[0]);
}

#[test]
fn what_makes_figures_doubtful_is_noted() {
    type Spoil = fn(Case, &Options, &mut LoadResult);
    let table: [(Spoil, &str); 6] = [
        (
            |case, _, result| {
                if case == Case::NewCleartext || case == Case::KeptCleartext {
                    result.servers[0].cost.cpu_us_per_request = Some(0.1);
                }
            },
            "No CPU of new-cleartext, kept-cleartext: another process than that of --pid serves it",
        ),
        (
            |case, _, result| result.bytes_received += if case == Case::KeptTls { 900_000 } else { 0 },
            "Two answers are compared, not one: 2039 bytes over TLS, 1139 in cleartext.",
        ),
        (
            |case, _, result| {
                if case == Case::KeptTls {
                    result.servers[0].cost.cpu_us_per_request = Some(8.0);
                }
            },
            "CPU below that of cleartext is the load's doing",
        ),
        (
            |case, _, result| {
                if case == Case::KeptTls && result.response.p50_us.is_some_and(|us| us > 62.0) {
                    result.servers[0].cost.cpu_us_per_request = Some(40.0);
                }
            },
            "The rounds lie far apart: a quieter machine or a longer -d tells more.",
        ),
        (
            |case, _, result| {
                if case == Case::NewFull {
                    result.engine.workers[0].utilisation = 0.9;
                }
            },
            "In the times of new-full is the load engine's own queue; -c 1",
        ),
        (
            |_, _, result| result.handshakes.negotiated.iter_mut().for_each(|seen| seen.hello_retry = true),
            "HelloRetryRequest",
        ),
    ];
    for (spoil, note) in table {
        let cost = World { spoil, ..World::new() }.told();
        assert!(cost.notes.iter().any(|text| text.contains(note)), "{note}: {:?}", cost.notes);
        assert!(cost.text().lines().all(|line| line.chars().count() <= 100), "{}", cost.text());
    }
}

/// The longest names and figures that there are.
#[test]
fn lines_fit_whatever_was_measured() {
    let spoil: fn(Case, &Options, &mut LoadResult) = |case, _, result| {
        for seen in &mut result.handshakes.negotiated {
            seen.group = Some("x25519mlkem768".into());
            seen.suite = "chacha20-poly1305-sha256".into();
            seen.signature = Some("rsa-pss-sha256".into());
        }
        let long = |latency: &mut Latency| latency.p50_us = latency.p50_us.map(|us| us * 99.9);
        long(&mut result.response);
        result.handshake.values_mut().for_each(long);
        let cpu = &mut result.servers[0].cost.cpu_us_per_request;
        *cpu = Some(match case {
            Case::NewFull | Case::NewResumed => 99_900.0,
            Case::NewCleartext => 99.9,
            Case::KeptCleartext => result.response.p50_us.unwrap() / 500.0,
            Case::KeptTls => 99.9,
        });
    };
    let cost = World { spoil, ..World::new() }.told();
    assert!(cost.lines[2].ends_with("less CPU, if any."), "{}", cost.lines[2]);
    assert!(cost.lines[0].contains("rsa 2048"), "the key that signed: {}", cost.lines[0]);
    let mut world = World { spoil, ..World::new() };
    world.question.plain = None;
    world.told();
    world.probe.negotiated = None;
    world.spoil = |_, _, result| {
        result.handshakes = Handshakes::default();
        result.validity = "invalid: x".into();
    };
    assert!(world.told().lines[0].starts_with("What is negotiated is not known"));
}

#[test]
fn a_handshake_that_is_little_beside_its_request_is_said_to_be() {
    let spoil: fn(Case, &Options, &mut LoadResult) =
        |_, _, result| result.servers[0].cost.cpu_us_per_request.iter_mut().for_each(|us| *us += 1e5);
    let cost = World { spoil, ..World::new() }.told();
    assert_eq!(cost.findings.tenth.map(|tenth| tenth.full), Some(1));
    assert!(cost.lines[4].starts_with("The request dominates"), "{}", cost.lines[4]);
}

#[test]
fn a_wrong_question_says_what_to_give_instead() {
    let measure = |_: &Options| unreachable!("nothing is to be measured");
    let mut question = World::new().question;
    question.plain = Some("https://127.0.0.1:8443".parse().unwrap());
    let error = cost(&question, measure, |_| ()).unwrap_err();
    assert!(
        error.is_usage() && error.to_string().starts_with("--plain: https://127.0.0.1:8443/ is over TLS")
    );
    question.url = "http://127.0.0.1:8080/x".parse().unwrap();
    let error = cost(&question, measure, |_| ()).unwrap_err();
    let next = "weir cost https://HOST:PORT/PATH --plain http://127.0.0.1:8080/x";
    assert!(error.is_usage() && error.to_string().ends_with(next), "{error}");
}

#[test]
fn cleartext_is_guessed_on_port_80_alone_and_never_silently() {
    let mut world = World::new();
    world.question.plain = None;
    world.question.url = "https://a.test/x".parse().unwrap();
    let cost = world.told();
    assert_eq!(cost.cleartext.target().unwrap().to_string(), "http://a.test/x");
    assert!(cost.notes[0].starts_with("Cleartext is http://a.test/x, which answers"), "{:?}", cost.notes);
    world.spoil = |_, options, result| {
        if !options.endpoint.tls {
            result.errors.insert("status".into(), 9);
            result.error_examples.insert("status".into(), "status 301".into());
            result.validity = "invalid: errors (9 status)".into();
        }
    };
    let cost = world.told();
    assert!(cost.cleartext.target().is_none() && cost.invalid().is_empty());
    assert!(
        cost.notes[0]
            .starts_with("Not compared with cleartext: http://a.test/x: errors (9 status): status 301"),
        "{:?}",
        cost.notes
    );
}

#[test]
fn rounds_alternate_and_an_end_that_was_asked_for_is_an_end() {
    let world = World::new();
    let cases = || -> Vec<(Case, Options)> {
        let plain = world.question.plain.as_ref();
        Case::ALL
            .into_iter()
            .map(|case| (case, case.options(&world.question, plain, &world.probe).unwrap()))
            .collect()
    };
    let (mut seen, mut told) = (Vec::new(), Vec::new());
    let phases = run(
        cases(),
        |options| {
            seen.push(case_of(options));
            Ok(result(case_of(options), options, 1.0))
        },
        |round, left| told.push((round, left)),
    );
    assert!(phases.unwrap().iter().all(|phase| phase.rounds.len() == 5));
    let backwards: Vec<Case> = Case::ALL.into_iter().rev().collect();
    let rounds: Vec<&[Case]> = seen.chunks(5).collect();
    assert_eq!(rounds, [&Case::ALL[..], &backwards, &Case::ALL, &backwards, &Case::ALL]);
    let second = |seconds| Duration::from_secs(seconds);
    assert_eq!(told, [(0, second(25)), (1, second(20)), (2, second(15)), (3, second(10)), (4, second(5))]);

    let ended = run(cases(), |_| Err(LoadError::NoWindow), |_, _| ());
    assert!(matches!(ended, Err(CostError::Interrupted)));
    let partial = |options: &Options| Ok(LoadResult { partial: true, ..result(Case::KeptTls, options, 1.0) });
    assert!(matches!(run(cases(), partial, |_, _| ()), Err(CostError::Interrupted)));

    // Gone in the third round: what it had been asked before is not enough.
    let mut left = 12;
    let gone = |options: &Options| {
        left -= 1;
        match left {
            0.. => Ok(result(case_of(options), options, 1.0)),
            _ => Err(LoadError::System(std::io::ErrorKind::ConnectionRefused.into())),
        }
    };
    let phases = run(cases(), gone, |_, _| ()).unwrap();
    assert!(phases.iter().all(|phase| phase.invalid().is_some_and(|why| why.contains("refused"))));
}

#[test]
fn every_case_is_the_load_that_its_name_says() {
    let mut world = World::new();
    let options = |world: &World, case: Case| {
        let plain: Target = "http://127.0.0.1:8080/x".parse().unwrap();
        case.options(&world.question, Some(&plain), &world.probe).unwrap()
    };
    for case in Case::ALL {
        let options = options(&world, case);
        options.check().unwrap();
        assert_eq!(case_of(&options), case);
        assert_eq!((options.connections, options.phases.window), (4, Duration::from_millis(800)));
        assert_eq!(options.phases.warmup, Duration::from_millis(200));
        assert_eq!(options.servers[0].meter, Meter::Process(4711));
        assert!(options.tls.insecure && options.tls.groups.is_empty());
        assert!(case.options(&world.question, None, &world.probe).is_some() == options.endpoint.tls);
    }
    world.probe.negotiated.as_mut().unwrap().group = Some("x25519mlkem768".into());
    assert_eq!(options(&world, Case::NewFull).tls.groups[0].name(), "x25519mlkem768");
}

#[test]
fn case_names_are_those_of_the_json() {
    let names: BTreeMap<Case, &str> = Case::ALL.into_iter().map(|case| (case, case.name())).collect();
    let value = serde_json::to_value(&names).unwrap();
    assert!(value.as_object().unwrap().iter().all(|(key, name)| key == name), "{value}");
}
