//! Runs that break one rule each.

use super::*;
use crate::findings::judge::Judge as _;
use crate::instrument::gateway::run::UpstreamHandshakes;
use crate::instrument::gateway::testing::{experiment, negotiated, record, result_for, with};
use crate::instrument::gateway::{Case, Gateway, Load, Mode};
use crate::store::run::Validity;
use weir_load::result::Pacer;

fn reason(mode: Mode, load: Load, spoil: impl FnOnce(&mut Run<Seen>)) -> String {
    let mut record = record(mode, load);
    spoil(&mut record);
    Gateway::judge(&experiment(), &mut record).expect("is a cell of it");
    record.validity.to_string()
}

fn saturated(spoil: impl FnOnce(&mut LoadResult)) -> String {
    reason(Mode::H1H1c, Load::Saturated, |record| {
        spoil(record.seen.observation.load.as_mut().expect("a result"));
    })
}

#[test]
fn good_runs_are_valid() {
    let http1 = [Mode::H1c, Mode::H1, Mode::H1cH1c, Mode::H1H1c, Mode::H1cH1, Mode::H1H1];
    let http2 = [Mode::H2c, Mode::H2, Mode::H2cH1c, Mode::H2H1c, Mode::H2H1, Mode::H2cH2c, Mode::H2H2];
    for mode in http1.into_iter().chain(http2) {
        for load in [Load::Saturated, Load::EqualRate] {
            assert_eq!(reason(mode, load, |_| {}), "valid", "{mode} {load}");
        }
    }
}

#[test]
fn the_load_engine_spoke_the_version_of_the_clients_side() {
    let spoilt = |mode, spoil: &dyn Fn(&mut LoadResult)| {
        reason(mode, Load::Saturated, |record| {
            spoil(record.seen.observation.load.as_mut().expect("a result"));
        })
    };
    let http1 = |load: &mut LoadResult| load.http2 = None;
    for mode in [Mode::H2cH1c, Mode::H2H2] {
        let why = "invalid: version: the load engine spoke HTTP/1.1, expected HTTP/2";
        assert_eq!(spoilt(mode, &http1), why, "{mode}");
    }
    let http2 = |load: &mut LoadResult| load.http2 = Some(Default::default());
    let why = "invalid: version: the load engine spoke HTTP/2, expected HTTP/1.1";
    assert_eq!(spoilt(Mode::H1cH1c, &http2), why);
    let agreed = |alpn: Option<&str>| {
        let alpn = alpn.map(str::to_owned);
        move |load: &mut LoadResult| load.handshakes.negotiated[0].alpn.clone_from(&alpn)
    };
    for (mode, alpn, why) in [
        (Mode::H2H1c, None, "8 handshakes agreed on no protocol, expected h2"),
        (Mode::H2H1c, Some("http/1.1"), "8 handshakes agreed on http/1.1, expected h2"),
        (Mode::H1H1c, Some("h2"), "8 handshakes agreed on h2, expected http/1.1"),
    ] {
        assert_eq!(spoilt(mode, &agreed(alpn)), format!("invalid: version: {why}"));
    }
    assert_eq!(spoilt(Mode::H1H1c, &agreed(Some("http/1.1"))), "valid");
}

#[test]
fn the_origin_was_reached_by_the_version_of_its_side() {
    let with =
        |mode, http1| reason(mode, Load::Saturated, |record| record.seen.observation.upstream_http1 = http1);
    for mode in [Mode::H2cH2c, Mode::H2H2] {
        assert_eq!(with(mode, Some(0)), "valid");
        let why = "invalid: version: 3 requests reached the origin by HTTP/1.1, expected HTTP/2";
        assert_eq!(with(mode, Some(3)), why);
        assert_eq!(with(mode, None), "invalid: version: the origin did not count the requests by HTTP/1.1");
    }
    assert_eq!(with(Mode::H2cH1c, None), "valid", "in this mode the origin refuses HTTP/2");
}

/// 8 users on 2 connections of 4 streams: 8 requests at a time, each with a connection to an origin of HTTP/1.1.
#[test]
fn streams_share_the_connections_of_the_clients_but_not_those_to_the_origin() {
    let judged = |opened: u64, upstream: u64| {
        let mut experiment = experiment();
        experiment.set_factor("mode", vec!["h2c-h1c".into()]);
        experiment.set_factor("streams", vec![4.into()]);
        let mut record = record(Mode::H2cH1c, Load::Saturated);
        record.run.cell = with(&record.run.cell, "streams", 4);
        let mut load = result_for(&record.run.cell, None);
        load.connections_opened = opened;
        record.seen.observation.load = Some(load);
        record.seen.observation.upstream_connections = Some(upstream);
        Gateway::judge(&experiment, &mut record).expect("is a cell of it");
        record.validity.to_string()
    };
    assert_eq!(judged(2, 8), "valid");
    assert_eq!(judged(1, 8), "invalid: connections: 1 opened, expected 2");
    assert_eq!(
        judged(2, 17),
        "invalid: upstream connections: 17 to the origin for 2 of the clients, with 8 streams"
    );
}

