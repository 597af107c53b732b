//! HTTP/1.1, byte for byte. TLS is tested with the load engine.

use crate::server::Server;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use weir_origin::{Origin, Settings, pattern};

fn head(status: &str, kind: &str, rest: &str) -> String {
    format!("HTTP/1.1 {status}\r\nServer: weir-origin\r\nContent-Type: {kind}\r\n{rest}\r\n")
}

const BYTES: &str = "application/octet-stream";

#[test]
fn pipelined_requests_get_their_responses_in_order() {
    let server = Server::start();
    let responses = server.ask(
        "GET /bytes/3 HTTP/1.1\r\nHost: a\r\n\r\n\
         GET /bytes/4?delay_ms=10 HTTP/1.1\r\nHost: a\r\n\r\n\
         HEAD /bytes/9 HTTP/1.1\r\nHost: a\r\n\r\n\
         POST /bytes/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
         GET /nothing HTTP/1.0\r\n\r\n",
    );
    let expected = [
        head("200 OK", BYTES, "Content-Length: 3\r\n") + "012",
        head("200 OK", BYTES, "Content-Length: 4\r\n") + "0123",
        head("200 OK", BYTES, "Content-Length: 9\r\n"),
        head("200 OK", BYTES, "Content-Length: 1\r\n") + "0",
        head("404 Not Found", "text/plain", "Content-Length: 11\r\nConnection: close\r\n") + "Not found.\n",
    ];
    assert_eq!(responses, expected.concat());
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.connections, totals.failed), (5, 5, 1, 0));
    assert_eq!(totals.bytes_received, 5);
}

