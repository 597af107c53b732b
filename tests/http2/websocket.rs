//! WebSockets on streams: the gateway translates extended CONNECT (RFC 8441) to an HTTP/1.1 upgrade.

use super::client::Upload;
use super::fields::{Field, request};
use super::{Client, gateway};
use crate::common::{DEADLINE, Ending, Peer, Upstream, pattern, poll_until};
use crate::gateway::metric;
use weir_http2::ErrorCode;

const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\n";

/// The fields of a request to switch to a protocol.
fn connect<'a>(path: &'a str, protocol: &'a str) -> Vec<Field<'a>> {
    let [_, scheme, authority, path] = request("CONNECT", path);
    let own: [Field<'_>; 4] = [
        (b":method", b"CONNECT"),
        (b":protocol", protocol.as_bytes()),
        (b"sec-websocket-version", b"13"),
        (b"sec-websocket-protocol", b"chat"),
    ];
    let [method, of, version, chat] = own;
    vec![method, of, scheme, authority, path, version, chat]
}

/// An upstream that switches protocols, and echoes until the client's end.
fn echo() -> Upstream {
    Upstream::start(None, |peer: &mut Peer| {
        let Some(head) = peer.request() else { return };
        if !head.head.contains(" /chat") {
            peer.answer("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
            return;
        }
        peer.answer(SWITCHED);
        if head.head.contains(" /chat?silent ") {
            peer.read_to_end();
            return;
        }
        loop {
            let mut bytes = Vec::new();
            let ending = peer.stream.receive(&mut bytes);
            peer.answer(&bytes);
            if ending.is_some() {
                peer.answer("bye");
                return;
            }
        }
    })
}

#[test]
fn bytes_pass_in_both_directions() {
    let upstream = echo();
    // A limit on bodies does not apply to tunnels.
    let weir = gateway(&upstream, "max_body = 10\nmethod = 'GET'", "");
    let mut client = Client::connect(weir.address());
    // Bytes sent before the response wait for it.
    client.headers(1, &connect("/chat", "websocket"), false).data(1, b"early ", false);
    client.read_until(|client| client.get_stream(1).body.len() == 6);
    let received = client.get_stream(1);
    assert_eq!((received.status(), received.field("sec-websocket-protocol")), (200, "chat"));
    for absent in ["sec-websocket-accept", "upgrade", "connection", "content-length"] {
        assert_eq!(received.field(absent), "", "{absent}");
    }
    let head = upstream.requests()[0].head.clone();
    for line in ["GET /chat HTTP/1.1\r\n", "\r\nUpgrade: websocket\r\n", "\r\nsec-websocket-version: 13\r\n"]
    {
        assert!(head.contains(line), "{head}");
    }
    assert!(
        head.contains("\r\nsec-websocket-key: ") && head.contains("\r\nConnection: Upgrade\r\n"),
        "{head}"
    );
    let large = pattern(300_000);
    client.upload(1, &large, &mut Upload { flow: 6, ..Upload::default() });
    let whole = [b"early ", &large[..], b"bye"].concat();
    assert!(client.response(1).body == whole);
    // Another stream of the connection.
    client.headers(3, &connect("/other", "websocket"), false);
    assert_eq!(client.response(3).status(), 403);
    client.read_until(|client| client.get_stream(3).ended);
    assert_eq!(client.get_stream(3).text(), "no");
}

#[test]
fn each_side_may_end_a_tunnel() {
    let upstream = echo();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    client.headers(1, &connect("/chat", "websocket"), false);
    client.read_until(|client| client.get_stream(1).status() == 200);
    // The server gets the end, and its later bytes still arrive.
    assert_eq!(client.data(1, b"last", true).response(1).text(), "lastbye");
    client.headers(3, &connect("/chat?silent", "websocket"), false);
    client.read_until(|client| client.get_stream(3).status() == 200);
    client.reset(3, ErrorCode::CANCEL).sync();
    assert_ne!(upstream.wait_for_ending(1), Ending::Clean);
    weir.wait_for_stderr(&[" client_reset "]);
}

/// The response time ends when the tunnel opens, so that hours of a tunnel do not count.
#[test]
fn an_open_tunnel_is_counted() {
    let upstream = echo();
    let weir = gateway(&upstream, "", "[admin]\nbind = '127.0.0.1:0'");
    let counts = || ["weir_tunnels", "weir_request_seconds_count"].map(|name| metric(&weir, name));
    let mut client = Client::connect(weir.address());
    client.headers(1, &connect("/chat", "websocket"), false);
    client.read_until(|client| client.get_stream(1).status() == 200);
    poll_until(DEADLINE, "the tunnel counts", || counts() == [1, 1]);
    assert_eq!(client.data(1, b"", true).response(1).text(), "bye");
    poll_until(DEADLINE, "the tunnel is over", || counts() == [0, 1]);
}

#[test]
fn a_silent_tunnel_ends_in_time() {
    let upstream = echo();
    let weir = gateway(&upstream, "", "[timeouts]\ntunnel = '200ms'\nstall = '100ms'\nexchange = '100ms'");
    let mut client = Client::connect(weir.address());
    client.headers(1, &connect("/chat", "websocket"), false).data(1, b"a", false);
    client.read_until(|client| client.get_stream(1).reset.is_some());
    assert_eq!(client.get_stream(1).text(), "a");
    weir.wait_for_stderr(&[" tunnel_idle "]);
    assert_eq!(client.get(3, "/none").response(3).status(), 403);
}

/// Regression test: for a successful response that did not switch protocols, the client considered its WebSocket open.
#[test]
fn a_response_without_a_switch_opens_nothing() {
    let upstream = super::upstream();
    let weir = gateway(&upstream, "path = '/app'", "[[route]]\npath = '/own'\nrespond = { status = 200 }");
    let mut client = Client::connect(weir.address());
    client.headers(1, &connect("/app", "websocket"), false);
    assert_eq!(client.response(1).status(), 502);
    weir.wait_for_stderr(&[" upstream_not_switched "]);
    client.headers(3, &connect("/own", "websocket"), false);
    assert_eq!(client.response(3).status(), 501);
}

#[test]
fn other_protocols() {
    let upstream = echo();
    let weir = gateway(&upstream, "path = '/chat'", "");
    let mut client = Client::connect(weir.address());
    client.headers(1, &connect("/chat", "connect-udp"), false);
    assert_eq!(client.response(1).status(), 501);
    assert_eq!(upstream.connections(), 0);
}