#[test]
fn errors_and_wrong_responses() {
    let with = |class: &str| {
        saturated(|load| {
            load.errors.insert(class.into(), 3);
        })
    };
    assert_eq!(with("timeout"), "invalid: errors: 3 timeout");
    for class in ["status", "length", "digest", "malformed"] {
        assert_eq!(with(class), format!("invalid: wrong responses: 3 {class}"));
    }
    let example = saturated(|load| {
        load.errors.insert("reset".into(), 1);
        load.error_examples.insert("reset".into(), "connection reset by peer".into());
    });
    assert_eq!(example, "invalid: errors: 1 reset (connection reset by peer)");
    assert_eq!(
        saturated(|load| {
            load.errors.insert("reset".into(), 0);
        }),
        "valid"
    );
    assert_eq!(saturated(|load| load.requests = 0), "invalid: no response was received");
    let failed = reason(Mode::H1c, Load::Saturated, |record| {
        record.seen.observation.failure = Some("gone".into());
    });
    assert_eq!(failed, "invalid: gone");
}

/// A budget of 1 % beside 2000 correct responses.
#[test]
fn an_error_budget_covers_requests_without_a_response_up_to_its_share() {
    let budget = |errors: &[(&str, u64)]| {
        let mut experiment = experiment();
        experiment.set_constant("error_budget", 0.01.into());
        let mut record = record(Mode::H1cH1c, Load::Saturated);
        let load = record.seen.observation.load.as_mut().expect("a result");
        load.errors = errors.iter().map(|(class, count)| ((*class).to_owned(), *count)).collect();
        Gateway::judge(&experiment, &mut record).expect("is judged");
        record.validity.to_string()
    };
    assert_eq!(budget(&[]), "valid");
    assert_eq!(budget(&[("timeout", 1)]), "valid");
    assert_eq!(budget(&[("timeout", 10), ("reset", 10)]), "valid", "20 of 2020");
    let above = "invalid: errors: 11 reset, 10 timeout; expected at most 1 % without a response";
    assert_eq!(budget(&[("timeout", 10), ("reset", 11)]), above, "21 of 2021");
    for class in ["status", "length", "digest", "malformed"] {
        let wrong = format!("invalid: wrong responses: 1 {class}; expected at most 1 % without a response");
        assert_eq!(budget(&[(class, 1)]), wrong);
    }
    let missing = "invalid: errors: 1 missing_connections; expected at most 1 % without a response";
    assert_eq!(budget(&[("missing_connections", 1)]), missing);
}

/// Regression test: a run counted although its far server presented a certificate of another CA's kind.
#[test]
fn a_far_server_with_another_group_or_chain_invalidates_the_run() {
    let mut experiment = experiment();
    experiment.set_factor("mode", vec!["h1c-h1".into()]);
    experiment.set_constant("origin", "openssl".into());
    experiment.set_constant("tls.group", "p256".into());
    experiment.set_constant("tls.certificate", "rsa-2048".into());
    let judged = |name: &str| {
        let mut record = record(Mode::H1cH1, Load::Saturated);
        let negotiated = [(name.to_owned(), 7)].into();
        let handshakes = UpstreamHandshakes { full: 7, negotiated, ..UpstreamHandshakes::default() };
        record.seen.observation.upstream_handshakes = Some(handshakes);
        Gateway::judge(&experiment, &mut record).expect("is a cell of it");
        record.validity.to_string()
    };
    for right in [
        "TLSv1.3 TLS_AES_128_GCM_SHA256 P-256 rsa-2048 by rsa full",
        "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 P-256 rsa-2048 by rsa full",
        "TLSv1.2 AES256-GCM-SHA384 rsa-2048 by rsa full",
        "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 resumed",
        // Of an older result.
        "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 P-256 full",
    ] {
        assert_eq!(judged(right), "valid", "{right}");
    }
    for wrong in [
        "TLSv1.3 TLS_AES_128_GCM_SHA256 P-521 rsa-2048 by rsa full",
        "TLSv1.3 TLS_AES_128_GCM_SHA256 P-256 rsa-2048 by ecdsa full",
        "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256 P-256 ecdsa-p256 by ecdsa full",
        "TLSv1.2 AES256-GCM-SHA384 rsa-4096 by rsa full",
    ] {
        let why = "expected P-256 and rsa-2048 by rsa";
        assert_eq!(judged(wrong), format!("invalid: far server: 7 handshakes were `{wrong}`, {why}"));
    }
}

