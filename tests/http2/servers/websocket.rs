//! WebSockets to HTTP/2 servers: extended CONNECT (RFC 8441), for clients of HTTP/1.1 and HTTP/2.

use super::ask::{BOTH, Version};
use super::{Client, Http1, Server, gateway, request};
use crate::common::{Ending, Weir, pattern};
use crate::http2::client::Upload;
use crate::http2::server::{Connection, Request};
use std::net::TcpListener;
use weir_http::Method;
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};

/// SETTINGS_ENABLE_CONNECT_PROTOCOL.
const ENABLED: (u16, u32) = (8, 1);

/// A server that allows tunnels, and handles each by its path.
fn server() -> Server {
    Server::with_settings(&[ENABLED], |connection| {
        while let Some(request) = connection.head() {
            treat(connection, &request);
        }
    })
}

fn treat(connection: &mut Connection<'_>, request: &Request) {
    let stream = request.stream;
    let open = [(":status", "200"), ("sec-websocket-protocol", "chat")];
    match request.path() {
        "/echo" => {
            connection.headers(stream, &open, false);
            let mut sent = 0;
            loop {
                let (before, updates) = (connection.get(stream), connection.updates.get(&stream).copied());
                if before.ended && sent == before.body.len() {
                    connection.data(stream, b"bye", true).flush();
                    return;
                }
                connection.send_some(stream, &before.body, &mut sent, false);
                if before.ended && sent == before.body.len() {
                    // Nothing else will arrive.
                    continue;
                }
                connection.read_until(|connection| {
                    connection.get(stream) != before || connection.updates.get(&stream).copied() != updates
                });
                if connection.get(stream).reset.is_some() || connection.ending.is_some() {
                    return;
                }
            }
        }
        "/silent" => {
            connection.headers(stream, &open, false).flush();
        }
        "/ends" => {
            connection.headers(stream, &open, false).data(stream, b"bye", true).flush();
        }
        // Some servers add a length to each response without a body.
        "/measured" => {
            connection.headers(stream, &[(":status", "200"), ("content-length", "0")], false);
            connection.data(stream, b"bye", true).flush();
        }
        "/empty" => {
            connection.headers(stream, &open, true).flush();
        }
        "/resets" => {
            connection.headers(stream, &open, false).data(stream, b"half", false);
            connection.sync().reset(stream, ErrorCode::CANCEL).flush();
        }
        "/switches" => {
            connection.headers(stream, &[(":status", "101")], false).flush();
        }
        _ => {
            connection.headers(stream, &[(":status", "403"), ("content-length", "2")], false);
            connection.data(stream, b"no", true).flush();
        }
    }
}

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// An HTTP/1.1 client's request for a WebSocket.
fn upgrade(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    )
}

/// An HTTP/1.1 client that has requested a WebSocket.
fn http1(weir: &Weir, path: &str) -> Http1 {
    let mut client = Http1::connect(weir.address(), None);
    client.send(upgrade(path));
    client
}

/// As [`http1`], with an open WebSocket.
fn opened(weir: &Weir, path: &str) -> Http1 {
    let mut client = http1(weir, path);
    let answer = client.answer(Method::Get);
    assert_eq!(answer.status, 101, "{}", answer.head);
    client
}

/// An HTTP/2 client that has requested a WebSocket on stream 1.
fn http2(weir: &Weir, path: &str) -> Client {
    let mut client = Client::connect(weir.address());
    let [_, scheme, authority, path] = request("CONNECT", path);
    let fields = [
        (&b":method"[..], &b"CONNECT"[..]),
        (b":protocol", b"websocket"),
        scheme,
        authority,
        path,
        (b"sec-websocket-version", b"13"),
        (b"sec-websocket-protocol", b"chat"),
    ];
    client.headers(1, &fields, false).flush();
    client
}

/// The status of the response to a request for a WebSocket, and a part of its body.
fn status(weir: &Weir, version: Version, path: &str) -> (u16, String) {
    match version {
        Version::Http1 => {
            let answer = http1(weir, path).answer(Method::Get);
            (answer.status, answer.text().to_owned())
        }
        Version::Http2 => {
            let mut client = http2(weir, path);
            client.read_until(|client| client.get_stream(1).ended || client.get_stream(1).reset.is_some());
            let received = client.get_stream(1);
            (received.status(), received.text().to_owned())
        }
    }
}

