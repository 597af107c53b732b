//! `weir import`: the translated configuration serves requests as nginx or HAProxy would.

mod closed;
mod streams;

use super::{get, named};
use crate::common::{Certificates, Client, DEADLINE, Peer, Upstream, Weir, poll_until};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weir_http::Method;

/// A configuration from the importer's own tests.
fn shape(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/shapes").join(name)
}

/// The translation of such a configuration, without losses, with addresses and files replaced.
fn imported(name: &str, replaced: &[(&str, String)]) -> String {
    let ended = Weir::run(&["import", shape(name).to_str().unwrap(), "--strict"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    let mut toml = format!("workers = 1\n{}", ended.stdout);
    for (from, to) in replaced {
        assert!(toml.contains(from), "no `{from}` in {toml}");
        toml = toml.replace(from, to);
    }
    toml
}

#[test]
fn nginx_with_tls_in_front_of_websockets() {
    let certificates = Certificates::new();
    let app = Upstream::start(None, |peer: &mut Peer| {
        while let Some((head, _)) = peer.head() {
            if !head.contains("Upgrade: websocket") {
                peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len()));
                continue;
            }
            peer.answer(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello",
            );
            let mut got = Vec::new();
            while got.len() < 4 && peer.stream.receive(&mut got).is_none() {}
            peer.answer(&got);
            return;
        }
    });
    let any_port = || "bind = \"127.0.0.1:0\"".to_owned();
    let toml = imported(
        "nginx-websocket.conf",
        &[
            ("bind = [\"0.0.0.0:80\", \"[::]:80\"]", any_port()),
            ("bind = [\"[::]:443\", \"0.0.0.0:443\"]", any_port()),
            ("/etc/hub/tls.pem", certificates.cert.display().to_string()),
            ("/etc/hub/tls.key", certificates.key.display().to_string()),
            ("http://127.0.0.1:8123", format!("http://{}", app.address)),
        ],
    );
    let weir = Weir::configured(&toml, 2);
    let [http, https] = ["http://", "https://"]
        .map(|scheme| weir.address_of(weir.urls.iter().position(|url| url.starts_with(scheme)).unwrap()));
    let moved = Client::connect(http, None).ask("GET /a?b HTTP/1.1\r\nHost: hub.example.net\r\n\r\n");
    assert_eq!((moved.status, moved.fields("location")), (301, vec!["https://hub.example.net/a?b"]));

    let mut client = Client::connect(https, Some(certificates.session()));
    let answer = client.ask("GET / HTTP/1.1\r\nHost: hub.example.net\r\n\r\n");
    assert_eq!(answer.fields("strict-transport-security"), ["max-age=15552000; includeSubDomains"]);
    for line in
        ["Host: hub.example.net\r\n", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Proto: https\r\n"]
    {
        assert!(answer.text().contains(line), "{}", answer.text());
    }
    client.send(
        "GET /ws HTTP/1.1\r\nHost: hub.example.net\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nping",
    );
    assert_eq!(client.answer(Method::Get).status, 101);
    let (bytes, _) = client.read_to_end();
    assert_eq!(String::from_utf8_lossy(&bytes), "helloping");
}

#[test]
fn haproxy_with_two_backends_by_path_and_health_checks() {
    let [api, spare, site, other] = ["api", "spare", "site", "other"].map(named);
    let toml = imported(
        "haproxy-two-backends.cfg",
        &[
            ("0.0.0.0:8080", "127.0.0.1:0".to_owned()),
            ("127.0.0.1:9001", api.address.to_string()),
            ("127.0.0.1:9002", spare.address.to_string()),
            ("127.0.0.1:9003", site.address.to_string()),
            ("127.0.0.1:9004", other.address.to_string()),
        ],
    );
    let weir = Weir::configured(&toml, 1);
    // The configuration enables health checks.
    poll_until(DEADLINE, "a health check of the api", || {
        api.requests().iter().any(|request| request.head.starts_with("GET /ready "))
    });
    let answer = get(&weir, "h", "/api/users?a");
    assert_eq!(answer.fields("x-server"), ["api"]);
    assert!(answer.text().contains("GET /users?a HTTP/1.1\r\n"), "{}", answer.text());
    assert!(answer.text().contains("X-Edge: one\r\n"), "{}", answer.text());
    assert_eq!(get(&weir, "h", "/graphql").fields("x-server"), ["api"]);
    let first = get(&weir, "h", "/");
    assert!(["site", "other"].contains(&first.fields("x-server")[0]));
    let cookie = first.fields("set-cookie")[0].split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("SEAT="), "{cookie}");
    for _ in 0..4 {
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: {cookie}\r\n\r\n");
        let again = Client::connect(weir.address(), None).ask(request);
        assert_eq!(again.fields("x-server"), first.fields("x-server"));
    }
}