#[test]
fn the_negotiated_parameters_are_the_expected_ones() {
    let other = saturated(|load| {
        load.handshakes.negotiated = vec![negotiated("1.2", 64)];
    });
    assert!(other.starts_with("invalid: negotiation: 64 handshakes were `1.2 aes128"), "{other}");
    let longer = saturated(|load| {
        let signature = Some("ecdsa-p256-sha256x".to_owned());
        load.handshakes.negotiated = vec![Negotiated { signature, ..negotiated("1.3", 64) }];
    });
    assert!(longer.starts_with("invalid: negotiation: 64 handshakes"), "{longer}");
    let resumed = saturated(|load| {
        load.handshakes.resumed.insert("resume-1.3-psk".into(), 2);
    });
    assert_eq!(resumed, "invalid: negotiation: 2 handshakes were resumed, expected none");
    let late = saturated(|load| load.handshakes.in_window = 5);
    assert_eq!(late, "invalid: warm-up: 5 handshakes fell into the window");
    let none = saturated(|load| load.handshakes = Handshakes::default());
    assert_eq!(none, "invalid: negotiation: no handshake was counted in a TLS mode");
    let clear = reason(Mode::H1cH1c, Load::Saturated, |record| {
        record.seen.observation.load.as_mut().expect("a result").handshakes.full = 1;
    });
    assert_eq!(clear, "invalid: negotiation: TLS in a cleartext mode");
}

#[test]
fn new_connections_make_handshakes_in_the_window_and_resume_as_configured() {
    let handshakes = |case: Case, spoil: fn(&mut LoadResult)| {
        let mut record = record(Mode::H1H1c, Load::Saturated);
        record.run.cell = with(&record.run.cell, "case", case);
        let mut load = result_for(&record.run.cell, None);
        spoil(&mut load);
        record.seen.observation.load = Some(load);
        record.seen.observation.upstream_connections = Some(5000);
        Gateway::judge(&experiment(), &mut record).expect("is judged");
        record.validity.to_string()
    };
    let (full, resumed, mixed) = (Case::HandshakeFull, Case::HandshakeResumed, Case::HandshakeMixed(300));
    for case in [full, resumed, mixed] {
        assert_eq!(handshakes(case, |_| {}), "valid", "{case}");
        assert_eq!(handshakes(case, |load| load.servers[1].cost.cpu_us = 0.0), "valid", "an idle origin");
        assert_eq!(
            handshakes(case, |load| load.servers.truncate(1)),
            "invalid: no CPU time of the origin was measured"
        );
        let none = "invalid: negotiation: no handshake was counted in a TLS mode";
        assert_eq!(handshakes(case, |load| load.handshakes = Handshakes::default()), none);
    }
    let reused = handshakes(full, |load| load.connections_opened = 2999);
    assert_eq!(reused, "invalid: connections: 2999 for 3000 responses, expected at most 1 on each");
    let not_asked = handshakes(resumed, |load| load.asked.resume_percent = 0.0);
    assert_eq!(not_asked, "invalid: negotiation: 3000 handshakes were resumed, expected none");
    let signed = handshakes(resumed, |load| {
        load.handshakes.negotiated[0].signature = Some("ecdsa-p256-sha256".into());
    });
    assert!(signed.starts_with("invalid: negotiation: 3000 handshakes were `1.3"), "{signed}");
    let unsigned = handshakes(full, |load| load.handshakes.negotiated[0].signature = None);
    assert!(unsigned.starts_with("invalid: negotiation: 3000 handshakes were `1.3"), "{unsigned}");
    let declined = handshakes(resumed, |load| {
        load.validity = "invalid: negotiated (5 resumptions were declined by the server)".into();
    });
    assert!(declined.starts_with("invalid: load engine: negotiated (5 resumptions"), "{declined}");
}

/// Regression test: a target that ignored the setting made cells that did not differ.
#[test]
fn varied_tickets_have_the_expected_number() {
    let mut experiment = experiment();
    experiment.set_constant("mode", "h1-h1c".into());
    experiment.set_factor("tls.tickets", vec![2.into(), 4.into()]);
    let with = |level: Option<u8>, least, most| {
        let mut record = record(Mode::H1H1c, Load::Saturated);
        if let Some(level) = level {
            record.run.cell.levels = record.run.cell.levels.with("tls.tickets", Level::new(level));
        }
        let load = record.seen.observation.load.as_mut().expect("a result");
        load.handshakes.tickets = [("full".to_owned(), Tickets { least, most })].into();
        load.handshakes.tickets.insert("resume-1.3-psk".into(), Tickets { least: 1, most: 1 });
        Gateway::judge(&experiment, &mut record).expect("is judged");
        record.validity.to_string()
    };
    assert_eq!(with(Some(4), 4, 4), "valid");
    let other = "invalid: tickets: 2 to 4 after a full handshake, expected 4";
    assert_eq!(with(Some(4), 2, 4), other);
    assert!(with(Some(2), 2, 3).starts_with("invalid: tickets: 2 to 3"));
    assert_eq!(with(None, 1, 1), "valid", "the target's own number, which is in its title");
}

