//! `weir serve` as an operator uses it: signals, an upstream without certificate verification, forwarding fields, and
//! errors in flags and files.

use crate::common::{
    Case, Certificates, Client, DEADLINE, Ended, MODES, Mode, Switch, Upstream, Weir, origin, poll_until,
    serve,
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rustix::process::Signal;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const FREE: &str = "http://127.0.0.1:0";
/// A URL that is never contacted, since the process fails first.
const UNUSED: &str = "http://127.0.0.1:1";

/// The line after SIGHUP, and the lines after SIGHUP and SIGUSR2 in processes that do not support them.
const RELOADED: &str =
    "weir: reloaded; changed: listeners 0, certificates 0, services 0, routes 0, other settings 0";
const NOT_RELOADED: &str = "weir: SIGHUP ignored: flags, certificates and keys are only read at startup";
const NOT_UPGRADED: &str = "weir: SIGUSR2 ignored: there is no in-place upgrade";

/// Sends SIGHUP and SIGUSR2, which such a process ignores, and waits for the lines about them.
fn ignores_signals(weir: &Weir) {
    for (signal, line) in [(Signal::HUP, NOT_RELOADED), (Signal::USR2, NOT_UPGRADED)] {
        weir.signal(signal);
        weir.wait_for_stderr(&[line]);
    }
}

#[test]
fn signals_are_reported_and_do_not_disturb_requests() {
    let answer = Switch::default();
    let awaited = answer.clone();
    let case = Case::new(MODES[0], &[], move |peer| {
        while peer.request().is_some() {
            awaited.wait();
            peer.answer(ANSWER);
        }
    });
    let mut client = case.client();
    client.send(GET);
    case.upstream.wait_for_requests(1);
    case.weir.signal(Signal::HUP);
    case.weir.wait_for_stderr(&[RELOADED]);
    answer.throw();
    assert_eq!(client.answer(Method::Get).text(), "hi");
    assert_eq!(client.ask(GET).text(), "hi");
    assert_eq!(case.upstream.connections(), 1);
    let ended = case.stop();
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stdout.contains("served 2 requests"), "{}", ended.stdout);
}

#[test]
fn the_totals_so_far_are_told_on_request() {
    let origin = origin(false, &Certificates::new());
    let weir = Weir::start(&["serve", "--listen", FREE, "--to", &origin.urls[0], "--workers", "2"]);
    for asked in [3, 5] {
        let mut client = Client::connect(weir.address(), None);
        (0..asked).for_each(|_| assert_eq!(client.ask(GET).status, 200));
    }
    weir.signal(Signal::USR1);
    weir.wait_for_stderr(&["weir: so far: served 8 requests on 2 connections"]);
    origin.signal(Signal::USR1);
    origin.wait_for_stderr(&["weir: SIGUSR1 ignored: there is no log file"]);
}

#[test]
fn relay_and_origin_handle_the_same_signals() {
    let origin = origin(false, &Certificates::new());
    let relay = Weir::start(&["relay", "--listen", FREE, "--to", &origin.urls[0], "--workers", "1"]);
    let mut client = Client::connect(relay.address(), None);
    assert_eq!(client.ask(GET).status, 200);
    ignores_signals(&relay);
    ignores_signals(&origin);
    assert_eq!(client.ask(GET).status, 200);
    assert_eq!(relay.stop().code, Some(0));
    assert_eq!(origin.stop().code, Some(0));
}

/// The procedure in the line about SIGUSR2, for processes that cannot upgrade in place.
#[test]
fn a_new_process_starts_while_the_old_one_drains() {
    let answer = Switch::default();
    let awaited = answer.clone();
    let case = Case::new(MODES[0], &[], move |peer| {
        while let Some(request) = peer.request() {
            if request.head.contains("/slow") {
                awaited.wait();
            }
            peer.answer(ANSWER);
        }
    });
    let mut slow = case.client();
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    case.upstream.wait_for_requests(1);
    case.weir.terminate();
    let address = case.weir.address();
    poll_until(DEADLINE, "the port is released", || TcpListener::bind(address).is_ok());
    let to = format!("http://{}", case.upstream.address);
    let new = Weir::start(&["serve", "--listen", &case.weir.urls[0], "--to", &to, "--workers", "1"]);
    assert_eq!(Client::connect(new.address(), None).ask(GET).text(), "hi");
    answer.throw();
    let last = slow.answer(Method::Get);
    assert_eq!((last.text(), last.says_close()), ("hi", true));
    assert_eq!(case.weir.wait().code, Some(0));
    assert_eq!(new.stop().code, Some(0));
}

