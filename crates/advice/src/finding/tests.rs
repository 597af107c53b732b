use super::*;
use weir_profile::Stacks;

/// The facts of a well-configured service.
fn well() -> Facts {
    let mut facts = Facts::default();
    for (name, number) in [
        ("tls.hello_retry", 0.0),
        ("tls.retries_x25519", 0.0),
        ("tls.retry_share", 0.0),
        ("tls.offers_1_3", 1.0),
        ("tls.suites", 3.0),
        ("tls.prefers_chacha20", 0.0),
        ("tls.tickets", 2.0),
        ("certificate.bits", 256.0),
        ("chain.certificates", 2.0),
        ("chain.bytes", 1800.0),
        ("chain.costly_keys", 0.0),
        ("chain.over_initial_window", 0.0),
        ("chain.root_sent", 0.0),
        ("chain.unused", 0.0),
        ("resumption.tries", 10.0),
        ("resumption.resumed", 10.0),
        ("resumption.share", 1.0),
        ("resumption.sessions", 2.0),
        ("resumption.returning", 8.0),
        ("resumption.kept", 8.0),
        ("resumption.kept_share", 1.0),
        ("resumption.handshakes_between", 5000.0),
        ("http.keep_alive", 1.0),
        ("http.keep_alive_s", 75.0),
        ("http.requests_in_a_row", 40.0),
        ("http.requests_per_connection", 10_000.0),
        ("http.spread_ms", 0.2),
        ("http.spread_acked_ms", 0.1),
        ("http.delayed_ack_ms", 0.1),
        ("http.bytes_per_record", 1200.0),
        ("http.body_bytes", 1000.0),
        ("http.response_ms", 9.0),
        ("load.slowdown", 6.0),
        ("load.busiest_worker", 0.5),
        ("load.queued", 0.1),
        ("upstream.open", 8.0),
        ("upstream.connections_per_handshake", 0.0),
        ("accepted.connections", 4.0),
        ("accepted.connections_per_request", 0.0),
        ("accepted.connections_per_second", 2.0),
        ("accepted.connections_per_client", 4.0),
        ("accepted.clients", 1.0),
        ("accepted.ended_share", 1.0),
        ("upstream.connections", 4.0),
        ("upstream.connections_per_request", 0.001),
        ("crypto.software_aes", 0.0),
        ("crypto.narrow_rsa", 0.01),
        ("cpu.avx512ifma", 1.0),
        ("process.workers_over_cores", 1.0),
        ("cpu.aes", 1.0),
    ] {
        facts.add(name, number, "test");
    }
    for (name, text) in [
        ("tls.version", "1.3"),
        ("tls.suite", "aes128-gcm-sha256"),
        ("tls.group", "x25519"),
        ("certificate.kind", "ecdsa"),
        ("certificate.key", "ecdsa-p256"),
        ("resumption.kind", "resume-1.3-psk"),
    ] {
        facts.add(name, text, "test");
    }
    facts
}

/// The findings for the well-configured service with these facts changed.
fn with(changed: &[(&str, Value)]) -> Vec<String> {
    let mut facts = Facts::default();
    for (name, value) in changed {
        facts.add(name, value.clone(), "test");
    }
    for (name, fact) in well().iter() {
        facts.add(name, fact.value.clone(), "test");
    }
    let found = findings(&Rules::built_in(), &facts, Product::Generic, None);
    found.into_iter().map(|finding| finding.id).collect()
}

#[test]
fn a_well_configured_service_has_nothing_worth_changing() {
    assert_eq!(with(&[]), [""; 0]);
    assert_eq!(findings(&Rules::built_in(), &Facts::default(), Product::Nginx, None), []);
}

