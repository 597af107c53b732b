//! Messages that the gateway rejects by default and settings can accept: scope and reporting of the settings. The
//! matrix in `smuggling` tests the effect of each rule, byte for byte.

use super::{ask, metric};
use crate::common::{Client, DEADLINE, Peer, Upstream, Weir, poll_until};
use weir_http::Method;

const BARE_LF: &str = "HTTP/1.1 200 OK\nX-A: 1\nContent-Length: 2\n\nok";

/// A gateway with a strict listener and service, and a second pair with settings.
fn gateway(upstream: &Upstream, strict: &str, lenient: &str, routes: &str) -> Weir {
    let server = upstream.address;
    Weir::configured(
        &format!(
            "workers = 1\n[admin]\nbind = '127.0.0.1:0'\n[listener.a]\nbind = '127.0.0.1:0'\n\
             [listener.b]\nbind = '127.0.0.1:0'\n{strict}\n\
             [service.a]\nservers = 'http://{server}'\n[service.b]\nservers = 'http://{server}'\n{lenient}\n{routes}\n\
             [[route]]\nlistener = 'a'\nservice = 'a'\n[[route]]\nlistener = 'b'\nservice = 'b'\n"
        ),
        2,
    )
}

fn scripted(answer: &'static str) -> Upstream {
    Upstream::start(None, move |peer: &mut Peer| {
        while peer.request().is_some() {
            peer.answer(answer);
        }
    })
}

fn metrics(weir: &Weir, path: &str) -> String {
    weir.ask_admin(&format!("GET {path}")).text().to_owned()
}

#[test]
fn requests_are_accepted_by_their_listener_alone_and_counted() {
    const ODD: &str = "\r\n\r\nGET /é HTTP/1.2\r\nHost: h:\r\n\r\n";
    let upstream = super::named("x");
    let every = "accept = ['http-1.2', 'empty-host', 'host-without-port', 'empty-lines', 'raw-utf8-target']";
    let weir = gateway(&upstream, every, "", "");
    let strict = ask(&weir, ODD);
    assert_eq!(strict.status, 400);
    assert_eq!(
        strict.text(),
        "400 Bad Request: bad_method; a listener can accept it: accept = ['empty-lines']\n"
    );
    weir.wait_for_stderr(&[
        "400 bad_method",
        "detail=\"the method is not a token; a listener can accept it: accept = ['empty-lines']\"",
    ]);
    let mut client = Client::connect(weir.address_of(1), None);
    for _ in 0..2 {
        let answer = client.ask(ODD);
        assert!(answer.text().contains("GET /%C3%A9 HTTP/1.1\r\nHost: h\r\n"), "{}", answer.text());
    }
    assert_eq!(upstream.requests().len(), 2);
    let text = metrics(&weir, "/metrics");
    for rule in ["http_1_2", "host_without_port", "empty_lines", "raw_utf8_target"] {
        let line = format!("weir_accepted_total{{rule=\"{rule}\",listener=\"b\"}} 2\n");
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert_eq!(metric(&weir, "weir_accepted_total"), 8);
    let status: serde_json::Value = serde_json::from_str(&metrics(&weir, "/status")).unwrap();
    let accepted = status["accepted"].as_array().unwrap();
    let expected = serde_json::json!({ "rule": "http_1_2", "listener": "b", "count": 2 });
    assert!(accepted.len() == 4 && accepted.contains(&expected), "{accepted:?}");
}

/// An empty Host counts as no Host: routes with a host do not match, and the server gets its own authority.
#[test]
fn a_request_with_an_empty_host_goes_where_requests_without_one_go() {
    let upstream = super::named("x");
    let routes = "[[route]]\nhost = 'h'\nrespond.status = 418\n";
    let weir = gateway(&upstream, "accept = 'empty-host'", "", routes);
    let mut client = Client::connect(weir.address_of(1), None);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status, 418);
    assert_eq!(client.ask("GET http://h/ HTTP/1.1\r\nHost:\r\n\r\n").status, 418);
    let answer = client.ask("GET / HTTP/1.1\r\nHost:\r\n\r\n");
    assert!(answer.text().contains(&format!("\r\nHost: {}\r\n", upstream.address)), "{}", answer.text());
    assert!(!answer.text().contains("X-Forwarded-Host"), "{}", answer.text());
}