#[test]
fn an_upstream_whose_certificate_is_not_verified() {
    // The certificate has neither a trusted CA nor the right name.
    let certificates = Certificates::for_names(&["elsewhere.example"]);
    let acceptor = certificates.server().core();
    let upstream = Upstream::start(Some(acceptor), |peer| peer.serve(ANSWER));
    let to = format!("https://{}", upstream.address);
    let warning = format!("warning: --upstream-insecure: the certificate of {to} is not verified");
    for command in ["serve", "relay"] {
        let flags = [command, "--listen", FREE, "--to", &to, "--workers", "1", "--upstream-insecure"];
        let weir = Weir::start(&flags);
        assert_eq!(Client::connect(weir.address(), None).ask(GET).text(), "hi", "{command}");
        let stderr = weir.stop().stderr;
        assert_eq!(stderr.matches(&warning).count(), 1, "{command}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{command}: {stderr}");
    }
    // Without the flag, the certificate is verified, and there is no warning.
    let ca = certificates.ca.to_str().unwrap();
    let flags = ["serve", "--listen", FREE, "--to", &to, "--workers", "1", "--upstream-ca", ca];
    let weir = Weir::start(&flags);
    assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 502);
    let stderr = weir.stop().stderr;
    assert!(stderr.contains("upstream_tls") && !stderr.contains("warning"), "{stderr}");
}

#[test]
fn skipping_verification_without_tls_is_rejected() {
    let insecure = |more: &[&str]| {
        let args = [&["serve", "--listen", FREE, "--upstream-insecure"], more].concat();
        let Ended { code, stderr, .. } = Weir::run(&args);
        assert_eq!(code, Some(2), "{stderr}");
        stderr
    };
    let stderr = insecure(&["--to", UNUSED]);
    assert_eq!(
        stderr,
        format!(
            "weir: --upstream-insecure: --to {UNUSED} is not https, so there is no certificate to verify\n"
        )
    );
    let stderr = insecure(&["--to", "https://127.0.0.1:1", "--upstream-ca", "ca.pem"]);
    assert!(stderr.contains("'--upstream-insecure' cannot be used with '--upstream-ca"), "{stderr}");
}

/// As documented in docs/gateway/proxies.md, "Forwarded fields", in each mode.
#[test]
fn forwarding_headers_are_as_documented() {
    for mode in MODES {
        let case = Case::answering(mode, ANSWER);
        let scheme = if mode.client_tls { "https" } else { "http" };
        let answer = case.client().ask(
            "GET /path?query HTTP/1.1\r\nHost: shop.example:81\r\nX-Forwarded-For: 192.0.2.1\r\n\
             X-Forwarded-Proto: gopher\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Port: 99\r\n\
             Forwarded: for=192.0.2.1\r\nX_Forwarded_For: 192.0.2.1\r\nX-Real-IP: 192.0.2.1\r\nX-Real: 192.0.2.1\r\n\
             Via: 1.1 before\r\nConnection: X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=9\r\nUpgrade: websocket\r\n\r\n",
        );
        case.upstream.wait_for_requests(1);
        let request = case.upstream.requests()[0].clone();
        let head = &request.head;
        assert!(head.starts_with("GET /path?query HTTP/1.1\r\n"), "{head}");
        for (field, expected) in [
            // Unchanged from the client.
            ("Host", &["shop.example:81"][..]),
            // From the client's connection; the client's own value is dropped.
            ("X-Forwarded-For", &["127.0.0.1"]),
            ("X-Forwarded-Proto", &[scheme]),
            ("X-Forwarded-Host", &["shop.example:81"]),
            ("Forwarded", &[]),
            // A name with an underscore, which some servers treat as a hyphen.
            ("X_Forwarded_For", &[]),
            // The client is not a trusted proxy.
            ("X-Forwarded-Port", &[]),
            ("X-Real-IP", &[]),
            // Unknown to the gateway, so forwarded unchanged.
            ("X-Real", &["192.0.2.1"]),
            ("Via", &["1.1 before"]),
            // Hop-by-hop.
            ("Connection", &[]),
            ("X-Mine", &[]),
            ("Keep-Alive", &[]),
            ("Upgrade", &[]),
        ] {
            assert_eq!(request.fields(field), expected, "{} {field}: {head}", mode.name);
        }
        assert_eq!(answer.fields("Via"), [] as [&str; 0], "{}", answer.head);
        case.stop();
    }
}