#[test]
fn each_fault_is_found_first() {
    let number = |number: f64| Value::from(number);
    let text = |text: &str| Value::from(text);
    let cases: [(&[(&str, Value)], &str); 37] = [
        (&[("upstream.connections_per_request", number(1.0))], "upstream-keep-alive"),
        (&[("upstream.open", number(1.0))], "too-few-sockets"),
        (&[("upstream.open", number(100.0))], "too-many-sockets"),
        (&[("upstream.connections_per_handshake", number(1.0))], "connection-per-handshake"),
        (&[("process.debug_build", text("-Xint"))], "debug-build"),
        (&[("http.keep_alive", number(0.0))], "client-keep-alive"),
        (&[("accepted.connections_per_request", number(1.0))], "proxy-closes"),
        (&[("accepted.connections_per_client", number(400.0))], "short-connections"),
        (&[("http.requests_per_connection", number(10.0))], "few-requests-per-connection"),
        (&[("http.keep_alive_s", number(1.0))], "keep-alive-too-short"),
        (&[("resumption.sessions", number(0.0)), ("tls.tickets", number(0.0))], "resumption-off"),
        (&[("resumption.share", number(0.0))], "resumption-fails"),
        (&[("resumption.share", number(0.5))], "resumption-sometimes"),
        (
            &[("resumption.kept", number(1.0)), ("resumption.kept_share", number(0.125))],
            "session-cache-too-small",
        ),
        (&[("tls.offers_1_3", number(0.0)), ("tls.version", text("1.2"))], "no-tls-1.3"),
        (
            &[
                ("tls.retries_x25519", number(1.0)),
                ("tls.retry_share", number(1.0)),
                ("tls.retries_to", text("p256")),
            ],
            "hello-retry",
        ),
        (&[("tls.group", text("p384"))], "costly-group"),
        (&[("tls.tickets", number(6.0))], "many-tickets"),
        (&[("tls.prefers_chacha20", number(1.0))], "chacha20-first"),
        (
            &[
                ("certificate.kind", text("rsa")),
                ("certificate.key", text("rsa-2048")),
                ("certificate.bits", number(2048.0)),
            ],
            "rsa-certificate",
        ),
        (&[("certificate.key", text("ecdsa-p384"))], "costly-ecdsa"),
        (&[("chain.over_initial_window", number(1.0))], "long-chain"),
        (&[("chain.root_sent", number(1.0))], "root-sent"),
        (&[("chain.unused", number(1.0))], "redundant-chain"),
        (&[("chain.certificates", number(5.0))], "many-intermediates"),
        (&[("chain.costly_keys", number(1.0))], "costly-chain"),
        (&[("http.bytes_per_record", number(512.0)), ("http.body_bytes", number(65_536.0))], "small-records"),
        (&[("http.delayed_ack_ms", number(41.0))], "delayed-ack"),
        (&[("crypto.software_aes", number(0.3))], "software-aes"),
        (&[("crypto.narrow_rsa", number(0.3))], "narrow-rsa"),
        (&[("library.openssl_version", text("3.0")), ("library.openssl", text("3.0.2"))], "openssl-3.0"),
        (&[("share.handshake", number(0.5)), ("profile.own_load", number(1.0))], "handshakes-dominate"),
        (
            &[
                ("process.workers", number(1.0)),
                ("process.cores", number(4.0)),
                ("process.workers_over_cores", number(0.25)),
                ("process.busiest_worker", number(0.95)),
            ],
            "too-few-workers",
        ),
        (
            &[
                ("process.workers", number(8.0)),
                ("process.cores", number(2.0)),
                ("process.workers_over_cores", number(4.0)),
            ],
            "too-many-workers",
        ),
        (&[("config.unbuffered_logs", number(1.0))], "unbuffered-log"),
        (&[("config.unbuffered_proxies", number(1.0))], "unbuffered-proxy"),
        (&[("config.upstreams_without_sni", number(1.0))], "upstream-without-sni"),
    ];
    for (changed, id) in cases {
        assert_eq!(with(changed), [id]);
    }
}

#[test]
fn a_small_pool_is_no_fault_of_a_service_that_is_busy_quick_or_without_a_core() {
    let small = ("upstream.open", Value::from(1.0));
    let others = [
        ("load.slowdown", 1.2),
        ("load.busiest_worker", 0.95),
        ("load.queued", 0.6),
        ("http.response_ms", 0.2),
    ];
    for well in others {
        assert_eq!(with(&[small.clone(), (well.0, Value::from(well.1))]), [""; 0], "{well:?}");
    }
}

