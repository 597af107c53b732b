//! `weir check`.

use crate::common::{Certificates, Weir};
use std::fs;
use weir_tls::issue::{Authority, KeyKind};

/// Expects `weir check` to reject this file with this message.
pub(super) fn refused(config: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    fs::write(&file, config).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
    assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{}", ended.stderr);
}

#[test]
fn a_valid_file_is_explained_and_a_fault_is_located() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let path = file.to_str().unwrap();
    fs::write(
        &file,
        "[listener.web]\nbind = ['127.0.0.1:8080', '[::1]:8080']\n[service.app]\nservers = ['http://127.0.0.1:1', 'http://127.0.0.1:2']\n\
         [[route]]\nhost = 'a.example'\npath = ['/a/*', '/b/{id}']\nservice = 'app'\n[[route]]\nredirect = { to = 'https://{host}{target}' }\n",
    )
    .unwrap();
    let ended = Weir::run(&["check", "--config", path, "--explain"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for part in [
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "http://127.0.0.1:2 at 127.0.0.1:2",
        "a.example /a/* /b/{..} -> service app",
        "any host /* -> redirect 308 to https://{host}{target}",
        "head 32768 bytes, 100 fields",
        "interim responses 8 with 32768 bytes",
        "idle 75s",
        "weir.toml: valid\n",
    ] {
        assert!(ended.stdout.contains(part), "no `{part}` in {}", ended.stdout);
    }
    fs::write(&file, "[listener.web]\nbind = '127.0.0.1:8080'\n[[route]]\nservice = 'app'\n").unwrap();
    for command in ["check", "serve"] {
        let ended = Weir::run(&[command, "--config", path]);
        assert_eq!(ended.code, Some(2));
        let expected =
            "weir.toml:4: route.0.service: unknown service `app`: expected one of none is defined\n";
        assert!(ended.stderr.ends_with(expected), "{}", ended.stderr);
    }
    let ended = Weir::run(&["check", "--config", "/no/such/weir.toml"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("/no/such/weir.toml: cannot read: No such file"), "{}", ended.stderr);
    let ended = Weir::run(&["serve", "--config", path, "--workers", "1"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("--config"), "{}", ended.stderr);
}

#[test]
fn the_schema_is_printed_and_a_file_may_name_it() {
    let ended = Weir::run(&["check", "--schema"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let schema: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(schema["properties"]["limits"]["properties"]["head"]["default"], "32KiB");
    assert_eq!(schema["properties"]["limits"]["additionalProperties"], false);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let path = file.to_str().unwrap();
    let config = "#:schema ./weir.schema.json\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n";
    fs::write(&file, config).unwrap();
    let ended = Weir::run(&["check", "--config", path]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));

    for args in
        [&["check"][..], &["check", "--schema", "--config", path], &["check", "--schema", "--explain"]]
    {
        assert_eq!(Weir::run(args).code, Some(2), "{args:?}");
    }
}

/// Regression test: only the first fault was reported, and warnings had no line.
#[test]
fn all_findings_are_reported_at_once_in_the_order_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let path = file.to_str().unwrap();
    let faulty = "workers = 0\nlimits = { head = 1, connections = 0 }\n\
        [service.app]\nservers = ['http://127.0.0.1:0', 'https://127.0.0.1:1']\nhash = 'client'\n\
        [service.partner]\nservers = 'https://127.0.0.1:1'\ntls.insecure = true\n\
        [listener.web]\nbind = []\nmode = '600'\n\
        [[route]]\nhost = ['a:1', 'b:2']\nmethod = 'G T'\nservice = 'ap'\nresponse_headers.set = { A = '{x}', TE = 'x' }\n\
        [[route]]\nservice = 'app'\nstrip_prefix = 'x'\nmax_body = 1\nrequest_buffer = 1\n";
    fs::write(&file, faulty).unwrap();
    let ended = Weir::run(&["check", "--config", path]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
    let lines: Vec<_> = ended.stderr.lines().collect();
    let expected = [
        "1: workers: invalid value `0`",
        "2: limits.connections: invalid value `0`",
        "2: limits.head: invalid value `1`",
        "4: service.app.servers.0: http://127.0.0.1:0: invalid port 0",
        "4: service.app.servers.1: `https://127.0.0.1:1`: expected the scheme of the first",
        "5: service.app.hash: needs `balance",
        "8: warning: service.partner.tls.insecure: the certificate of https://127.0.0.1:1 is not verified",
        "10: listener.web.bind: empty",
        "11: listener.web.mode: no Unix socket",
        "13: route.0.host.0: invalid host `a:1`",
        "13: route.0.host.1: invalid host `b:2`",
        "14: route.0.method.0: invalid method `G T`",
        "15: route.0.service: unknown service `ap`",
        "16: route.0.response_headers.set.A: invalid value `{x}`: unknown variable `{x}`",
        "16: route.0.response_headers.set.TE: `TE` frames the message",
        "19: route.1.strip_prefix: invalid value `x`",
        "21: route.1.request_buffer: invalid value `1`",
    ];
    for (at, part) in expected.iter().enumerate() {
        let part = format!("weir: {path}:{part}");
        assert!(lines.iter().any(|line| line.starts_with(&part)), "{at}: no `{part}` in\n{}", ended.stderr);
    }
    assert_eq!(lines.len(), expected.len(), "{}", ended.stderr);
    let numbers = lines.iter().map(|line| line[path.len() + 7..].split(':').next().unwrap());
    let numbers: Vec<u32> = numbers.map(|number| number.parse().unwrap()).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    // A start prints only errors, not warnings.
    let ended = Weir::run(&["serve", "--config", path]);
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), expected.len() - 1));
}

#[test]
fn warnings_fail_a_check_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let path = file.to_str().unwrap();
    let plain = "[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'https://127.0.0.1:1'\n\
        [[route]]\nservice = 'app'\n";
    for (more, warning) in [
        ("", None),
        (
            "[service.app.tls]\ninsecure = true\n",
            Some("8: warning: service.app.tls.insecure: the certificate"),
        ),
    ] {
        fs::write(&file, format!("{plain}{more}")).unwrap();
        let ended = Weir::run(&["check", "--config", path]);
        let valid = if warning.is_some() { "valid, with warnings" } else { "valid" };
        assert_eq!(ended.code, Some(0));
        assert!(ended.stdout.ends_with(&format!("{path}: {valid}\n")), "{}", ended.stdout);
        let denied = Weir::run(&["check", "--config", path, "--deny-warnings"]);
        assert_eq!(denied.code, Some(if warning.is_some() { 2 } else { 0 }), "{}", denied.stderr);
        if let Some(part) = warning {
            let part = format!("{path}:{part}");
            assert!(ended.stdout.starts_with(&part), "{}", ended.stdout);
            assert!(denied.stderr.starts_with(&format!("weir: {part}")), "{}", denied.stderr);
            assert!(
                denied.stderr.ends_with("rejected by --deny-warnings: warnings 1\n"),
                "{}",
                denied.stderr
            );
        }
    }
}

