//! Bodies of every framing, in both directions, with peers that are slow or close too early.

use crate::common::{
    Case, DEADLINE, Ending, MODES, Peer, Switch, most_in_flight, pattern, poll_until, until_still,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weir_http::Method;

/// Empty, one byte, small, around the size of a read, and larger than all buffers in between.
const SIZES: [usize; 6] = [0, 1, 1000, 64 * 1024, 64 * 1024 + 1, 5_000_000];

/// Chunks of changing sizes, with extensions, and trailers at the end.
fn chunked(body: &[u8]) -> Vec<u8> {
    let (mut out, mut at, mut size) = (Vec::new(), 0, 1);
    while at < body.len() {
        let data = &body[at..body.len().min(at + size)];
        out.extend_from_slice(format!("{:X};a=b;c=\"d;\\\"\" ; e\r\n", data.len()).as_bytes());
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
        at += data.len();
        size = size * 3 % 20_011 + 1;
    }
    out.extend_from_slice(b"000;last\r\nX-Trailer: 1\r\nContent-Length: 7\r\n\r\n");
    out
}

/// Responds to requests for `/FRAMING/SIZE` with a body of that size and framing.
fn respond_as_requested(peer: &mut Peer) {
    while let Some(request) = peer.request() {
        let target = request.head.split(' ').nth(1).unwrap();
        let (framing, size) = target[1..].split_once('/').unwrap();
        let body = pattern(size.parse().unwrap());
        match framing {
            "length" => {
                peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
                peer.answer(&body);
            }
            "chunked" => {
                peer.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n\r\n");
                peer.answer(chunked(&body));
            }
            "close" => {
                peer.answer("HTTP/1.1 200 OK\r\n\r\n");
                peer.answer(&body);
                return;
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn responses_of_every_framing_and_size_are_forwarded_whole() {
    for mode in MODES {
        let case = Case::new(mode, &[], respond_as_requested);
        let mut client = case.client();
        for size in SIZES {
            for (framing, declared) in [
                ("length", format!("Content-Length: {size}\r\n")),
                ("chunked", "Transfer-Encoding: chunked\r\n".into()),
                ("close", "Transfer-Encoding: chunked\r\n".into()),
            ] {
                let answer = client.ask(format!("GET /{framing}/{size} HTTP/1.1\r\nHost: h\r\n\r\n"));
                assert_eq!(
                    answer.undated(),
                    format!("HTTP/1.1 200 OK\r\n{declared}\r\n"),
                    "{mode:?} {framing} {size}"
                );
                assert!(answer.body == pattern(size), "{mode:?} {framing} {size}: wrong body");
                if framing != "length" {
                    assert!(answer.raw_body.ends_with(b"0\r\n\r\n"), "no trailer is forwarded");
                    let extension = answer.raw_body.windows(4).any(|four| four == b";a=b");
                    assert!(!extension, "no extension is forwarded");
                }
            }
        }
        drop(client);
        case.stop();
    }
}

#[test]
fn an_http_1_0_client_gets_no_chunks() {
    for mode in MODES {
        let case = Case::new(mode, &[], respond_as_requested);
        for size in [0, 1, 100_000] {
            for framing in ["chunked", "close"] {
                let mut client = case.client();
                client.send(format!("GET /{framing}/{size} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
                let answer = client.answer(Method::Get);
                assert_eq!(
                    answer.undated(),
                    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
                    "{mode:?} {framing} {size}"
                );
                assert!(answer.raw_body == pattern(size), "{mode:?} {framing} {size}");
                assert_eq!(answer.ending, Some(Ending::Clean), "{mode:?} {framing} {size}");
            }
            let mut client = case.client();
            let request = format!("GET /length/{size} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
            for _ in 0..2 {
                let answer = client.ask(&request);
                assert_eq!(answer.fields("connection"), ["keep-alive"], "{mode:?} {size}");
                assert!(answer.body == pattern(size), "{mode:?} {size}");
            }
        }
        case.stop();
    }
}

#[test]
fn requests_of_both_framings_and_every_size_are_forwarded_whole() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        let mut client = case.client();
        for size in SIZES {
            let body = pattern(size);
            client.send(format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n"));
            client.send(&body);
            assert_eq!(client.answer(Method::Put).status, 200, "{mode:?} {size}");
            client.send(
                "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n\r\n",
            );
            client.send(chunked(&body));
            assert_eq!(client.answer(Method::Put).status, 200, "{mode:?} {size}");
            let requests = std::mem::take(&mut *case.upstream.requests());
            let [by_length, by_chunks] = &requests[..] else { panic!("{} requests", requests.len()) };
            assert_eq!(by_length.fields("content-length"), [size.to_string()], "{mode:?} {size}");
            assert!(by_length.raw_body == body, "{mode:?} {size}: wrong body");
            assert_eq!(by_chunks.fields("transfer-encoding"), ["chunked"], "{mode:?} {size}");
            assert_eq!(by_chunks.fields("trailer"), [""; 0], "{mode:?} {size}");
            assert!(by_chunks.body == body, "{mode:?} {size}: wrong body");
            assert!(by_chunks.raw_body.ends_with(b"0\r\n\r\n"), "no trailer is forwarded");
        }
        assert_eq!(case.upstream.connections(), 1, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn an_echo_streams_both_ways_at_once() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            let (_, framing) = peer.head().unwrap();
            assert_eq!(framing, weir_http1::Framing::Chunked);
            // The response starts before any byte of the request's body is read.
            peer.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"\r\n0\r\n\r\n") {
                let before = bytes.len();
                assert_eq!(peer.stream.receive(&mut bytes), None);
                peer.answer(&bytes[before..]);
            }
            peer.read_to_end();
        });
        let mut client = case.client();
        client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut got = Vec::new();
        for round in 0..20u8 {
            client.send(format!("3\r\n{round:03}\r\n"));
            // Each chunk must be echoed before the next one is sent.
            let wanted = format!("{round:03}");
            while !String::from_utf8_lossy(&got).contains(&wanted) {
                assert_eq!(client.stream.receive(&mut got), None, "{mode:?}");
            }
        }
        client.send("0\r\n\r\n");
        while !got.ends_with(b"0\r\n\r\n") {
            assert_eq!(client.stream.receive(&mut got), None, "{mode:?}");
        }
        drop(client);
        case.stop();
    }
}

#[test]
fn a_client_that_does_not_read_stops_the_upstream() {
    for mode in MODES {
        let written = Arc::new(AtomicUsize::new(0));
        let (count, total) = (Arc::clone(&written), 2 * most_in_flight());
        let case = Case::new(mode, &[], move |peer| {
            peer.request();
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n"));
            let piece = pattern(1 << 16);
            for _ in 0..total / piece.len() {
                if !peer.answer(&piece) {
                    return;
                }
                count.fetch_add(piece.len(), Ordering::SeqCst);
            }
        });
        let mut client = case.client();
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let stopped_at = until_still(&written);
        assert!(
            stopped_at < most_in_flight(),
            "{mode:?}: the gateway took {stopped_at} bytes for a client that reads none"
        );
        let memory = case.weir.memory_kib("VmHWM");
        assert!(memory < 64 << 10, "{mode:?}: {memory} KiB");
        let answer = client.answer(Method::Get);
        assert!(answer.complete && answer.body.len() == total, "{mode:?}");
        let piece = pattern(1 << 16);
        assert!(answer.body.chunks(1 << 16).all(|chunk| chunk == piece), "{mode:?}: wrong body");
        drop(client);
        case.stop();
    }
}

#[test]
fn an_upstream_that_does_not_read_stops_the_client() {
    for mode in MODES {
        let total = 2 * most_in_flight();
        let proceed = Arc::new(AtomicBool::new(false));
        let gate = Arc::clone(&proceed);
        let case = Case::new(mode, &[], move |peer| {
            let _ = peer.head();
            poll_until(DEADLINE, "the test to continue", || gate.load(Ordering::SeqCst));
            let mut left = total;
            let mut bytes = Vec::new();
            while left > 0 {
                bytes.clear();
                assert_eq!(peer.stream.receive(&mut bytes), None);
                left -= bytes.len();
            }
            peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nread");
        });
        let mut client = case.client();
        client.send(format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {total}\r\n\r\n"));
        let written = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&written);
        let sender = std::thread::spawn(move || {
            let piece = pattern(1 << 16);
            for _ in 0..total / piece.len() {
                client.send(&piece);
                count.fetch_add(piece.len(), Ordering::SeqCst);
            }
            client
        });
        let stopped_at = until_still(&written);
        assert!(
            stopped_at < most_in_flight(),
            "{mode:?}: the gateway took {stopped_at} bytes that are not read"
        );
        let memory = case.weir.memory_kib("VmHWM");
        assert!(memory < 64 << 10, "{mode:?}: {memory} KiB");
        proceed.store(true, Ordering::SeqCst);
        let mut client = sender.join().unwrap();
        assert_eq!(client.answer(Method::Put).text(), "read", "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn a_truncated_response_never_ends_with_a_clean_close() {
    /// (start of the response, whether the client speaks HTTP/1.0)
    const CASES: [(&str, bool); 5] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n", true),
    ];
    for mode in MODES {
        for (beginning, old) in CASES {
            let case = Case::new(mode, &[], move |peer| {
                peer.request();
                peer.answer(beginning);
            });
            let mut client = case.client();
            client.send(if old { "GET / HTTP/1.0\r\n\r\n" } else { "GET / HTTP/1.1\r\nHost: h\r\n\r\n" });
            let Ok(answer) = client.next_answer(Method::Get) else {
                // Truncated before the head was complete: this is not a clean close, either.
                continue;
            };
            assert!(!answer.complete, "{mode:?} {beginning:?} {answer:?}");
            assert!(!answer.raw_body.ends_with(b"0\r\n\r\n"), "{mode:?} {beginning:?} {answer:?}");
            if mode.client_tls {
                assert_ne!(answer.ending, Some(Ending::Clean), "{mode:?} {beginning:?}: a close_notify");
            }
            case.weir.wait_for_stderr(&["upstream_truncated", "GET /"]);
            case.stop();
        }
    }
}

#[test]
fn a_truncated_tls_connection_does_not_complete_a_response_until_close() {
    // The upstream's stream ends with a FIN and no close_notify: an attacker may have truncated it.
    for mode in MODES.into_iter().filter(|mode| mode.upstream_tls) {
        for version in ["1.0", "1.1"] {
            let case = Case::new(mode, &[], |peer| {
                peer.request();
                peer.answer("HTTP/1.1 200 OK\r\n\r\nonly this");
                peer.stream.finish_tcp();
                peer.read_to_end();
            });
            let mut client = case.client();
            client.send(format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n"));
            if let Ok(answer) = client.next_answer(Method::Get) {
                assert!(!answer.complete, "{mode:?} {version} {answer:?}");
            }
            case.weir.wait_for_stderr(&["upstream_truncated"]);
            drop(client);
            case.stop();
        }
    }
}

#[test]
fn a_broken_chunk_of_a_response_aborts_the_connection() {
    for mode in MODES {
        let go_on = Switch::default();
        let gate = go_on.clone();
        let case = Case::new(mode, &[], move |peer| {
            peer.request();
            peer.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
            gate.wait();
            peer.answer("xyz\r\n");
            peer.read_to_end();
        });
        let mut client = case.client();
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        // If nothing had been sent yet, the response would be a 502.
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"hello\r\n") {
            assert_eq!(client.stream.receive(&mut bytes), None, "{mode:?}");
        }
        client.stream.unread(&bytes);
        go_on.throw();
        let answer = client.answer(Method::Get);
        assert!(!answer.complete, "{mode:?} {answer:?}");
        case.weir.wait_for_stderr(&["bad_response_body", "chunk size"]);
        case.upstream.wait_for_ending(0);
        drop(client);
        case.stop();
    }
}
