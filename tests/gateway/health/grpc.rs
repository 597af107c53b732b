//! Health checks by the gRPC health checking protocol.

use super::server::{Record, Response, serve};
use super::{FAST, LISTENER, faults, wait_for_status};
use crate::common::{DEADLINE, Ending, Peer, Upstream, Weir, poll_until};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use weir_http2::ErrorCode;

/// A service with health checks that ask its servers for this gRPC service.
fn config(server: &Upstream, name: &str) -> String {
    format!(
        "{LISTENER}[service.app]\nservers = 'http://{}'\nhttp2 = true\nhealth = {{ grpc = '{name}', host = 'check.example', {FAST} }}",
        server.address
    )
}

/// A response with a HealthCheckResponse of this status.
fn health(status: u8) -> Response {
    Response {
        status: 200,
        fields: vec![("content-type", "application/grpc+proto".to_owned())],
        body: vec![0, 0, 0, 0, 2, 0x08, status],
        trailers: vec![("grpc-status", "0".to_owned()), ("grpc-message", String::new())],
        ..Response::default()
    }
}

/// A server with this status.
fn with_status(listener: TcpListener, status: &Arc<AtomicU8>, record: &Record) -> Upstream {
    let (status, record) = (Arc::clone(status), record.clone());
    Upstream::on(listener, None, move |peer: &mut Peer| {
        serve(peer, &record, |_| health(status.load(Ordering::SeqCst)));
    })
}

const SERVING: u8 = 1;
const NOT_SERVING: u8 = 2;

#[test]
fn a_grpc_server_is_down_unless_it_serves() {
    let (status, record) = (Arc::new(AtomicU8::new(SERVING)), Record::default());
    let server = with_status(TcpListener::bind("127.0.0.1:0").unwrap(), &status, &record);
    let address = server.address;
    let weir = Weir::configured(&config(&server, "shop.v1.Cart"), 1);
    poll_until(DEADLINE, "three checks and their ends", || record.endings().len() >= 3);
    let request = record.requests()[0].clone();
    assert_eq!(
        request.head,
        ":method: POST\r\n:scheme: http\r\n:authority: check.example\r\n:path: /grpc.health.v1.Health/Check\r\n\
         user-agent: weir\r\ncontent-type: application/grpc\r\nte: trailers\r\n"
    );
    assert_eq!(request.body, b"\0\0\0\0\x0e\x0a\x0cshop.v1.Cart");
    assert!(!weir.stderr().contains("is down"), "{}", weir.stderr());
    status.store(NOT_SERVING, Ordering::SeqCst);
    weir.wait_for_stderr(&["weir: app: http://127.0.0.1:", "is down: status NOT_SERVING"]);
    wait_for_status(&weir, true);
    status.store(SERVING, Ordering::SeqCst);
    weir.wait_for_stderr(&["is up"]);
    wait_for_status(&weir, false);
    let endings = record.endings();
    assert!(
        endings.iter().all(|ending| *ending == (Some(ErrorCode::NO_ERROR), Ending::Clean)),
        "{endings:?}"
    );
    // The server restarts at the same address.
    drop(server);
    weir.wait_for_stderr(&["is down: connect: Connection refused"]);
    wait_for_status(&weir, true);
    let _server = with_status(TcpListener::bind(address).unwrap(), &status, &record);
    wait_for_status(&weir, false);
    poll_until(DEADLINE, "the second rise", || weir.stderr().matches("is up").count() == 2);
}

#[test]
fn an_empty_name_asks_about_the_whole_server() {
    let record = Record::default();
    let server =
        with_status(TcpListener::bind("127.0.0.1:0").unwrap(), &Arc::new(AtomicU8::new(SERVING)), &record);
    let weir = Weir::configured(&config(&server, ""), 1);
    poll_until(DEADLINE, "three checks", || record.endings().len() >= 3);
    assert!(record.requests().iter().all(|request| request.body == [0; 5]), "{:?}", record.requests());
    assert!(!weir.stderr().contains("is down"), "{}", weir.stderr());
}

