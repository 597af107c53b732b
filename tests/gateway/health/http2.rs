//! Health checks over HTTP/2.

use super::server::{Record, Response, serve};
use super::{FAST, LISTENER, wait_for_status};
use crate::common::{Certificates, DEADLINE, Ending, Peer, Upstream, Weir, poll_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use weir_http2::{ErrorCode, frame};
use weir_tls::{Identity, Server, ServerSettings};

/// An HTTP/2 service with these lines and a `health` table with a path.
fn config(servers: &str) -> String {
    format!(
        "{LISTENER}[service.app]\n{servers}\nhttp2 = true\nhealth = {{ path = '/health?a=1', host = 'check.example', {FAST} }}"
    )
}

#[test]
fn a_server_that_speaks_http2_is_checked_by_http2() {
    let (status, record) = (Arc::new(AtomicU16::new(204)), Record::default());
    let server = {
        let (status, record) = (Arc::clone(&status), record.clone());
        Upstream::start(None, move |peer: &mut Peer| {
            serve(peer, &record, |_| Response {
                interim: true,
                status: status.load(Ordering::SeqCst),
                ..Response::default()
            });
        })
    };
    let weir = Weir::configured(&config(&format!("servers = 'http://{}'", server.address)), 1);
    poll_until(DEADLINE, "three checks and their ends", || record.endings().len() >= 3);
    let request = record.requests()[0].clone();
    let expected = ":method: GET\r\n:scheme: http\r\n:authority: check.example\r\n:path: /health?a=1\r\nuser-agent: weir\r\n";
    assert_eq!((request.head.as_str(), request.body.len()), (expected, 0));
    assert!(!weir.stderr().contains("is down"), "{}", weir.stderr());
    status.store(500, Ordering::SeqCst);
    weir.wait_for_stderr(&["weir: app: http://127.0.0.1:", "is down: status 500"]);
    wait_for_status(&weir, true);
    status.store(302, Ordering::SeqCst);
    weir.wait_for_stderr(&["is up"]);
    wait_for_status(&weir, false);
    // Each check uses a new connection, and closes it with GOAWAY.
    let endings = record.endings();
    assert!(
        endings.iter().all(|ending| *ending == (Some(ErrorCode::NO_ERROR), Ending::Clean)),
        "{endings:?}"
    );
}

#[test]
fn a_body_that_follows_does_not_delay_a_check() {
    let server = Upstream::start(None, |peer: &mut Peer| {
        serve(peer, &Record::default(), |_| Response {
            status: 503,
            body: vec![b'x'; 10_000],
            ..Response::default()
        });
    });
    let weir = Weir::configured(&config(&format!("servers = 'http://{}'", server.address)), 1);
    weir.wait_for_stderr(&["is down: status 503"]);
}

#[test]
fn over_tls_a_server_must_agree_to_http2() {
    let certificates = Certificates::new();
    let without = "is down: the server did not agree to HTTP/2 by ALPN; enable `h2` there, or remove `http2`";
    for (alpn, down) in
        [(&["http/1.1", "h2"][..], None), (&[], Some(without)), (&["http/1.1"], Some(without))]
    {
        let identity = Identity::files(&certificates.cert, &certificates.key);
        let alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let tls = Server::new(&ServerSettings { alpn, ..ServerSettings::new(identity) }).unwrap();
        let record = Record::default();
        let served = record.clone();
        let server = Upstream::start(Some(tls.core()), move |peer: &mut Peer| {
            serve(peer, &served, |_| Response { status: 200, ..Response::default() });
        });
        let ca = certificates.ca.display();
        let servers = format!("servers = 'https://{}'\ntls.ca = '{ca}'", server.address);
        let with_path = config(&servers);
        // The handshake of a check must also agree on HTTP/2, as requests need it.
        let without_path = with_path.replace("path = '/health?a=1', host = 'check.example', ", "");
        for config in [&with_path, &without_path] {
            let weir = Weir::configured(config, 1);
            match down {
                Some(why) => weir.wait_for_stderr(&[why]),
                None => {
                    let before = server.connections();
                    poll_until(DEADLINE, "four checks", || server.connections() >= before + 4);
                    assert!(!weir.stderr().contains("is down"), "{}", weir.stderr());
                }
            }
        }
        let schemes_agree =
            record.requests().iter().all(|request| request.head.contains(":scheme: https\r\n"));
        assert!(schemes_agree && record.requests().is_empty() == down.is_some(), "{:?}", record.requests());
    }
}

#[test]
fn a_server_that_does_something_else_is_down() {
    let frames = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        frame::write_settings([].into_iter(), &mut bytes);
        write(&mut bytes);
        bytes
    };
    let reset = frames(&|out| frame::write_rst_stream(1, ErrorCode::REFUSED_STREAM, out));
    let go_away = frames(&|out| frame::write_go_away(0, ErrorCode::ENHANCE_YOUR_CALM, out));
    let accepted = frames(&|out| frame::write_go_away(1, ErrorCode::NO_ERROR, out));
    let mut ping = Vec::new();
    frame::write_ping([0; 8], false, &mut ping);
    for (sent, why) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "the server responds by HTTP/1.1, not by HTTP/2"),
        (reset, "the server reset the request: refused_stream"),
        (go_away, "the server refused the request with GOAWAY: enhance_your_calm"),
        // A server that accepts no further requests may still respond to this one.
        (accepted, "closed without a response"),
        (Vec::new(), "closed without a response"),
        (ping, "the first frame is not SETTINGS"),
    ] {
        let server = Upstream::start(None, move |peer: &mut Peer| {
            let _ = peer.stream.send(&sent);
            peer.stream.finish();
            // Read all bytes, since a close with unread bytes would be a reset.
            peer.read_to_end();
        });
        let weir = Weir::configured(&config(&format!("servers = 'http://{}'", server.address)), 1);
        weir.wait_for_stderr(&["is down: ", why]);
    }
}

#[test]
fn a_server_that_does_not_respond_by_http2_in_time_is_down() {
    let silent = Upstream::start(None, |peer: &mut Peer| {
        peer.read_to_end();
    });
    let config = config(&format!("servers = 'http://{}'", silent.address));
    let weir = Weir::configured(&config.replace("timeout = '5s'", "timeout = '50ms'"), 1);
    weir.wait_for_stderr(&["is down: no response within 50ms"]);
    assert_eq!(weir.stop().code, Some(0));
}
