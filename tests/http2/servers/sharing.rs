//! Many requests on one connection to a server.

use super::{Client, Connection, Server, Version, ask, config, gateway, metric};
use crate::common::{Weir, pattern};
use crate::http2::client::Upload;
use std::collections::BTreeMap;

/// A server that echoes bodies as they arrive, on all streams concurrently.
fn echo() -> Server {
    Server::start(|connection: &mut Connection<'_>| {
        let mut bodies: BTreeMap<u32, (Vec<u8>, usize)> = BTreeMap::new();
        loop {
            while connection.head_count() > 0 {
                let Some(request) = connection.head() else { return };
                connection.headers(request.stream, &[(":status", "200")], false);
                bodies.insert(request.stream, Default::default());
            }
            bodies.retain(|stream, (body, sent)| {
                body.append(&mut connection.take_body(*stream));
                let request = connection.get(*stream);
                connection.send_some(*stream, body, sent, request.ended);
                let is_over = request.ended && *sent == body.len();
                request.reset.is_none() && !is_over
            });
            // The next frame, whatever it is.
            let mut frames = 0;
            connection.read_until(|_| {
                frames += 1;
                frames > 1
            });
            if connection.ending.is_some() {
                return;
            }
        }
    })
}

/// Regression test: streams blocked each other while the buffer of their shared connection was full.
#[test]
fn clients_that_echo_over_one_connection() {
    const CLIENTS: usize = 4;
    const STREAMS: u32 = 6;
    let (server, body) = (echo(), pattern(1 << 20));
    let weir = gateway(&[&server], "", "");
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (weir, body) = (&weir, &body);
            scope.spawn(move || {
                let mut connection = Client::connect(weir.address());
                let mut uploads: Vec<_> = (0..STREAMS).map(|n| (1 + 2 * n, Upload::default())).collect();
                for (stream, _) in &uploads {
                    connection.post(*stream, &format!("/{client}/{stream}"));
                }
                loop {
                    for (stream, upload) in &mut uploads {
                        connection.upload_some(*stream, body, upload);
                    }
                    let over = connection.streams().filter(|(_, received)| received.is_over()).count();
                    if over == uploads.len() || connection.ending.is_some() {
                        break;
                    }
                    let mut frames = 0;
                    connection.read_until(|_| {
                        frames += 1;
                        frames > 1
                    });
                }
                for (stream, _) in &uploads {
                    let received = connection.get_stream(*stream);
                    assert_eq!((received.status(), received.reset), (200, None), "{client} {stream}");
                    assert!(received.body == *body, "{client} {stream}: {} bytes", received.body.len());
                }
            });
        }
    });
    assert_eq!(server.connections(), 1);
    assert!(server.requests().iter().all(|request| request.body == body));
}

#[test]
fn clients_share_a_connection() {
    let server = Server::start(|connection| {
        // Responds in reverse order once all five requests have arrived.
        let mut requests: Vec<_> = (0..5).map_while(|_| connection.request()).collect();
        while let Some(request) = requests.pop() {
            connection.respond(request.stream, &[], request.path().as_bytes()).flush();
        }
        connection.read_to_end();
    });
    let weir = gateway(&[&server], "", super::ADMIN);
    let mut clients: Vec<_> = (0..3).map(|_| Client::connect(weir.address())).collect();
    let mut http1: Vec<_> = (0..2).map(|_| super::Http1::connect(weir.address(), None)).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        client.get(1, &format!("/{n}")).flush();
    }
    for (n, client) in http1.iter_mut().enumerate() {
        client.send(format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", 3 + n));
    }
    for (n, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.response(1).text(), format!("/{n}"));
    }
    for (n, client) in http1.iter_mut().enumerate() {
        assert_eq!(client.answer(weir_http::Method::Get).text(), format!("/{}", 3 + n));
    }
    assert_eq!(server.connections(), 1);
    let counts =
        ["connections", "requests"].map(|of| metric(&weir, &format!("weir_upstream_http2_{of}_total")));
    assert_eq!(counts, [1, 5]);
    let [reads, writes] =
        ["reads", "writes"].map(|of| metric(&weir, &format!("weir_upstream_http2_{of}_total")));
    assert!((1..=5).contains(&reads) && writes >= 1, "{reads} {writes}");
}

#[test]
fn workers_have_connections_of_their_own() {
    let server = Server::ok();
    let weir = Weir::configured(&config(3, &[&server], "", ""), 1);
    // The kernel spreads clients over the workers: after many clients, each worker has got some.
    let mut clients = 0;
    while clients < 200 && server.connections() < 3 {
        let version = if clients % 2 == 0 { Version::Http1 } else { Version::Http2 };
        assert_eq!(ask(&weir, version, "GET", "/", &[], super::Content::None).text(), "ok");
        clients += 1;
    }
    for _ in 0..30 {
        assert_eq!(ask(&weir, Version::Http2, "GET", "/", &[], super::Content::None).text(), "ok");
    }
    assert_eq!(server.connections(), 3, "after {clients} clients");
}

#[test]
fn pipelined_requests() {
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            connection.respond(request.stream, &[], request.path().as_bytes()).flush();
        });
    });
    let weir = gateway(&[&server], "", "");
    let mut client = super::Http1::connect(weir.address(), None);
    let requests: String = (0..5).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: h\r\n\r\n")).collect();
    client.send(requests);
    for n in 0..5 {
        assert_eq!(client.answer(weir_http::Method::Get).text(), format!("/{n}"));
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn messages_in_both_directions() {
    // As in a gRPC stream: each side waits for the other's message.
    let server = Server::start(|connection: &mut Connection<'_>| {
        while let Some(request) = connection.head() {
            let stream = request.stream;
            connection.headers(stream, &[(":status", "200")], false).flush();
            let mut received = 0;
            while !connection.get(stream).ended && connection.ending.is_none() {
                connection.read_until(|connection| {
                    let request = connection.get(stream);
                    request.body.len() > received || request.ended
                });
                let more = connection.get(stream).body[received..].to_vec();
                received += more.len();
                if !more.is_empty() {
                    connection.data(stream, &more, false).flush();
                }
            }
            connection.headers(stream, &[("grpc-status", "0")], true).flush();
        }
    });
    let weir = gateway(&[&server], "", "");
    let mut client = Client::connect(weir.address());
    let start = [&super::request("POST", "/")[..], &[(b"te", b"trailers")]].concat();
    client.headers(1, &start, false);
    for n in 1..=20 {
        client.data(1, b"message", false);
        client.read_until(|client| client.get_stream(1).body.len() == 7 * n);
    }
    let received = client.data(1, b"", true).response(1);
    assert_eq!((received.text(), &*received.trailers), (&*"message".repeat(20), "grpc-status: 0\r\n"));
}