/// The gateway parses a head again after it waited for its body or for a connection.
#[test]
fn a_request_without_a_host_may_wait() {
    const POST: &str = "POST / HTTP/1.1\r\nHost:\r\nContent-Length: 4\r\n\r\n";
    let upstream = super::named("x");
    let weir = gateway(
        &upstream,
        "accept = 'empty-host'",
        "max_connections = 1",
        "[[route]]\nlistener = 'b'\npath = '/*'\nservice = 'b'\nrequest_buffer = '16KiB'\n",
    );
    let mut clients: Vec<_> = (0..3).map(|_| Client::connect(weir.address_of(1), None)).collect();
    clients.iter_mut().for_each(|client| client.send(POST));
    for client in &mut clients {
        client.send("abcd");
    }
    for client in &mut clients {
        assert_eq!(client.answer(Method::Post).status, 200);
    }
    assert_eq!(metric(&weir, "weir_accepted_total"), 3);
}

#[test]
fn answers_are_accepted_by_their_service_alone_and_counted() {
    let upstream = scripted(BARE_LF);
    let weir = gateway(&upstream, "", "accept = ['obs-fold', 'bare-lf']", "");
    let strict = ask(&weir, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(
        strict.text(),
        "502 Bad Gateway: bad_response; a service can accept it: accept = ['bare-lf']\n"
    );
    weir.wait_for_stderr(&[
        "502 bad_response",
        "detail=\"a line ends with a bare LF; a service can accept it: accept = ['bare-lf']\"",
    ]);
    let mut client = Client::connect(weir.address_of(1), None);
    for _ in 0..3 {
        let answer = client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!((answer.status, answer.text(), answer.fields("x-a")), (200, "ok", vec!["1"]));
    }
    let text = metrics(&weir, "/metrics");
    assert!(text.contains("weir_accepted_total{rule=\"bare_lf\",service=\"b\"} 3\n"), "{text}");
    assert_eq!(metric(&weir, "weir_accepted_total"), 3);
}

/// If no setting would accept the request, the response suggests none.
#[test]
fn a_refusal_names_the_setting_that_would_lift_it() {
    let upstream = super::named("x");
    let weir = gateway(&upstream, "", "", "[[route]]\npath = '/small'\nservice = 'a'\nmax_body = 1\n");
    for (request, said) in [
        (
            "GET / HTTP/1.2\r\nHost: h\r\n\r\n",
            "unsupported_version; a listener can accept it: accept = ['http-1.2']",
        ),
        (
            "GET / HTTP/1.2\r\nHost:\r\n\r\n",
            "unsupported_version; a listener can accept it: accept = ['http-1.2']",
        ),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", "unsupported_version"),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", "bad_host; a listener can accept it: accept = ['empty-host']"),
        (
            "GET / HTTP/1.1\r\nHost: h:\r\n\r\n",
            "bad_host; a listener can accept it: accept = ['host-without-port']",
        ),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "bad_host"),
        (
            "GET /é HTTP/1.1\r\nHost: h\r\n\r\n",
            "bad_target_character; a listener can accept it: accept = ['raw-utf8-target']",
        ),
        ("GET /é# HTTP/1.1\r\nHost: h\r\n\r\n", "bad_target_character"),
        ("GET / HTTP/1.1\nHost: h\r\n\r\n", "bare_lf"),
        (
            "POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab",
            "body_too_large; limits.body and the max_body of a route set how large a body may be",
        ),
    ] {
        let answer = ask(&weir, request);
        let (_, after) = answer.text().split_once(": ").unwrap();
        assert_eq!(after, format!("{said}\n"), "{request:?}");
    }
    let long = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: 1\r\n".repeat(100));
    let answer = ask(&weir, &long);
    assert!(
        answer.text().ends_with(": too_many_fields; limits.fields sets how many fields a head may have\n")
    );
}

/// Otherwise, failing checks would remove the service's servers.
#[test]
fn health_checks_accept_what_their_service_does() {
    for (accept, is_up) in [("", 0), ("accept = 'bare-lf'", 1)] {
        let upstream = scripted(BARE_LF);
        let server = upstream.address;
        let weir = Weir::configured(
            &format!(
                "workers = 1\n[admin]\nbind = '127.0.0.1:0'\n[listener.a]\nbind = '127.0.0.1:0'\n\
                 [service.a]\nservers = 'http://{server}'\n{accept}\n\
                 health = {{ path = '/', every = '10ms', fall = 1 }}\n[[route]]\nservice = 'a'\n"
            ),
            1,
        );
        poll_until(DEADLINE, "some checks", || upstream.requests().len() >= 3);
        poll_until(DEADLINE, "their result", || metric(&weir, "weir_server_up") == is_up);
    }
}