#[test]
fn a_service_that_closes_connections_itself_is_not_blamed_on_a_proxy() {
    let closes = [("accepted.connections_per_request", 1.0), ("accepted.connections_per_client", 400.0)];
    for (by_itself, cause) in [
        (("http.keep_alive", 0.0), "client-keep-alive"),
        (("http.requests_per_connection", 3.0), "few-requests-per-connection"),
    ] {
        let changed: Vec<(&str, Value)> =
            closes.iter().chain([&by_itself]).map(|(name, value)| (*name, Value::from(*value))).collect();
        assert_eq!(with(&changed), [cause]);
    }
}

#[test]
fn full_handshakes_to_an_upstream_are_named_after_their_cause() {
    let found = |resumed: Option<f64>| {
        let resumed = resumed.map(|share| ("upstream.resumed_share", Value::from(share)));
        let mut changed = vec![
            ("upstream.connections_per_request", Value::from(0.9)),
            ("share.certificate-verification", Value::from(0.2)),
        ];
        changed.extend(resumed);
        with(&changed)
    };
    for (resumed, cause) in [
        (Some(0.0), Some("upstream-resumption")),
        (Some(0.49), Some("upstream-resumption")),
        (Some(0.7), None),
        (Some(0.99), Some("upstream-context")),
        // Regression test: a service whose upstream resumed 1513 of 1521 handshakes got advice to resume them.
        (None, Some("upstream-certificates")),
    ] {
        let expected: Vec<&str> = ["upstream-keep-alive"].into_iter().chain(cause).collect();
        assert_eq!(found(resumed), expected, "{resumed:?}");
    }
}

/// Regression test: the service's own signing was counted as a saving of resumption towards its upstream: 20 to 46 %
/// instead of 3 %.
#[test]
fn upstream_sessions_save_no_signatures_for_clients() {
    let stacks =
        Stacks::from_folded("f;ECDSA_do_sign 4500\nf;X509_verify_cert 300\nf;memcpy 5200\n").expect("parses");
    let profile = Profile::new(&stacks, &weir_profile::Rules::built_in());
    let mut facts = Facts::default();
    for (name, value) in [
        ("upstream.connections_per_request", 1.0),
        ("share.certificate-verification", 0.03),
        ("upstream.resumed_share", 0.0),
    ] {
        facts.add(name, value, "test");
    }
    let found = findings(&Rules::built_in(), &facts, Product::Generic, Some(&profile));
    let finding = found.iter().find(|finding| finding.id == "upstream-resumption").expect("is found");
    let gain = finding.gain.expect("is known");
    assert!(gain.high < 0.04, "{gain:?}");
}

#[test]
fn a_gain_below_a_percent_is_not_worth_a_change() {
    let found = |own: &str| {
        let stacks = Stacks::from_folded(own).expect("parses");
        let profile = Profile::new(&stacks, &weir_profile::Rules::built_in());
        let mut facts = Facts::default();
        facts.add("library.openssl_version", "3.0", "test");
        facts.add("library.openssl", "3.0.2", "test");
        findings(&Rules::built_in(), &facts, Product::Generic, Some(&profile)).len()
    };
    assert_eq!(found("main;memcpy 1000\n"), 0);
    assert_eq!(found("main;malloc 1000\n"), 1);
}

#[test]
fn a_profile_ranks_findings_and_predicts_their_gain() {
    let stacks =
        Stacks::from_folded("f;x25519_scalar_mult 70\nf;ECDSA_do_sign 10\nf;memcpy 20\n").expect("parses");
    let profile = Profile::new(&stacks, &weir_profile::Rules::built_in());
    let mut facts = Facts::default();
    facts.add("tls.group", "p384", "test");
    facts.add("tls.retries_x25519", 0.0, "test");
    facts.add("certificate.key", "ecdsa-p384", "test");
    let found = findings(&Rules::built_in(), &facts, Product::Nginx, Some(&profile));
    let ids: Vec<&str> = found.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids, ["costly-group", "costly-ecdsa"]);
    let gain = found[0].gain.expect("is known");
    assert!(gain.low > 0.3 && gain.low < 0.7 * 0.7 && gain.high > 0.7 * 0.9, "{gain:?}");
    assert!(found[0].change.contains("ssl_ecdh_curve"), "{}", found[0].change);
    assert_eq!(found[0].evidence[0].value, Value::from("p384"));
}