#[test]
fn a_failed_grpc_check_says_what_came_instead() {
    let response = Arc::new(Mutex::new(health(SERVING)));
    let server = {
        let response = Arc::clone(&response);
        Upstream::start(None, move |peer: &mut Peer| {
            serve(peer, &Record::default(), |_| response.lock().unwrap().clone());
        })
    };
    let weir = Weir::configured(&config(&server, "x.Y"), 1);
    let trailers_only = |status: &str| Response {
        status: 200,
        fields: vec![("content-type", "application/grpc".to_owned()), ("grpc-status", status.to_owned())],
        ..Response::default()
    };
    for (count, (sent, why)) in [
        (health(3), "status SERVICE_UNKNOWN"),
        (trailers_only("12"), "grpc-status 12 UNIMPLEMENTED"),
        (trailers_only("5"), "grpc-status 5 NOT_FOUND"),
        (
            Response { trailers: vec![("grpc-status", "14".to_owned())], ..health(SERVING) },
            "grpc-status 14 UNAVAILABLE",
        ),
        (Response { trailers: vec![], ..health(SERVING) }, "a response without grpc-status"),
        (Response { status: 404, ..Response::default() }, "HTTP status 404"),
        (
            Response { fields: vec![("content-type", "text/html".to_owned())], ..health(SERVING) },
            "content-type text/html: expected application/grpc",
        ),
        (Response { body: vec![0; 5000], ..health(SERVING) }, "a response of more than 4096 bytes"),
    ]
    .into_iter()
    .enumerate()
    {
        *response.lock().unwrap() = sent;
        weir.wait_for_stderr(&["is down: ", why]);
        *response.lock().unwrap() = health(SERVING);
        poll_until(DEADLINE, "the server is up", || weir.stderr().matches("is up").count() > count);
    }
}

#[test]
fn what_no_grpc_check_can_be_is_refused() {
    let long = "x".repeat(257);
    for (service, fault) in [
        ("health.grpc = ''", "service.app.health.grpc: needs `http2 = true` of the service: gRPC is HTTP/2"),
        (
            "http2 = true\nhealth = { grpc = '', path = '/' }",
            "service.app.health.grpc: conflicts with `path`: expected one of both",
        ),
        (
            "http2 = true\nhealth = { grpc = '', status = '200' }",
            "service.app.health.status: no effect beside `grpc`: the status of gRPC decides; remove it",
        ),
        (
            "http2 = true\nhealth.grpc = 'a b'",
            "service.app.health.grpc: invalid value `a b`: expected the name of a gRPC service, such as `shop.v1.Cart`",
        ),
        (&format!("http2 = true\nhealth.grpc = '{long}'"), "in at most 256 bytes; \"\" is the whole server"),
        (
            "http2 = true\nhealth.host = 'h'",
            "service.app.health.host: no effect without `path` or `grpc`: a check is no more than a connection",
        ),
    ] {
        let found = faults(&format!("{LISTENER}[service.app]\nservers = 'http://127.0.0.1:1'\n{service}"));
        assert!(found.contains(fault), "{service}: {found}");
    }
}

#[test]
fn an_explanation_names_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    for (health, line) in [
        ("grpc = ''", "health by gRPC every 5s within 2s, up after 2, down after 3\n"),
        ("grpc = 'x.Y', host = 'h'", "health by gRPC about x.Y for h every 5s within 2s"),
    ] {
        let service = format!("servers = 'http://127.0.0.1:1'\nhttp2 = true\nhealth = {{ {health} }}");
        std::fs::write(&file, format!("{LISTENER}[service.app]\n{service}\n")).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap(), "--explain"]);
        assert!(ended.code == Some(0) && ended.stdout.contains(line), "{}{}", ended.stdout, ended.stderr);
    }
}