#[test]
fn the_host_of_an_absolute_target_and_of_a_client_without_one() {
    let case = Case::answering(MODES[0], ANSWER);
    let authority = case.upstream.address.to_string();
    case.client().ask("GET http://shop.example/a HTTP/1.1\r\nHost: other.example\r\n\r\n");
    case.client().ask("GET /b HTTP/1.0\r\n\r\n");
    case.upstream.wait_for_requests(2);
    let requests = case.upstream.requests().clone();
    let find = |line| requests.iter().find(|request| request.head.starts_with(line)).unwrap();
    let absolute = find("GET /a HTTP/1.1\r\n");
    assert_eq!(absolute.fields("Host"), ["shop.example"]);
    assert_eq!(absolute.fields("X-Forwarded-Host"), ["shop.example"]);
    let hostless = find("GET /b HTTP/1.1\r\n");
    assert_eq!(hostless.fields("Host"), [authority.as_str()]);
    assert_eq!(hostless.fields("X-Forwarded-Host"), [] as [&str; 0]);
}

#[test]
fn ipv4_and_ipv6_have_separate_listeners() {
    if TcpListener::bind("[::1]:0").is_err() {
        println!("skipped: this machine has no IPv6");
        return;
    }
    let upstream = Upstream::start(None, |peer| peer.serve(ANSWER));
    let to = format!("http://{}", upstream.address);
    let all = ["serve", "--listen", "http://[::]:0", "--listen", "http://0.0.0.0:0", "--to", &to];
    let weir = Weir::start(&[&all[..], &["--workers", "1"]].concat());
    for (index, host) in ["::1", "127.0.0.1"].into_iter().enumerate() {
        let at = SocketAddr::new(host.parse().unwrap(), weir.address_of(index).port());
        assert_eq!(Client::connect(at, None).ask(GET).text(), "hi");
    }
    let requests = upstream.requests();
    let forwarded: Vec<_> = requests.iter().flat_map(|request| request.fields("X-Forwarded-For")).collect();
    assert_eq!(forwarded, ["::1", "127.0.0.1"]);
}

/// The error of an invalid value, with clap's text around it.
fn rejected(args: &[&str]) -> String {
    let Ended { code, stderr, .. } = Weir::run(args);
    assert_eq!(code, Some(2), "{args:?}: {stderr}");
    stderr
}

#[test]
fn the_error_of_an_invalid_url_names_the_expected_form() {
    let path = "a path is not supported, requests keep their own: expected";
    for (url, message) in [
        ("http://127.0.0.1:3000/api", format!("{path} http://127.0.0.1:3000\n")),
        ("https://api.internal/v1?x=1", format!("{path} https://api.internal\n")),
        (
            "127.0.0.1:3000",
            "missing scheme: expected http://127.0.0.1:3000 or https://127.0.0.1:3000\n".into(),
        ),
        ("ws://127.0.0.1:3000", "unknown scheme `ws`: expected http://HOST:PORT".into()),
        ("http://127.0.0.1:65536", "invalid port `65536` (0 to 65535): expected http://".into()),
        ("http://::1:80", "an IPv6 address needs brackets, [::1:80]: expected http://HOST:PORT".into()),
    ] {
        for (flag, args) in [
            ("--to", &["serve", "--listen", FREE, "--to", url][..]),
            ("--to", &["relay", "--listen", FREE, "--to", url]),
            ("--listen", &["serve", "--to", UNUSED, "--listen", url]),
            ("--listen", &["origin", "--listen", url]),
        ] {
            let stderr = rejected(args);
            let first = format!("error: invalid value '{url}' for '{flag} <URL>': `{url}`: ");
            assert!(stderr.starts_with(&first) && stderr.contains(&message), "{args:?}: {stderr}");
        }
    }
    let stderr = rejected(&["serve", "--listen", FREE, "--to", "http://127.0.0.1:0"]);
    assert_eq!(stderr, "weir: --to: http://127.0.0.1:0: invalid port 0\n");
}

/// The one section of a PEM file, decoded.
fn der(pem: &Path) -> Vec<u8> {
    let text = fs::read_to_string(pem).unwrap();
    let lines: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    BASE64_STANDARD.decode(lines).unwrap()
}