fn check_request(request: &Request) {
    for (name, value) in [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":authority", "h"),
        (":path", "/echo"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "chat"),
    ] {
        assert_eq!(request.field(name), value, "{}", request.head);
    }
    for absent in ["sec-websocket-key", "upgrade", "connection", "content-length", "host"] {
        assert!(!request.has(absent), "{absent}: {}", request.head);
    }
}

#[test]
fn bytes_pass_both_ways_and_the_clients_end_is_forwarded() {
    let server = server();
    // A limit on bodies does not apply to tunnels.
    let weir = gateway(&[&server], "", "max_body = 10");
    let large = pattern(300_000);
    let whole = [b"early ", &large[..], b"bye"].concat();

    // Bytes sent before the response wait for it.
    let mut client = Http1::connect(weir.address(), None);
    client.send([&upgrade("/echo"), "early "].concat());
    let answer = client.answer(Method::Get);
    assert_eq!(answer.status, 101, "{}", answer.head);
    for (name, value) in [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ("sec-websocket-protocol", "chat"),
    ] {
        assert_eq!(answer.fields(name), [value], "{}", answer.head);
    }
    client.send(&large);
    client.stream.finish();
    let (bytes, ending) = client.read_to_end();
    assert!(bytes == whole && ending == Ending::Clean, "{} bytes, {ending:?}", bytes.len());

    let mut client = http2(&weir, "/echo");
    client.data(1, b"early ", false);
    client.read_until(|client| client.get_stream(1).body.len() == 6);
    let received = client.get_stream(1);
    assert_eq!((received.status(), received.field("sec-websocket-protocol")), (200, "chat"));
    client.upload(1, &large, &mut Upload { flow: 6, ..Upload::default() });
    assert!(client.response(1).body == whole);

    let requests = server.requests();
    assert_eq!((requests.len(), server.connections()), (2, 1));
    requests.iter().for_each(check_request);
    assert!(requests.iter().all(|request| request.ended && request.reset.is_none()), "{requests:?}");
}

#[test]
fn the_servers_end_ends_a_tunnel() {
    let server = server();
    let weir = gateway(&[&server], "", "");
    for (path, text) in [("/ends", "bye"), ("/empty", ""), ("/measured", "bye")] {
        let (bytes, ending) = opened(&weir, path).read_to_end();
        assert_eq!((&bytes[..], ending), (text.as_bytes(), Ending::Clean), "{path}");
        let mut client = http2(&weir, path);
        let received = client.response(1);
        assert_eq!((received.status(), received.text(), received.ended), (200, text, true), "{path}");
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_request_for_a_tunnel_goes_past_a_server_that_is_down() {
    let server = server();
    // A port on which no server listens.
    let down = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = ['http://{down}', 'http://{}']\n\
         http2 = true\n[[route]]\nservice = 'app'\n",
        server.address()
    );
    let weir = Weir::configured(&config, 1);
    for _ in 0..2 {
        let (bytes, ending) = opened(&weir, "/ends").read_to_end();
        assert_eq!((&bytes[..], ending), (&b"bye"[..], Ending::Clean));
        assert_eq!(http2(&weir, "/ends").response(1).text(), "bye");
    }
}

#[test]
fn a_reset_is_forwarded() {
    let server = server();
    let weir = gateway(&[&server], "", "");
    let (bytes, ending) = opened(&weir, "/resets").read_to_end();
    assert_eq!(bytes, b"half");
    assert_ne!(ending, Ending::Clean);
    let mut client = http2(&weir, "/resets");
    client.read_until(|client| client.get_stream(1).reset.is_some());
    assert_eq!(client.get_stream(1).text(), "half");

    opened(&weir, "/silent").stream.reset();
    let mut client = http2(&weir, "/silent");
    client.read_until(|client| client.get_stream(1).status() == 200);
    client.reset(1, ErrorCode::CANCEL).flush();
    server.wait_for("two resets", |requests| {
        let silent = requests.iter().filter(|request| request.path() == "/silent");
        silent.filter(|request| request.reset == Some(ErrorCode::CANCEL)).count() == 2
    });
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_silent_tunnel_ends_in_time() {
    let server = server();
    let timeouts = "[timeouts]\ntunnel = '200ms'\nstall = '100ms'\nexchange = '100ms'\nresponse = '100ms'\n";
    let weir = gateway(&[&server], "", timeouts);
    let (_, ending) = opened(&weir, "/silent").read_to_end();
    assert_ne!(ending, Ending::Clean);
    let mut client = http2(&weir, "/silent");
    client.read_until(|client| client.get_stream(1).reset.is_some());
    weir.wait_for_stderr(&[" tunnel_idle "]);
}

#[test]
fn a_server_may_refuse() {
    let server = server();
    let weir = gateway(&[&server], "", "");
    for version in BOTH {
        assert_eq!(status(&weir, version, "/none"), (403, "no".to_owned()), "{version:?}");
        let (status, text) = status(&weir, version, "/switches");
        assert_eq!(status, 502, "{version:?}");
        assert!(text.contains("upstream_switched_protocols") || text.contains("bad_upstream"), "{text}");
    }
}

/// A server without the setting gets no byte of a request for a WebSocket; other requests reach it as usual.
#[test]
fn a_server_that_takes_no_tunnels() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "");
    for version in BOTH {
        // On a new connection, and on one with known SETTINGS.
        for _ in 0..2 {
            let (status, text) = status(&weir, version, "/echo");
            assert_eq!(status, 501, "{version:?}");
            assert!(text.contains("connect_not_supported"), "{version:?}: {text}");
        }
    }
    // An upgrade without the fields of a WebSocket is an ordinary request.
    let plain = upgrade("/").replace("Sec-WebSocket-Key", "X-Key");
    assert_eq!(Http1::connect(weir.address(), None).ask(plain).text(), "ok");
    assert_eq!(server.only().field(":method"), "GET");
}

