//! Java's HttpClient, Node's http2, Python's httpx and Chromium as clients of the gateway, with HTTP/2 servers as
//! upstreams.

use super::behind::Behind;
use super::clients::run;
use crate::common::{Certificates, installed_peer, peer};
use crate::pairings::headless;
use crate::servers::Server;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn java() {
    let Some(java) = peer("java") else { return };
    let source = adjacent("Client.java");
    let Some(behind) = Behind::start(true, |_, tls| Server::go_http2(tls)) else { return };
    let ca = behind.certificates.ca.to_str().unwrap();
    let printed = run(&java, &[source.to_str().unwrap(), &behind.url(""), ca]).stdout;
    assert_eq!(String::from_utf8_lossy(&printed), "ok\n");
    behind.stop();
}

#[test]
fn node() {
    let Some(node) = peer("node") else { return };
    on_both(&node, "client.js", Server::go_http2);
}

#[test]
fn httpx() {
    let Some(python) = installed_peer("python-http2/bin/python") else { return };
    on_both(&python, "httpx_client.py", Server::node_http2);
}

/// A client program, over TLS and in cleartext.
fn on_both(program: &Path, source: &str, server: fn(Option<&Certificates>) -> Option<Server>) {
    let source = adjacent(source);
    for tls in [false, true] {
        let Some(behind) = Behind::start(tls, |_, tls| server(tls)) else { return };
        let ca = behind.certificates.ca.to_str().unwrap();
        let printed = run(program, &[source.to_str().unwrap(), &behind.url(""), ca]).stdout;
        assert_eq!(String::from_utf8_lossy(&printed), "ok\n");
        behind.stop();
    }
}

/// A page with a style and 30 pictures.
#[test]
fn chromium() {
    let Some(chromium) = peer("chromium") else { return };
    let site = |name: &str| fs::read(adjacent("../pairings/site").join(name)).unwrap();
    let files = vec![
        ("index.html".to_owned(), fs::read(adjacent("page.html")).unwrap()),
        ("style.css".to_owned(), site("style.css")),
        ("picture.png".to_owned(), site("picture.png")),
    ];
    let Some(behind) = Behind::start(true, |tls, _| Server::nginx_http2(tls, &files)) else { return };
    let document = headless(&chromium, &behind.certificates, &behind.url("/")).unwrap();
    let expected = ">30 pictures, rgb(1, 2, 3), h2<";
    assert!(document.contains(expected), "{document}\n{}", behind.weir.stderr());
    let log = behind.stop().stdout;
    let pictures = log.lines().filter(|line| line.starts_with("HTTP/2.0 GET /picture.png?"));
    assert_eq!(pictures.filter(|line| line.ends_with(" 200")).count(), 30, "{log}");
}

fn adjacent(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/http2").join(name)
}