#[test]
fn the_error_of_an_invalid_pem_file_names_its_flag_and_the_expected_content() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ca_der = file("ca.der", &der(&certificates.ca));
    let key_der = file("key.der", &der(&certificates.key));
    // The start of an executable.
    let binary = file("binary", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\xff\xfe");
    let encrypted = file(
        "encrypted.pem",
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let [cert, key] = [&certificates.cert, &certificates.key].map(|path| path.to_str().unwrap());
    let expected_certificate = "expected PEM: text that starts with -----BEGIN CERTIFICATE-----";
    let binary_certificate =
        format!("{binary}: it contains no certificate: it is binary: {expected_certificate}");
    let binary_key = format!(
        "{binary}: no usable private key: it is binary: expected PEM: text that starts with -----BEGIN PRIVATE KEY-----"
    );
    let convert = format!(
        "{ca_der}: it contains no certificate: it is DER: expected PEM; \
         `openssl x509 -inform der -in {ca_der} -out {ca_der}.pem` converts it"
    );
    let convert_key = format!(
        "{key_der}: no usable private key: it is DER: expected PEM; \
         `openssl pkey -inform der -in {key_der} -out {key_der}.pem` converts it"
    );
    let decrypt =
        format!("it is encrypted; `openssl pkey -in {encrypted} -out {encrypted}.plain` decrypts it");
    let https = ["serve", "--listen", "https://127.0.0.1:0", "--to", UNUSED];
    let to_https = ["serve", "--listen", FREE, "--to", "https://127.0.0.1:1"];
    let load = ["load", "https://127.0.0.1:1", "-d", "50ms"];
    for (base, flags, wrong, message) in [
        (&https[..], &["--key", key][..], ["--cert", &binary], &binary_certificate),
        (&https, &["--key", key], ["--cert", &ca_der], &convert),
        (&https, &["--cert", cert], ["--key", &binary], &binary_key),
        (&https, &["--cert", cert], ["--key", &key_der], &convert_key),
        (&https, &["--cert", cert], ["--key", &encrypted], &decrypt),
        (&https, &["--cert", cert, "--key", key], ["--client-ca", &binary], &binary_certificate),
        (&https, &["--cert", cert, "--key", key], ["--client-ca", &ca_der], &convert),
        (&to_https, &[], ["--upstream-ca", &binary], &binary_certificate),
        (&to_https, &[], ["--upstream-ca", &ca_der], &convert),
        (&load, &[], ["--cacert", &binary], &binary_certificate),
        (&load, &[], ["--cacert", &ca_der], &convert),
        (&load, &["--key", key], ["--cert", &ca_der], &convert),
        (&load, &["--cert", cert], ["--key", &key_der], &convert_key),
    ] {
        let args = [base, flags, &wrong].concat();
        let stderr = rejected(&args);
        let flag = wrong[0];
        assert!(stderr.starts_with(&format!("weir: {flag}: ")), "{args:?}: {stderr}");
        assert!(stderr.contains(message) && stderr.lines().count() == 1, "{args:?}: {stderr}");
    }
    // The suggested command creates a valid file.
    if let Some(openssl) = crate::common::peer("openssl") {
        let command = ["x509", "-inform", "der", "-in", &ca_der, "-out", &format!("{ca_der}.pem")];
        assert!(std::process::Command::new(&openssl).args(command).status().unwrap().success());
        let command = ["pkey", "-inform", "der", "-in", &key_der, "-out", &format!("{key_der}.pem")];
        assert!(std::process::Command::new(&openssl).args(command).status().unwrap().success());
        let mode = Mode { name: "h1-h1", client_tls: true, upstream_tls: true };
        let converted = Certificates::new();
        fs::copy(format!("{key_der}.pem"), &converted.key).unwrap();
        fs::copy(&certificates.cert, &converted.cert).unwrap();
        fs::copy(format!("{ca_der}.pem"), &converted.ca).unwrap();
        let acceptor = certificates.server().core();
        let upstream = Upstream::start(Some(acceptor), |peer| peer.serve(ANSWER));
        let weir = serve(mode, &converted, upstream.address, &[]);
        let mut client = Client::connect(weir.address(), Some(converted.session()));
        assert_eq!(client.ask(GET).text(), "hi");
    }
}