/// The request waits for SETTINGS, up to `timeouts.queue`; other requests do not wait behind it.
#[test]
fn a_request_waits_for_the_settings() {
    let server = Server::silent(None, |connection| {
        // The server's SETTINGS arrive before its acknowledgement.
        connection.acknowledges = false;
        let first = connection.head().unwrap();
        assert_eq!((first.path(), first.field(":method")), ("/plain", "GET"));
        connection.settings(&[ENABLED]).frame(Kind::Settings, flag::ACK, 0, b"");
        connection.ok(&first);
        while let Some(request) = connection.head() {
            treat(connection, &request);
        }
    });
    let weir = gateway(&[&server], "", "");
    let mut waiting = http1(&weir, "/ends");
    let mut gone = http2(&weir, "/ends");
    gone.reset(1, ErrorCode::CANCEL).sync();
    let mut also = http2(&weir, "/ends");
    also.sync();
    assert_eq!(
        Http1::connect(weir.address(), None).ask("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n").text(),
        "ok"
    );
    assert_eq!(waiting.answer(Method::Get).status, 101);
    assert_eq!(waiting.read_to_end(), (b"bye".to_vec(), Ending::Clean));
    assert_eq!(also.response(1).text(), "bye");
    assert_eq!((server.connections(), server.requests().len()), (1, 3));

    let silent = Server::silent(None, |connection| {
        connection.acknowledges = false;
        connection.read_to_end();
    });
    let weir = gateway(&[&silent], "", "[timeouts]\nqueue = '100ms'\n");
    for version in BOTH {
        let (status, text) = status(&weir, version, "/echo");
        assert_eq!(status, 503, "{version:?}");
        assert!(text.contains("queue_timeout"), "{text}");
    }
}

/// If a connection closes before its SETTINGS, the requests that wait for them fail.
#[test]
fn a_connection_that_ends_before_its_settings() {
    let server = Server::silent(None, |connection| {
        connection.peer.answer(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let weir = gateway(&[&server], "", "");
    for version in BOTH {
        assert_eq!(status(&weir, version, "/echo").0, 502, "{version:?}");
    }
    let down = gateway(&[&server], "", "");
    drop(server);
    for version in BOTH {
        assert_eq!(status(&down, version, "/echo").0, 502, "{version:?}");
    }
}

/// A drain closes tunnels without traffic.
#[test]
fn a_drain_ends_silent_tunnels() {
    let server = server();
    let weir = gateway(&[&server], "", "[timeouts]\ndrain_idle = '100ms'\n");
    let mut http1 = opened(&weir, "/silent");
    let mut http2 = http2(&weir, "/silent");
    http2.read_until(|client| client.get_stream(1).status() == 200);
    assert_eq!(weir.stop().code, Some(0));
    let (bytes, _) = http1.read_to_end();
    assert!(bytes.is_empty());
    http2.read_until(|client| client.get_stream(1).reset.is_some());
}
