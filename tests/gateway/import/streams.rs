//! Connections of protocols other than HTTP after `weir import`: the gateway relays the bytes of only those clients
//! that nginx or HAProxy admits. The test compares with HAProxy itself; the test machines' nginx lacks the `stream`
//! module.

use crate::common::{Ending, Peer, Stream, Upstream, Weir, peer};
use crate::servers::Server;
use std::fs;
use std::net::SocketAddr;

/// The lines of a frontend, and whether it admits a client from 127.0.0.1.
const HAPROXY: &[(&str, bool)] = &[
    ("", true),
    ("tcp-request connection reject", false),
    ("tcp-request connection reject if { src 127.0.0.0/8 }", false),
    ("tcp-request connection reject if { src 192.0.2.0/24 }", true),
    ("tcp-request connection reject unless { src 127.0.0.1 }", true),
    ("tcp-request connection reject unless { src 192.0.2.1 }", false),
    ("tcp-request connection accept if { src 127.0.0.1 }\n tcp-request connection reject", true),
    ("tcp-request connection accept if { src 192.0.2.1 }\n tcp-request connection reject", false),
    ("tcp-request content reject if { src 127.0.0.1 }", false),
    ("acl inside src 127.0.0.0/8\n tcp-request connection reject if !inside", true),
];

/// The same for the directives of a server in `stream`.
const NGINX: &[(&str, bool)] = &[
    ("", true),
    ("deny all;", false),
    ("allow 127.0.0.1; deny all;", true),
    ("allow 192.0.2.0/24; deny all;", false),
    ("deny 127.0.0.0/8; allow all;", false),
    ("deny 192.0.2.1;", true),
];

fn haproxy(lines: &str, to: SocketAddr) -> String {
    format!(
        "defaults\n mode tcp\n timeout connect 5s\n timeout client 30s\n timeout server 30s\nfrontend f\n bind 127.0.0.1:@PORT@\n {lines}\n default_backend app\nbackend app\n server s {to}\n"
    )
}

fn nginx(directives: &str, to: SocketAddr) -> String {
    format!(
        "events {{}}\nstream {{\n upstream app {{ server {to}; }}\n server {{ listen 127.0.0.1:@PORT@; {directives} proxy_pass app; }}\n}}\n"
    )
}

/// A server that echoes the received bytes once the client has ended its stream.
fn echo() -> Upstream {
    Upstream::start(None, |peer: &mut Peer| {
        let mut all = Vec::new();
        let ending = loop {
            if let Some(ending) = peer.receive(&mut all) {
                break ending;
            }
        };
        if ending == Ending::Clean {
            peer.answer(&all);
            peer.stream.finish();
        }
    })
}

/// Whether a connection's bytes are echoed. A connection that ends before was rejected.
fn is_admitted(address: SocketAddr) -> bool {
    let Ok(mut stream) = Stream::connect(address, None) else { return false };
    let mut back = Vec::new();
    if stream.send(b"bytes").is_ok() {
        stream.finish();
        while stream.receive(&mut back).is_none() {}
    }
    back == b"bytes"
}

/// Whether the translation of a configuration admits a client.
fn is_admitted_by_weir(kind: &str, source: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("source");
    fs::write(&file, source.replace("@PORT@", "8080")).unwrap();
    let ended = Weir::run(&["import", file.to_str().unwrap(), "--from", kind]);
    assert_eq!(ended.code, Some(0), "{}\n{source}", ended.stderr);
    let toml = ended.stdout.replace("127.0.0.1:8080", "127.0.0.1:0");
    if !toml.contains("\n[listener.") {
        // A section with rules that Weir does not support is left out, with a line on stderr.
        assert!(!ended.stderr.is_empty(), "{toml}");
        return false;
    }
    is_admitted(Weir::configured(&format!("workers = 1\n{toml}"), 1).address())
}

#[test]
fn clients_of_haproxys_tcp_frontends_are_admitted_or_rejected() {
    let app = echo();
    for (lines, expected) in HAPROXY {
        assert_eq!(is_admitted_by_weir("haproxy", &haproxy(lines, app.address)), *expected, "{lines}");
    }
}

#[test]
fn clients_of_nginx_streams_are_admitted_or_rejected() {
    let app = echo();
    for (directives, expected) in NGINX {
        assert_eq!(is_admitted_by_weir("nginx", &nginx(directives, app.address)), *expected, "{directives}");
    }
}

#[test]
fn haproxy_admits_the_same_clients() {
    let Some(program) = peer("haproxy") else { return };
    let app = echo();
    for (lines, expected) in HAPROXY {
        let server = Server::haproxy_with(&program, &haproxy(lines, app.address));
        assert_eq!(is_admitted(server.address(false)), *expected, "{lines}");
    }
}
