//! Servers that do not speak HTTP/2.

use super::{BOTH, Content, Server, Version, ask};
use crate::common::{Certificates, Upstream, Weir};
use weir_tls::{Identity, Server as TlsServer, ServerSettings};

fn gateway(upstream: &str, service: &str, rest: &str) -> Weir {
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = {upstream}\nhttp2 = true\n\
         {service}\n[[route]]\nservice = 'app'\n{rest}"
    );
    Weir::configured(&config, 1)
}

#[test]
fn a_cleartext_server_of_http1() {
    // Servers respond to the preface with 400 or 505, or close.
    for response in [
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 505 No\r\n\r\n",
    ] {
        let upstream = Upstream::start(None, move |peer| {
            let mut bytes = Vec::new();
            while bytes.len() < 18 {
                if peer.receive(&mut bytes).is_some() {
                    return;
                }
            }
            assert!(bytes.starts_with(b"PRI * HTTP/2.0\r\n\r\n"));
            peer.answer(response);
            peer.read_to_end();
        });
        for version in BOTH {
            let weir = gateway(&format!("'http://{}'", upstream.address), "", "");
            let reply = ask(&weir, version, "POST", "/", &[], Content::Length(b"hello"));
            assert_eq!((reply.status, reply.complete), (502, true), "{version:?}: {reply:?}");
            weir.wait_for_stderr(&[" upstream_not_http2"]);
        }
    }
}

#[test]
fn a_server_that_closes_at_once() {
    let upstream = Upstream::start(None, |peer| {
        let _ = peer.receive(&mut Vec::new());
    });
    let weir = gateway(&format!("'http://{}'", upstream.address), "", "");
    let reply = ask(&weir, Version::Http2, "POST", "/", &[], Content::Length(b"hello"));
    assert_eq!(reply.status, 502, "{reply:?}");
    weir.wait_for_stderr(&[" upstream_closed"]);
    assert_eq!(upstream.connections(), 1);
}

/// A TLS server that selects one of these protocols, and responds in HTTP/1.1.
fn of_http1(certificates: &Certificates, alpn: &[&str]) -> Upstream {
    let identity = Identity::files(&certificates.cert, &certificates.key);
    let alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let settings = ServerSettings { alpn, ..ServerSettings::new(identity) };
    Upstream::start(Some(TlsServer::new(&settings).unwrap().core()), |peer| {
        peer.read_to_end();
    })
}

#[test]
fn tls_servers_without_http2() {
    let certificates = Certificates::new();
    let upstream = of_http1(&certificates, &[]);
    let trust = format!("tls.ca = '{}'\n", certificates.ca.display());
    let weir = gateway(&format!("'https://{}'", upstream.address), &trust, "");
    for version in BOTH {
        let reply = ask(&weir, version, "POST", "/", &[], Content::Length(b"hello"));
        assert_eq!((reply.status, reply.complete), (502, true), "{version:?}: {reply:?}");
    }
    weir.wait_for_stderr(&[" upstream_not_http2"]);
    for connection in 0..upstream.connections() {
        assert_eq!(upstream.received(connection), b"");
    }
    // A server that supports only HTTP/1.1 aborts the handshake, since the gateway does not offer it.
    let upstream = of_http1(&certificates, &["http/1.1"]);
    let weir = gateway(&format!("'https://{}'", upstream.address), &trust, "");
    let reply = ask(&weir, Version::Http2, "GET", "/", &[], Content::None);
    assert_eq!(reply.status, 502, "{reply:?}");
    weir.wait_for_stderr(&[" upstream_not_http2 "]);
}

#[test]
fn another_server_takes_the_request() {
    // No byte of the request was sent, so any method fails over.
    let certificates = Certificates::new();
    let upstream = of_http1(&certificates, &[]);
    let server = Server::tls(&certificates, |connection| connection.serve(super::Connection::ok));
    let servers = format!("['https://{}', 'https://{}']", upstream.address, server.address());
    let weir = gateway(&servers, &format!("tls.ca = '{}'\n", certificates.ca.display()), "");
    for version in BOTH {
        for _ in 0..4 {
            let reply = ask(&weir, version, "POST", "/", &[], Content::Length(b"hello"));
            assert_eq!((reply.status, reply.text()), (200, "ok"), "{version:?}");
        }
    }
    assert!(server.requests().iter().all(|request| request.text() == "hello"));
}

#[test]
fn tls_servers_with_http2() {
    let certificates = Certificates::new();
    let server = Server::tls(&certificates, |connection| connection.serve(super::Connection::ok));
    let trust = format!("tls.ca = '{}'\n", certificates.ca.display());
    let weir = gateway(&format!("'https://{}'", server.address()), &trust, "");
    let body = crate::common::pattern(300_000);
    for version in BOTH {
        let reply = ask(&weir, version, "POST", "/", &[], Content::Length(&body));
        assert_eq!((reply.status, reply.text()), (200, "ok"), "{version:?}");
    }
    for request in server.requests() {
        assert_eq!((request.field(":scheme"), request.field(":authority")), ("https", "h"));
        // The client's own scheme.
        assert_eq!(request.field("x-forwarded-proto"), "http");
        assert!(request.body == body);
    }
    assert_eq!(server.connections(), 1);
}