/// Regression test: only the exact word `invalid: ` of the engine counted; any other verdict passed as valid.
#[test]
fn any_verdict_of_the_engine_but_valid_is_invalid() {
    for (said, why) in [
        ("", "``"),
        ("Invalid", "`Invalid`"),
        ("valid ", "`valid `"),
        ("invalid:x", "`invalid:x`"),
        ("invalid: x", "x"),
    ] {
        let found = saturated(|load| load.validity = said.into());
        assert_eq!(found, format!("invalid: load engine: {why}"));
    }
}

#[test]
fn the_pacer_kept_its_schedule() {
    let open = |spoil: fn(&mut Option<Pacer>)| {
        reason(Mode::H1cH1c, Load::EqualRate, |record| {
            spoil(&mut record.seen.observation.load.as_mut().expect("a result").pacer);
        })
    };
    let slow = open(|pacer| pacer.as_mut().expect("a pacer").achieved_ratio = 0.87);
    assert_eq!(slow, "invalid: pacer: 87.0 % of the planned requests were sent, expected 90 % or more");
    let late = open(|pacer| pacer.as_mut().expect("a pacer").lag_p99_us = 5500.0);
    assert_eq!(late, "invalid: pacer: late by 5500 us at the 99th percentile, expected 5000 or less");
    assert!(open(|pacer| *pacer = None).starts_with("invalid: pacer: an open loop"));
}

/// Regression test: a busy host invalidated nine runs of ten, although their cost was fine.
#[test]
fn a_late_pacer_spoils_times_and_not_the_cost() {
    let mut late = record(Mode::H1cH1c, Load::EqualRate);
    let load = late.seen.observation.load.as_mut().expect("a result");
    load.pacer.as_mut().expect("a pacer").lag_p99_us = 1500.0;
    load.validity = "invalid: pacer (lag p99 1500 us, allowed 1000 us)".into();
    Gateway::judge(&experiment(), &mut late).expect("is a cell of it");
    assert_eq!(late.validity, Validity::Valid);
    let spoilt = |metric| Gateway::spoilt(metric, &late);
    assert!(spoilt(Metric::P99Us).expect("is spoilt").starts_with("pacer: late by 1500 us"));
    assert!(spoilt(Metric::MeanUs).is_some() && spoilt(Metric::SwitchesPerRequest).is_some());
    assert_eq!((spoilt(Metric::CpuUsPerRequest), spoilt(Metric::RssKib)), (None, None));
    late.seen.observation.load.as_mut().expect("a result").validity += "; errors (1 reset)";
    Gateway::judge(&experiment(), &mut late).expect("is a cell of it");
    assert!(late.validity.to_string().starts_with("invalid: load engine: pacer ("), "{}", late.validity);
    let in_time = record(Mode::H1cH1c, Load::EqualRate);
    assert_eq!(Gateway::spoilt(Metric::P99Us, &in_time), None);
}

#[test]
fn connections_on_both_sides() {
    assert_eq!(saturated(|load| load.connections_opened = 7), "invalid: connections: 7 opened, expected 8");
    let upstream = |count| {
        reason(Mode::H1H1c, Load::Saturated, |record| {
            record.seen.observation.upstream_connections = Some(count);
        })
    };
    assert_eq!(upstream(16), "valid");
    assert_eq!(upstream(17), "invalid: upstream connections: 17 to the origin for 8 of the clients");
}

#[test]
fn a_window_of_another_length() {
    assert_eq!(saturated(|load| load.window_s = 0.08), "invalid: window: measured 80 ms, expected 50 ms");
}

#[test]
fn without_cpu_time_there_is_no_cost() {
    assert_eq!(saturated(|load| load.servers.clear()), "invalid: no CPU time of the target was measured");
    assert_eq!(saturated(|load| load.servers.truncate(1)), "invalid: no CPU time of the origin was measured");
}

#[test]
fn a_validity_survives_its_text() {
    for validity in [Validity::Valid, Validity::Invalid("pacer: late".into())] {
        assert_eq!(Validity::from(String::from(validity.clone())), validity);
    }
}
