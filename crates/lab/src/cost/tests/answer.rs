//! The cost report of made-up loads: its text, its caveats and its width.

use super::*;

#[test]
fn a_service_with_everything() {
    let cost = World::new().measured();
    assert_eq!(
        cost.lines,
        [
            "TLS 1.3, x25519, aes128-gcm-sha256, ecdsa p-256 key; resumes (2 tickets).",
            "A full handshake takes 816 us, 408 us CPU; a new connection 1.02 ms, in cleartext 204 us.",
            "A resumed one takes 490 us, 204 us CPU: 50 % (50..50 %) less CPU.",
            "Keep-alive request: 61.2 us, 12.2 us CPU; cleartext 51.0 us, 10.2 us: CPU x 1.20 (1.18..1.22).",
            "Reuse connections: from 300 requests on (resumed 150) the handshake is under 10 % of the CPU.",
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

/// A change to the settings, the probe's report or the result of a load.
type Change = fn(&mut World);

#[test]
fn missing_figures_are_noted_with_the_flag_that_adds_them() {
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
            "Keep-alive request: 61.2 us, 12.2 us CPU over TLS.",
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
        let cost = world.measured();
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
        (had_nothing, "never resumes.", "the server issues no tickets. Enable session tickets."),
        (
            declines,
            "never resumes.",
            "the server rejects its tickets. With several workers, use one ticket key.",
        ),
        (some, "40 % resumed.", "Only 400 of 1000 returning clients resumed."),
    ] {
        let cost = World { spoil, ..World::new() }.measured();
        assert!(cost.lines[0].ends_with(first), "{}", cost.lines[0]);
        assert!(cost.lines[2].contains(third), "{}", cost.lines[2]);
        assert!(!cost.lines[4].contains("resumed"), "{}", cost.lines[4]);
        assert!(cost.invalid().is_empty(), "not a failure");
        let phase = cost.phases.iter().find(|phase| phase.case == Case::NewResumed).unwrap();
        assert_eq!(phase.rounds.len(), 1, "not measured again");
    }
}

/// As in Node: two tickets after a full handshake, none after a resumption.
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
    let cost = World { spoil, ..World::new() }.measured();
    let resumed = &cost.findings.cases[&Case::NewResumed];
    assert!(cost.findings.resumed_among_full && resumed.time_us.is_none());
    assert!((resumed.cpu_us.unwrap().median / 250.0 - 1.0).abs() < 0.05, "{resumed:?}");
    assert!(cost.lines[2].starts_with("A resumed one takes 490 us, 2"), "{}", cost.lines[2]);
    assert!(cost.notes.iter().any(|note| note.contains("brings no new ticket")), "{:?}", cost.notes);
    assert!(cost.invalid().is_empty(), "{:?}", cost.invalid());
}

#[test]
fn an_invalid_load_is_named_and_the_others_are_reported() {
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
        (wrong, 3, "Keep-alive request: ", "kept-cleartext, round 1 of 5: errors (3 status): status 301"),
        (
            few,
            1,
            "Not measured: full handshakes",
            "10 responses are too few for a median; measure longer with -d 12s",
        ),
        (closing, 3, "Not measured: keep-alive requests", "11 new ones for 1000 requests; enable keep-alive"),
    ] {
        let cost = World { spoil, ..World::new() }.measured();
        assert!(cost.lines[at].contains(line), "{}", cost.lines[at]);
        let [reason] = &cost.invalid()[..] else { panic!("{:?}", cost.invalid()) };
        assert!(reason.contains(invalid), "{reason}");
        assert!(cost.lines[0].contains("TLS 1.3, x25519"), "{}", cost.lines[0]);
    }
    let nothing: fn(Case, &Options, &mut LoadResult) = |_, _, result| result.validity = "invalid: x".into();
    let cost = World { spoil: nothing, ..World::new() }.measured();
    assert_eq!((cost.invalid().len(), cost.phases[0].rounds.len()), (5, 1));
    assert!(cost.lines[0].ends_with("resumes (2 tickets)."), "as the probe saw: {}", cost.lines[0]);
}

#[test]
fn doubtful_figures_are_noted() {
    type Spoil = fn(Case, &Options, &mut LoadResult);
    let table: [(Spoil, &str); 6] = [
        (
            |case, _, result| {
                if case == Case::NewCleartext || case == Case::KeptCleartext {
                    result.servers[0].cost.cpu_us_per_request = Some(0.1);
                }
            },
            "No CPU for new-cleartext, kept-cleartext: a process other than that of --pid serves it",
        ),
        (
            |case, _, result| result.bytes_received += if case == Case::KeptTls { 900_000 } else { 0 },
            "The responses compared differ: 2039 bytes over TLS, 1139 in cleartext.",
        ),
        (
            |case, _, result| {
                if case == Case::KeptTls {
                    result.servers[0].cost.cpu_us_per_request = Some(8.0);
                }
            },
            "CPU below that of cleartext is an artefact of the load",
        ),
        (
            |case, _, result| {
                if case == Case::KeptTls && result.response.p50_us.is_some_and(|us| us > 62.0) {
                    result.servers[0].cost.cpu_us_per_request = Some(40.0);
                }
            },
            "The rounds vary widely; use a quieter machine or a longer -d.",
        ),
        (
            |case, _, result| {
                if case == Case::NewFull {
                    result.engine.workers[0].utilisation = 0.9;
                }
            },
            "The times of new-full include the load engine's own queue; -c 1",
        ),
        (
            |_, _, result| result.handshakes.negotiated.iter_mut().for_each(|seen| seen.hello_retry = true),
            "HelloRetryRequest",
        ),
    ];
    for (spoil, note) in table {
        let cost = World { spoil, ..World::new() }.measured();
        assert!(cost.notes.iter().any(|text| text.contains(note)), "{note}: {:?}", cost.notes);
        assert!(cost.text().lines().all(|line| line.chars().count() <= 100), "{}", cost.text());
    }
}

/// The longest names and figures.
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
    let cost = World { spoil, ..World::new() }.measured();
    assert!(cost.lines[2].ends_with("less CPU, if any."), "{}", cost.lines[2]);
    assert!(cost.lines[0].contains("rsa 2048"), "the key that signed: {}", cost.lines[0]);
    let mut world = World { spoil, ..World::new() };
    world.question.plain = None;
    world.measured();
    world.probe.negotiated = None;
    world.spoil = |_, _, result| {
        result.handshakes = Handshakes::default();
        result.validity = "invalid: x".into();
    };
    assert!(world.measured().lines[0].starts_with("Negotiated parameters unknown"));
}

#[test]
fn a_request_may_dominate_its_handshake() {
    let spoil: fn(Case, &Options, &mut LoadResult) =
        |_, _, result| result.servers[0].cost.cpu_us_per_request.iter_mut().for_each(|us| *us += 1e5);
    let cost = World { spoil, ..World::new() }.measured();
    assert_eq!(cost.findings.tenth.map(|tenth| tenth.full), Some(1));
    assert!(cost.lines[4].starts_with("The request dominates"), "{}", cost.lines[4]);
}
