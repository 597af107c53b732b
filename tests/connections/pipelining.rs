//! Requests that arrive before the previous response.

use super::scripts::{GET, OK, echo_target};
use crate::common::{self, Case, MODES, pattern, until_still};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weir_http::Method;

#[test]
fn pipelined_requests_are_answered_in_order() {
    for mode in MODES {
        let case = Case::new(mode, &[], echo_target);
        let mut client = case.client();
        let requests: String = (0..200).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: h\r\n\r\n")).collect();
        client.send(&requests);
        for n in 0..200 {
            assert_eq!(client.answer(Method::Get).text(), format!("/{n}"), "{mode:?}");
        }
        assert_eq!(case.upstream.connections(), 1, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn pipelined_requests_with_bodies_are_parsed_wherever_they_are_split() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            while let Some(request) = peer.request() {
                peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len()));
                peer.answer(&request.body);
            }
        });
        let mut requests = Vec::new();
        for n in 0..30usize {
            let body = pattern(n * 7);
            match n % 3 {
                0 => requests.extend_from_slice(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"),
                1 => {
                    requests.extend(
                        format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", n * 7).bytes(),
                    );
                    requests.extend(body);
                }
                _ => {
                    requests.extend(
                        format!(
                            "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
                            n * 7
                        )
                        .bytes(),
                    );
                    requests.extend(body);
                    requests.extend(b"\r\n0\r\n\r\n");
                }
            }
        }
        for piece in [requests.len(), 1000, 37, 3] {
            let mut client = case.client();
            for piece in requests.chunks(piece) {
                client.send(piece);
            }
            for n in 0..30usize {
                let (method, body) =
                    if n % 3 == 0 { (Method::Head, vec![]) } else { (Method::Put, pattern(n * 7)) };
                assert_eq!(client.answer(method).body, body, "{mode:?} {piece} {n}");
            }
        }
        case.stop();
    }
}

#[test]
fn a_client_that_pipelines_endlessly_without_reading_is_blocked() {
    let case = Case::new(MODES[0], &[], |peer| {
        let body = pattern(50_000);
        while peer.request().is_some() {
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()));
            peer.answer(&body);
        }
    });
    let mut client = case.client();
    let total = 3000;
    let tcp = client.stream.tcp().try_clone().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let sender = std::thread::spawn(move || {
        let mut stream = common::Stream::over(tcp, None).unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\nX-Long: {}\r\n\r\n", "x".repeat(7000));
        for _ in 0..total {
            stream.send(request.as_bytes()).unwrap();
            count.fetch_add(1, Ordering::SeqCst);
        }
        // Dropping it closes only its own handle to the socket.
    });
    let last = until_still(&sent);
    assert!(last < total, "all {last} requests were accepted from a client that reads nothing");
    assert!(case.weir.memory_kib("VmHWM") < 64 << 10);
    for n in 0..total {
        assert_eq!(client.answer(Method::Get).body.len(), 50_000, "{n}");
    }
    sender.join().unwrap();
    drop(client);
    case.stop();
}

#[test]
fn an_empty_line_between_requests_is_ignored() {
    let case = Case::answering(MODES[0], OK);
    let mut client = case.client();
    client.send(format!("{GET}\r\n{GET}"));
    assert_eq!(client.answer(Method::Get).text(), "ok");
    assert_eq!(client.answer(Method::Get).text(), "ok");
    assert!(!client.stream.has_news_within(Duration::from_millis(50)));
    assert_eq!(case.upstream.requests().len(), 2);
    drop(client);
    case.stop();
}