#[test]
fn nginx_with_a_redirect_and_an_api_below_a_prefix() {
    let [api, site] = ["api", "site"].map(named);
    let folder = tempfile::tempdir().unwrap();
    let toml = imported(
        "nginx-site-and-api.conf",
        &[
            ("0.0.0.0:8080", "127.0.0.1:0".to_owned()),
            ("127.0.0.1:9001", api.address.to_string()),
            ("127.0.0.1:9002", api.address.to_string()),
            ("http://127.0.0.1:9000", format!("http://{}", site.address)),
            ("/var/log/shop", folder.path().display().to_string()),
        ],
    );
    let weir = Weir::configured(&toml, 1);
    let moved = get(&weir, "www.shop.example", "/cart?x");
    assert_eq!((moved.status, moved.fields("location")), (301, vec!["http://shop.example/cart?x"]));
    let alive = get(&weir, "shop.example", "/healthz");
    assert_eq!((alive.text(), alive.fields("content-type")), ("<p>alive</p>", vec!["text/html"]));
    let answer = get(&weir, "shop.example", "/api/v1/items");
    assert_eq!(answer.fields("x-server"), ["api"]);
    for line in ["GET /v1/items HTTP/1.1\r\n", "X-Real-IP: 127.0.0.1\r\n", "Host: shop.example\r\n"] {
        assert!(answer.text().contains(line), "{}", answer.text());
    }
    let slash = get(&weir, "shop.example", "/api");
    assert_eq!((slash.status, slash.fields("location")), (301, vec!["/api/"]));
    // The default server handles all names; by default nginx sends the server's own address as Host.
    let rest = get(&weir, "elsewhere.example", "/items");
    assert_eq!((rest.fields("x-server"), rest.fields("cache-control")), (vec!["site"], vec!["max-age=3600"]));
    assert!(rest.text().contains(&format!("Host: {}\r\n", site.address)), "{}", rest.text());
    let large = Client::connect(weir.address(), None)
        .ask("POST /items HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 5000000\r\n\r\n");
    assert_eq!(large.status, 413);
}

#[test]
fn results_go_to_stdout_or_to_a_file_and_losses_to_stderr() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (source, out) = (path("site.conf"), path("weir.toml"));
    fs::write(&source, "server {\n    gzip on;\n    return 200 ok;\n}\n").unwrap();
    let loss =
        format!("{source}:2: gzip on: Weir does not compress; let the service compress its responses\n");
    let said = format!("{loss}weir: 1 of {source} not translated\n");
    let ended = Weir::run(&["import", &source]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), said.as_str()));
    assert!(ended.stdout.contains(&format!("#   {loss}")), "{}", ended.stdout);
    let ended = Weir::run(&["import", &source, "--strict", "--out", &out]);
    assert_eq!((ended.code, ended.stderr.as_str(), ended.stdout.as_str()), (Some(3), said.as_str(), ""));
    assert_eq!(Weir::run(&["check", "--config", &out]).code, Some(0));
    fs::write(&out, "mine").unwrap();
    let ended = Weir::run(&["import", &source, "--out", &out]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("exists; overwrite it with --force"),
        "{}",
        ended.stderr
    );
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    assert_eq!(Weir::run(&["import", &source, "--out", &out, "--force"]).code, Some(0));
    assert!(fs::read_to_string(&out).unwrap().contains("respond = { status = 200, body = \"ok\" }"));
}

#[test]
fn faults_are_located_and_standard_input_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("broken.conf").display().to_string();
    for (text, code, message) in [
        ("server {\n", 2, "broken.conf:1: unexpected end of the file: expected `}` of `server`\n"),
        ("nothing here", 2, "broken.conf: neither nginx nor HAProxy: expected blocks in braces"),
    ] {
        fs::write(&source, text).unwrap();
        let ended = Weir::run(&["import", &source]);
        assert!(ended.code == Some(code) && ended.stderr.contains(message), "{}", ended.stderr);
    }
    let ended = Weir::run(&["import", "/no/such.conf"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("cannot read /no/such.conf"), "{}", ended.stderr);
    let ended = Weir::run(&["import", &source, "--from", "apache"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("expected nginx or haproxy"), "{}", ended.stderr);
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["import", "-", "--from", "haproxy"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"listen a\n mode http\n bind :80\n server s 127.0.0.1:1\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let toml = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && toml.contains("# stdin:1\n[service.a]"), "{toml}");
}

/// The example in docs/gateway/import.md matches the program's output.
#[test]
fn the_documented_example_is_the_result() {
    const DOCUMENT: &str = include_str!("../../docs/gateway/import.md");
    let (_, rest) = DOCUMENT.split_once("```nginx\n").unwrap();
    let (source, rest) = rest.split_once("```").unwrap();
    let expected = rest.split_once("```text\n").unwrap().1.split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("site.conf");
    fs::write(&path, source).unwrap();
    let ended = Weir::run(&["import", path.to_str().unwrap()]);
    let found = ended.stdout.replace(path.to_str().unwrap(), "site.conf");
    assert!(found.ends_with(&format!("\n{expected}")), "{found}");
}