#[test]
fn an_echo_keeps_the_framing() {
    let server = Server::start();
    let chunked = server.ask(
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n",
    );
    let start = head("200 OK", BYTES, "Transfer-Encoding: chunked\r\nConnection: close\r\n");
    assert_eq!(chunked, start + "5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n");
    let length = server.ask("POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(length, head("200 OK", BYTES, "Content-Length: 5\r\nConnection: close\r\n") + "hello");
    let nothing = server.ask("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(nothing, head("200 OK", BYTES, "Content-Length: 0\r\nConnection: close\r\n"));
    server.stop();
}

#[test]
fn a_client_that_expects_100_gets_it_before_it_sends_the_body() {
    let server = Server::start();
    let mut stream = server.connect();
    stream
        .write_all(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n\
              Content-Length: 3\r\n\r\n",
        )
        .unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"abc").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\nabc"), "{response}");
    drop(stream);
    server.stop();
}

#[test]
fn large_bodies_are_the_pattern_to_the_last_byte() {
    let server = Server::start();
    let total = 20_000_123u64;
    for query in ["", "?chunked=1"] {
        let mut stream = server.connect();
        // HTTP/1.0: without chunks, to the end of the connection.
        write!(stream, "GET /bytes/{total}{query} HTTP/1.0\r\n\r\n").unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        let body = response.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let body = &response[body..];
        assert_eq!(body.len() as u64, total);
        let pieces = body.chunks(pattern::PIECE).enumerate();
        for (at, piece) in pieces {
            assert!(
                piece == pattern::from((at * pattern::PIECE) as u64, piece.len() as u64),
                "{query} piece {at}"
            );
        }
    }
    server.stop();
}

#[test]
fn a_delay_is_never_shorter() {
    let server = Server::start();
    let started = Instant::now();
    server.ask("GET /?delay_ms=30 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(started.elapsed() >= Duration::from_millis(30));
    server.stop();
}

#[test]
fn malformed_requests_get_the_parsers_status_and_the_end() {
    let server = Server::start();
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(33_000));
    for (request, status) in [
        ("nonsense\r\n\r\n", "400 Bad Request"),
        ("\u{16}\u{3}\u{1}", "400 Bad Request"),
        ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request"),
        (&long, "414 URI Too Long"),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505 HTTP Version Not Supported"),
        ("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501 Not Implemented"),
        ("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "400 Bad Request"),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "400 Bad Request"),
    ] {
        let response = server.ask(request);
        assert!(response.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request:.80}: {response}");
        assert!(response.contains("Connection: close\r\n"), "{response}");
    }
    let wrong = server.ask("GET /bytes/x HTTP/1.0\r\n\r\n");
    assert!(wrong.ends_with("/bytes/N gives N bytes, 0 to 1099511627776\n"), "{wrong}");
    let totals = server.stop();
    assert_eq!((totals.refused, totals.requests), (8, 1));
}

#[test]
fn a_half_closed_client_gets_its_response() {
    let server = Server::start();
    let mut stream = server.connect();
    stream.write_all(b"GET /bytes/100000?delay_ms=10 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    assert!(response.len() > 100_000);
    let totals = server.stop();
    assert_eq!((totals.answers, totals.failed), (1, 0));
}

#[test]
fn a_drain_finishes_requests_in_flight() {
    let server = Server::start();
    let mut busy = server.connect();
    let mut idle = server.connect();
    busy.write_all(b"GET /bytes/5?delay_ms=100 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    idle.write_all(b"GET /bytes/0 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.handle.totals().requests < 2 {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    server.handle.drain();
    let (mut first, mut second) = (String::new(), String::new());
    idle.read_to_string(&mut second).unwrap();
    busy.read_to_string(&mut first).unwrap();
    assert!(first.ends_with("\r\n\r\n01234") && second.ends_with("\r\n\r\n"), "{first} {second}");
    drop((busy, idle));
    let address = server.address;
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.failed), (2, 2, 0));
    assert!(TcpStream::connect(address).is_err(), "the listener is closed");
}

/// Whether it is accepted before the drain or during it.
#[test]
fn a_drain_closes_a_connection_without_a_request() {
    let server = Server::start();
    let mut silent = server.connect();
    server.handle.drain();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0, "the end of the stream, no reset");
    drop(silent);
    let totals = server.stop();
    assert_eq!((totals.connections, totals.failed), (1, 0));
}

#[test]
fn stats_tell_what_was_counted() {
    let server = Server::start();
    server.ask("GET /bytes/7 HTTP/1.0\r\n\r\n");
    let response = server.ask("GET /stats HTTP/1.0\r\n\r\n");
    let json: serde_json::Value = serde_json::from_str(response.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!((json["answers"].as_u64(), json["bytes_sent"].as_u64()), (Some(1), Some(7)));
    assert_eq!(json["connections"].as_u64(), Some(2));
    server.stop();
}

#[test]
fn the_null_server_responds_to_each_read_with_the_same_bytes() {
    let server = Server::with(Settings { null: Some(70_000), ..Settings::default() });
    let mut stream = server.connect();
    for request in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "no request at all", "?"] {
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = vec![0; 70_000 + "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n".len()];
        stream.read_exact(&mut response).unwrap();
        let body = response.split_off(response.len() - 70_000);
        assert_eq!(response, b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n");
        assert_eq!(body[..65_000], *pattern::from(0, 65_000));
        assert_eq!(body[65_000..], *pattern::from(65_000, 5_000));
    }
    // The end of the client's stream ends the connection; a drain ends those that are left.
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    let mut idle = server.connect();
    idle.write_all(b"x").unwrap();
    idle.read_exact(&mut [0; 17]).unwrap();
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.connections, totals.failed), (4, 4, 2, 0));
}

#[test]
fn the_null_servers_response_has_a_limit() {
    let listen = vec!["http://127.0.0.1:0".parse().unwrap()];
    let settings = Settings { listen, null: Some(Settings::MOST_NULL + 1), ..Settings::default() };
    let error = Origin::bind(&settings).unwrap_err();
    assert!(
        error.is_usage()
            && error.to_string().contains("--null: invalid value `16777217`: expected 0 to 16777216 bytes"),
        "{error}"
    );
}
