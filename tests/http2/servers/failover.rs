//! Several servers: failover, retries by status, and ejection.

use super::{BOTH, Client, Connection, Content, Server, Version, ask, gateway};
use std::net::TcpListener;
use weir_http2::ErrorCode;

/// A server that responds to every request with this status.
fn failing(status: &'static str) -> Server {
    Server::start(move |connection: &mut Connection<'_>| {
        connection.serve(|connection, request| {
            let fields: [(&str, &str); 2] = [(":status", status), ("content-length", "4")];
            connection.headers(request.stream, &fields, false).data(request.stream, b"fail", true).flush();
        });
    })
}

#[test]
fn servers_that_are_down() {
    let server = Server::ok();
    // A port on which no server listens.
    let down = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = ['http://{down}', 'http://{}']\n\
         http2 = true\n[[route]]\nservice = 'app'\n",
        server.address()
    );
    let weir = crate::common::Weir::configured(&config, 1);
    for version in BOTH {
        for _ in 0..4 {
            let reply = ask(&weir, version, "POST", "/", &[], Content::Length(b"hello"));
            assert_eq!((reply.status, reply.text()), (200, "ok"), "{version:?}");
        }
    }
    assert_eq!(server.connections(), 1);
    assert!(server.requests().iter().all(|request| request.text() == "hello"));
}

#[test]
fn statuses_that_ask_another_server() {
    let (bad, good) = (failing("503"), Server::ok());
    let weir = gateway(&[&bad, &good], "", "retry = { on = [503] }\n");
    for version in BOTH {
        for content in [Content::None, Content::Length(b"hello"), Content::Unknown(b"hello")] {
            for _ in 0..2 {
                let reply = ask(&weir, version, "PUT", "/", &[], content);
                assert_eq!((reply.status, reply.text()), (200, "ok"), "{version:?} {content:?}");
            }
        }
    }
    assert!(!bad.requests().is_empty(), "the first server was asked");
    assert_eq!((bad.connections(), good.connections()), (1, 1));
    for request in good.requests() {
        assert!(request.text().is_empty() || request.text() == "hello", "{request:?}");
    }
    // A POST is not repeated, and the client gets the response unchanged.
    let statuses: Vec<_> =
        (0..4).map(|_| ask(&weir, Version::Http2, "POST", "/", &[], Content::None).status).collect();
    assert!(statuses.contains(&503) && statuses.contains(&200), "{statuses:?}");
}

#[test]
fn the_last_server_responds() {
    let servers = [failing("503"), failing("503")];
    let weir = gateway(&[&servers[0], &servers[1]], "", "retry = { on = [503] }\n");
    for version in BOTH {
        let reply = ask(&weir, version, "GET", "/", &[], Content::None);
        assert_eq!((reply.status, reply.text()), (503, "fail"), "{version:?}");
    }
    assert_eq!(servers.iter().map(|server| server.requests().len()).sum::<usize>(), 4);
}

#[test]
fn ejection_by_resets() {
    let bad = Server::start(|connection| {
        while let Some(request) = connection.head() {
            connection.reset(request.stream, ErrorCode::INTERNAL_ERROR).flush();
        }
    });
    let good = Server::ok();
    let weir = gateway(&[&bad, &good], "eject.failures = 2\neject.for = '1h'\n", "");
    let mut statuses = Vec::new();
    let mut client = Client::connect(weir.address());
    for n in 0..20 {
        statuses.push(client.get(1 + 2 * n, "/").response(1 + 2 * n).status());
    }
    weir.wait_for_stderr(&["app: ", "keeps failing"]);
    assert_eq!(statuses.iter().filter(|status| **status == 502).count(), 2, "{statuses:?}");
    assert_eq!(bad.requests().len(), 2);
}

#[test]
fn ejection_by_connection_errors_counts_each_request() {
    let bad = Server::start(|connection| {
        if connection.head().is_some() {
            connection.data(0, b"x", false).flush().read_to_end();
        }
    });
    let good = Server::ok();
    let weir = gateway(&[&bad, &good], "eject.failures = 2\neject.for = '1h'\n", "");
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(ask(&weir, Version::Http1, "GET", "/", &[], Content::None).status);
    }
    weir.wait_for_stderr(&["app: ", "keeps failing"]);
    assert_eq!(statuses.iter().filter(|status| **status == 502).count(), 2, "{statuses:?}");
}