#[test]
fn the_tls_settings_in_force_are_explained_with_hints_about_expensive_ones() {
    let own = Certificates::new();
    let rsa = Authority::new().unwrap().issue(&["b.example"], KeyKind::Rsa2048).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let rsa = rsa.write_to(folder.path()).unwrap();
    let file = folder.path().join("weir.toml");
    let path = file.to_str().unwrap();
    let config = format!(
        "[listener.plain]
        bind = '127.0.0.1:0'
        [listener.secure]
        bind = '127.0.0.1:0'
        tls = {{ client_ca = '{}', groups = ['p384', 'x25519'], tickets = 4, record_size = 1400 }}
        [listener.strict]
        bind = '127.0.0.1:0'
        tls = {{ versions = '1.3', tickets = 0, suites = 'chacha20-poly1305-sha256' }}
        [[certificate]]
        chain = '{rsa}'
        key = '{rsa_key}'
        [[certificate]]
        chain = '{}'
        key = '{}'
        [service.partner]
        servers = 'https://127.0.0.1:1'
        tls = {{ ca = '{}', certificate = '{rsa}', key = '{rsa_key}', versions = '1.2' }}
        [service.app]
        servers = 'http://127.0.0.1:1'
        [[route]]
        service = 'partner'",
        own.ca.display(),
        own.cert.display(),
        own.key.display(),
        own.ca.display(),
        rsa = rsa.certificates.display(),
        rsa_key = rsa.key.display(),
    );
    fs::write(&file, config).unwrap();
    let ended = Weir::run(&["check", "--config", path, "--explain"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (_, tls) = ended.stdout.split_once("\nTLS\n").expect(&ended.stdout);
    let section = |name: &str| {
        let (_, section) =
            tls.split_once(&format!("  {name}\n")).unwrap_or_else(|| panic!("no {name} in {tls}"));
        let lines = section.lines().take_while(|line| line.starts_with("    "));
        lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    };
    for (name, parts) in [
        (
            "listener secure",
            &[
                "versions 1.2 1.3 groups p384 x25519 suites aes128-gcm-sha256 ",
                " ecdhe-ecdsa-aes256-gcm-sha384 ",
                " ecdhe-rsa-chacha20-poly1305 tickets 4 client certificates required record size 1400 bytes ",
                "hint: groups: `x25519` first takes less CPU time than `p384`",
                "hint: certificates: a full handshake takes less CPU time with ECDSA P-256 than with RSA 2048: clients",
                "hint: tickets: 1 takes less CPU time",
                "hint: record_size: bodies take more CPU time",
            ][..],
        ),
        (
            "listener strict",
            &[
                "suites chacha20-poly1305-sha256 tickets 0 client certificates none record size 16384 bytes ",
                "hint: tickets: without any, clients cannot resume",
                "hint: suites: none of TLS 1.3 has AES-128",
            ],
        ),
        (
            "service partner",
            &[
                "versions 1.2 groups ",
                " certificate RSA 2048 record size 16384 bytes ",
                "hint: certificate: a full handshake takes less CPU time with ECDSA P-256 than with RSA 2048",
            ],
        ),
    ] {
        for part in parts {
            assert!(section(name).contains(part), "no `{part}`: {}", section(name));
        }
    }
    assert!(tls.contains("`weir cost` and `weir stacks` measure"), "{tls}");
    assert!(!tls.contains("plain") && !tls.contains("service app"), "only what has TLS: {tls}");
    assert!(tls.lines().all(|line| line.chars().count() <= 100), "{tls}");

    fs::write(&file, "[listener.plain]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n").unwrap();
    let ended = Weir::run(&["check", "--config", path, "--explain"]);
    assert!(ended.code == Some(0) && !ended.stdout.contains("TLS"), "{}", ended.stdout);
}

#[test]
fn an_explanation_names_what_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    fs::write(&file, CONFIG).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap(), "--explain"]);
    for part in [
        "trusts proxies in 10.0.0.0/8",
        "http://127.0.0.1:1 at 127.0.0.1:1, weight 3",
        "http://127.0.0.1:2 at 127.0.0.1:2, backup",
        "balance least-in-flight, ejected for 10s after 5 failures",
        "health by GET /health every 5s within 2s, up after 2, down after 3",
        "100 connections to each server, 1000 waiting requests in each worker",
        "only GET, from 192.0.2.0/24",
        "strips /a, request sets X-A, 5 % mirrored to shadow",
        "request buffer 65536 bytes, response 5s",
        "admin at 127.0.0.1:9901",
    ] {
        assert!(ended.stdout.contains(part), "no `{part}` in {}", ended.stdout);
    }
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100));
}

