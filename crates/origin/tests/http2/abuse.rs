//! Malformed requests and clients that cause more work than they have.

use super::client::Client;
use crate::server::Server;
use std::io::{Read, Write};
use weir_http2::ErrorCode;
use weir_origin::{HttpVersions, Settings};

#[test]
fn rapid_resets_end_the_connection() {
    let server = Server::start();
    let mut client = Client::new(&server);
    let budget = weir_http2::Budgets::default().resets;
    for _ in 0..=budget {
        let no = client.get("/bytes/1?delay_ms=60000");
        client.reset(no, ErrorCode::CANCEL);
    }
    client.send();
    client.read_to_end();
    assert_eq!(client.goaways, [(2 * budget + 1, ErrorCode::ENHANCE_YOUR_CALM)]);
    drop(client);
    let totals = server.stop();
    assert_eq!((totals.refused, totals.answers, totals.failed), (1, 0, 0));
    assert_eq!(totals.reset, u64::from(budget));
}

#[test]
fn a_malformed_request_ends_its_stream() {
    let server = Server::start();
    let mut client = Client::new(&server);
    let bad = client.request("POST", "/echo", &[("content-length", "3")], false);
    assert_eq!(client.data(bad, b"four", true), 4);
    let good = client.get("/bytes/1");
    assert_eq!(client.response(good).status, 200);
    assert_eq!(client.responses[&bad].reset, Some(ErrorCode::PROTOCOL_ERROR));
    let worse = client.request("GET", "/", &[("connection", "close")], true);
    client.send();
    client.until(|client| client.responses[&worse].reset.is_some());
    drop(client);
    let totals = server.stop();
    assert_eq!((totals.refused, totals.answers, totals.failed), (2, 1, 0));
}

#[test]
fn a_malformed_frame_ends_the_connection() {
    let server = Server::start();
    let mut client = Client::new(&server);
    let served = client.get("/bytes/1");
    client.response(served);
    // PING on a stream.
    client.socket.write_all(b"\0\0\x08\x06\0\0\0\0\x0112345678").unwrap();
    client.read_to_end();
    assert_eq!(client.goaways, [(1, ErrorCode::PROTOCOL_ERROR)]);
    drop(client);
    assert_eq!(server.stop().refused, 1);
}

const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[test]
fn the_preface_may_come_in_any_pieces() {
    let server = Server::start();
    for piece in 1..=PREFACE.len() {
        let mut stream = server.connect();
        stream.set_nodelay(true).unwrap();
        let rest = PREFACE.as_bytes().chunks(piece);
        for bytes in rest {
            stream.write_all(bytes).unwrap();
            std::thread::yield_now();
        }
        let mut settings = [0; 9];
        stream.read_exact(&mut settings).unwrap();
        assert_eq!(settings[3], 4, "a SETTINGS frame");
    }
    server.stop();
}

#[test]
fn a_preface_that_is_none_ends_the_connection() {
    let server = Server::start();
    let mut stream = server.connect();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n").unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    // GOAWAY with PROTOCOL_ERROR.
    assert!(response.ends_with(b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01"), "{}", response.escape_ascii());
    drop(stream);
    server.stop();
}

#[test]
fn a_preface_is_only_the_start_of_a_connection() {
    let server = Server::start();
    let responses = server.ask(&format!("GET /bytes/0 HTTP/1.1\r\nHost: a\r\n\r\n{PREFACE}"));
    let (first, second) = responses.split_once("\r\n\r\n").unwrap();
    assert!(first.starts_with("HTTP/1.1 200 ") && second.starts_with("HTTP/1.1 505 "), "{responses}");
    assert_eq!(server.stop().connections_http2, 0);
}

#[test]
fn each_version_can_be_the_only_one() {
    let server = Server::with(Settings { http: HttpVersions::Http1, ..Settings::default() });
    assert!(server.ask(PREFACE).starts_with("HTTP/1.1 505 HTTP Version Not Supported\r\n"));
    assert!(server.ask("GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    server.stop();

    let server = Server::with(Settings { http: HttpVersions::Http2, ..Settings::default() });
    let mut client = Client::new(&server);
    let no = client.get("/bytes/1");
    assert_eq!(client.response(no).status, 200);
    let mut stream = server.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    assert!(
        response.ends_with(b"\0\0\0\x01") && !response.starts_with(b"HTTP"),
        "{}",
        response.escape_ascii()
    );
    drop((client, stream));
    server.stop();
}