#[test]
fn rules_are_those_of_requests_or_of_answers() {
    let config = |listener: &str, service: &str| {
        format!(
            "[listener.a]\nbind = '127.0.0.1:0'\n{listener}\n[service.a]\nservers = 'http://127.0.0.1:1'\n{service}\n\
             [[route]]\nservice = 'a'\n"
        )
    };
    let requests = "`http-1.2`, `empty-host`, `host-without-port`, `empty-lines`, `raw-utf8-target`";
    let answers = "`connection-names-framing`, `chunked-twice`, `bare-lf`, `obs-fold`, `space-before-colon`";
    super::check::refused(
        &config("accept = 'http-2'", ""),
        &format!("listener.a.accept: invalid rule `http-2`: expected {requests}"),
    );
    super::check::refused(
        &config("accept = ['empty-host', 'bare-lf']", ""),
        &format!(
            "invalid rule `bare-lf`: it applies to responses only; in requests it would allow request smuggling: expected {requests}"
        ),
    );
    super::check::refused(
        &config("", "accept = ['empty-host']"),
        &format!("service.a.accept: invalid rule `empty-host`: expected {answers}"),
    );
}

/// No client gets a copy's response, but an invalid one would count against its server.
#[test]
fn answers_to_mirrored_requests_are_accepted_by_the_mirrors_service() {
    let upstream = super::named("x");
    for (accept, fate) in [("", "failed"), ("accept = 'bare-lf'", "responded")] {
        let copies = scripted(BARE_LF);
        let weir = Weir::configured(
            &format!(
                "workers = 1\n[admin]\nbind = '127.0.0.1:0'\n[listener.a]\nbind = '127.0.0.1:0'\n\
                 [service.a]\nservers = 'http://{}'\n[service.b]\nservers = 'http://{}'\n{accept}\n\
                 [[route]]\nservice = 'a'\nmirror.service = 'b'\n",
                upstream.address, copies.address
            ),
            1,
        );
        assert_eq!(ask(&weir, "GET / HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
        poll_until(DEADLINE, "the copy is answered, or fails", || {
            metrics(&weir, "/metrics").contains(&format!("weir_mirrored_total{{fate=\"{fate}\"}} 1\n"))
        });
    }
}

#[test]
fn what_is_accepted_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let config = "[listener.a]\nbind = '127.0.0.1:0'\naccept = ['http-1.2', 'empty-lines']\n[service.b]\n\
                  servers = 'http://127.0.0.1:1'\naccept = 'bare-lf'\n[[route]]\nservice = 'b'\n";
    std::fs::write(&file, config).unwrap();
    let explained = Weir::run(&["check", "--config", file.to_str().unwrap(), "--explain"]);
    for line in ["a                accepts http-1.2 empty-lines\n", "accepts bare-lf\n"] {
        assert!(explained.stdout.contains(line), "{}{}", explained.stdout, explained.stderr);
    }
}

/// A connection keeps the settings of its listener at the time of accept; a response follows the current settings of
/// its service.
#[test]
fn a_reload_changes_what_is_accepted() {
    const ODD: &str = "GET / HTTP/1.2\r\nHost: h\r\n\r\n";
    let upstream = scripted(BARE_LF);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let write = |listener: &str, service: &str| {
        let config = format!(
            "workers = 1\n[admin]\nbind = '127.0.0.1:0'\n[listener.a]\nbind = '127.0.0.1:0'\n{listener}\n\
             [service.b]\nservers = 'http://{}'\n{service}\n[[route]]\nservice = 'b'\n\
             [[route]]\npath = '/own'\nrespond.status = 204\n",
            upstream.address
        );
        std::fs::write(&file, config).unwrap();
    };
    write("accept = 'http-1.2'", "");
    let weir = Weir::of_file(&file, 1);
    let mut before = Client::connect(weir.address(), None);
    assert_eq!(before.ask("GET /own HTTP/1.1\r\nHost: h\r\n\r\n").status, 204);
    write("", "accept = 'bare-lf'");
    let reloaded = weir.ask_admin("POST /reload");
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    assert_eq!(before.ask(ODD).status, 200);
    assert_eq!(ask(&weir, ODD).status, 505);
}
