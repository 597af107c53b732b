//! The choice of the HTTP version: by ALPN, by the preface, by the listener.

use super::{Client, gateway, listening};
use crate::common::{Certificates, Client as Http1, Stream};
use crate::gateway::reload::Case;
use weir_http2::ErrorCode;
use weir_tls::{Client as TlsClient, ClientSettings, Roots};

#[test]
fn a_listener_without_http2() {
    let upstream = super::upstream();
    let weir = listening("http2 = false", &upstream, "", "");
    let mut client = Http1::connect(weir.address(), None);
    let refused = client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(refused.status, 505, "{}", refused.text());
    client.expect_end();
    assert_eq!(upstream.connections(), 0);
}

/// Regression test: the listener kept offering its previous protocols.
#[test]
fn a_reload_changes_what_is_offered_by_alpn() {
    let certificates = Certificates::new();
    let config = |http2: bool| {
        let [chain, key] = [&certificates.cert, &certificates.key].map(|file| file.display());
        format!(
            "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\nhttp2 = {http2}\ntls = {{}}\n\
             [[certificate]]\nchain = '{chain}'\nkey = '{key}'\n[[route]]\nrespond.status = 200\n"
        )
    };
    let case = Case::new(&config(true));
    for (http2, chosen) in [(true, "h2"), (false, "http/1.1"), (true, "h2")] {
        case.take(&config(http2));
        let settings = ClientSettings {
            roots: Roots::File(certificates.ca.clone()),
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            ..ClientSettings::default()
        };
        let session = TlsClient::new(&settings).unwrap().core().connect(&"127.0.0.1".parse().unwrap());
        let stream = Stream::connect(case.weir.address(), Some(session)).unwrap();
        let alpn = stream.session().unwrap().facts().and_then(|facts| facts.alpn.clone());
        assert_eq!(alpn.as_deref(), Some(chosen.as_bytes()));
    }
}

#[test]
fn tls_clients_choose_by_alpn() {
    let certificates = Certificates::new();
    let upstream = super::upstream();
    let certificate = format!(
        "[[certificate]]\nchain = '{}'\nkey = '{}'\n",
        certificates.cert.display(),
        certificates.key.display()
    );
    for (setting, offers, chosen) in [
        ("", &["h2", "http/1.1"][..], Some("h2")),
        ("", &["http/1.1", "h2"], Some("h2")),
        ("", &["h2"], Some("h2")),
        ("", &["http/1.1"], Some("http/1.1")),
        ("", &[], None),
        ("http2 = false", &["h2", "http/1.1"], Some("http/1.1")),
    ] {
        let weir = listening(&format!("{setting}\n[listener.web.tls]"), &upstream, "", &certificate);
        let settings = ClientSettings {
            roots: Roots::File(certificates.ca.clone()),
            alpn: offers.iter().map(|offer| offer.as_bytes().to_vec()).collect(),
            ..ClientSettings::default()
        };
        let connect = || {
            let session = TlsClient::new(&settings).unwrap().core().connect(&"127.0.0.1".parse().unwrap());
            Stream::connect(weir.address(), Some(session)).unwrap()
        };
        let stream = connect();
        let alpn = stream.session().unwrap().facts().and_then(|facts| facts.alpn.clone());
        assert_eq!(alpn.as_deref(), chosen.map(str::as_bytes), "{setting} {offers:?}");
        if chosen == Some("h2") {
            let mut client = Client::begun(stream);
            assert_eq!(client.get(1, "/").response(1).text(), "ok");
            assert!(upstream.requests().last().unwrap().head.contains("X-Forwarded-Proto: https\r\n"));
            // An HTTP/1.1 request is not a preface.
            let mut client = Client::silent(connect());
            client.out.extend_from_slice(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(client.end(), Some((0, ErrorCode::PROTOCOL_ERROR)));
            weir.wait_for_stderr(&[" bad_http2 ", "the connection preface is not that of HTTP/2"]);
        } else {
            let mut client = Http1 { stream };
            assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").text(), "ok");
            // The client did not agree on HTTP/2.
            let mut client = Http1 { stream: connect() };
            assert_eq!(client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 505);
            client.expect_end();
        }
    }
}

#[test]
fn the_preface_is_the_first_request_or_none() {
    let upstream = super::upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Http1::connect(weir.address(), None);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").text(), "ok");
    assert_eq!(client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 505);
    client.expect_end();
    // Byte by byte.
    let mut client = Client::connect(weir.address());
    client.get(1, "/");
    for byte in std::mem::take(&mut client.out) {
        client.stream.send(&[byte]).unwrap();
    }
    assert_eq!(client.response(1).text(), "ok");
    // Almost a preface.
    let mut client = Http1::connect(weir.address(), None);
    assert_eq!(client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\n").status, 505);
}