/// The explanation omits keys with default values and shows all others.
#[test]
fn an_explanation_has_what_listeners_do_with_odd_requests_and_the_name_in_via() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let explained = |own: &str, general: &str| {
        let config = format!(
            "{general}\n[listener.web]\nbind = '127.0.0.1:0'\n{own}\n[listener.other]\nbind = '127.0.0.1:0'\n\
             [[route]]\nrespond.status = 200\n"
        );
        fs::write(&file, config).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap(), "--explain"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    let plain = explained("", "");
    for (own, general, expected) in [
        ("half_close = 'serve'", "", "  web              serves clients that close their sending side\n"),
        (
            "underscores_in_headers = 'pass'",
            "",
            "  web              passes fields with underscores in their names\n",
        ),
        (
            "underscores_in_headers = 'reject'",
            "",
            "  web              rejects fields with underscores in their names\n",
        ),
        ("http2_priorities = true", "", "  web              sends HTTP/2 responses by priority\n"),
        ("", "via.requests = 'weir'", "\nVia\n  weir in requests\n"),
        ("", "via.responses = 'weir'", "\nVia\n  weir in responses\n"),
        ("", "via = { requests = 'a', responses = 'b' }", "\nVia\n  a in requests, b in responses\n"),
        ("half_close = 'abort'\nunderscores_in_headers = 'drop'", "", ""),
    ] {
        let found = explained(own, general);
        assert!(found.contains(expected), "no `{expected}` in {found}");
        assert_eq!(found.replacen(expected, "", 1), plain, "{own}{general}");
    }
}

const CONFIG: &str = r#"
workers = 2
[listener.web]
bind = ["127.0.0.1:8080", "[::1]:8080"]
trusted_proxies = ["10.0.0.0/8"]
[service.app]
servers = [{ url = "http://127.0.0.1:1", weight = 3 }, { url = "http://127.0.0.1:2", backup = true }]
balance = "least-in-flight"
max_connections = 100
health = { path = "/health" }
[service.shadow]
servers = "unix:/tmp/x.sock"
[[route]]
host = ["a.example", "*.b.example"]
path = ["/a/*"]
method = "GET"
client = "192.0.2.0/24"
service = "app"
strip_prefix = "/a"
request_headers.set = { X-A = "{client_ip}" }
mirror = { service = "shadow", percent = 5 }
request_buffer = "64KiB"
timeouts.response = "5s"
[[route]]
redirect.to = "https://{host}{target}"
[admin]
"#;
