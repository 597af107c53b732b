//! Requests that break a rule or a limit.

use super::refused::{GET, OK, refusal};
use crate::common::{Case, DEADLINE, MODES, poll_until};
use std::time::Instant;
use weir_http::Method;

/// (request, status, reason): requests that this gateway and the server behind it could parse differently, and requests
/// that cannot be parsed at all.
const REQUESTS: [(&str, u16, &str); 48] = [
    // Ambiguous framing.
    (
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "content_length_and_transfer_encoding",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        400,
        "content_length_and_transfer_encoding",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        400,
        "differing_content_length",
    ),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4, 5\r\n\r\nabcd", 400, "differing_content_length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +4\r\n\r\nabcd", 400, "bad_content_length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -4\r\n\r\nabcd", 400, "bad_content_length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x4\r\n\r\nabcd", 400, "bad_content_length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4 4\r\n\r\nabcd", 400, "bad_content_length"),
    ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 400, "bad_content_length"),
    ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "transfer_encoding_in_http10"),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        400,
        "repeated_chunked",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "repeated_chunked",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        400,
        "chunked_not_final",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        501,
        "unknown_transfer_coding",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        501,
        "unknown_transfer_coding",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        400,
        "control_character",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        400,
        "whitespace_before_colon",
    ),
    ("POST / HTTP/1.1\r\nHost: h\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "obs_fold"),
    ("POST / HTTP/1.1\r\nHost: h\r\nX: 1\r\n\tfolded\r\n\r\n", 400, "obs_fold"),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: Content-Length\r\n\r\n",
        400,
        "connection_names_relied_on_field",
    ),
    // Lines.
    ("GET / HTTP/1.1\nHost: h\n\n", 400, "bare_lf"),
    ("GET / HTTP/1.1\r\nHost: h\nX: 1\r\n\r\n", 400, "bare_lf"),
    ("GET / HTTP/1.1\r\nHost: h\r\n\n", 400, "bare_lf"),
    ("GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", 400, "bare_cr"),
    ("GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n", 400, "control_character"),
    ("GET / HTTP/1.1\r\nHost: h\r\nX\0: a\r\n\r\n", 400, ""),
    ("GET / HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n", 400, "bad_field_name"),
    ("GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n", 400, ""),
    // Chunks.
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n", 400, "bad_chunk_size"),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
        400,
        "bad_chunk_size",
    ),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", 400, "bad_chunk_size"),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\nabc",
        400,
        "bad_chunk_size",
    ),
    ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400, "bare_lf"),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        400,
        "bad_chunk_end",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;a\nb\r\nabc\r\n0\r\n\r\n",
        400,
        "bare_lf",
    ),
    (
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno trailer\r\n\r\n",
        400,
        "bad_trailer",
    ),
    // The request line and the host.
    ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "bad_request_line"),
    ("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, ""),
    ("GET /#x HTTP/1.1\r\nHost: h\r\n\r\n", 400, "bad_target_character"),
    ("GET x HTTP/1.1\r\nHost: h\r\n\r\n", 400, "bad_target_form"),
    ("G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "bad_method"),
    ("GET / HTTP/1.1\r\nX: 1\r\n\r\n", 400, "missing_host"),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "duplicate_host"),
    ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "bad_host"),
    ("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400, "bad_host"),
    ("GET / HTTP1.1\r\nHost: h\r\n\r\n", 400, "bad_version"),
    ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, "unsupported_version"),
    ("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", 501, "connect_not_supported"),
];

#[test]
fn an_invalid_request_is_rejected_and_not_forwarded() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        for (request, status, reason) in REQUESTS {
            let mut client = case.client();
            client.send(request);
            let (got, body) = refusal(&mut client, request);
            assert_eq!(got, status, "{mode:?} {request:?}: {body}");
            assert!(
                body.starts_with(&format!("{status} ")) && body.contains(reason),
                "{mode:?} {request:?}: {body}"
            );
            case.weir.wait_for_stderr(&[&format!("weir: {status} "), reason, "client=127.0.0.1:"]);
        }
        assert_eq!(case.upstream.received_bytes(), 0, "{mode:?}");
        // The same after a valid request on the same connection.
        for (request, status, reason) in REQUESTS {
            let mut client = case.client();
            client.send(format!("{GET}{request}"));
            assert_eq!(client.answer(Method::Get).text(), "ok", "{mode:?} {request:?}");
            let (got, body) = refusal(&mut client, request);
            assert!(got == status && body.contains(reason), "{mode:?} {request:?}: {body}");
        }
        assert!(
            case.upstream
                .requests()
                .iter()
                .all(|request| request.head.starts_with("GET / HTTP/1.1\r\nHost: h\r\n"))
        );
        assert_eq!(case.upstream.requests().len(), REQUESTS.len(), "{mode:?}");
        assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
        case.stop();
    }
}

#[test]
fn requests_beyond_a_limit_are_rejected() {
    for mode in MODES {
        let flags = ["--max-body", "10"];
        let case = Case::new(mode, &flags, |peer| peer.serve(OK));
        let put = "PUT / HTTP/1.1\r\nHost: h\r\n";
        for (request, status, reason) in [
            (format!("{put}Content-Length: 11\r\n\r\n"), 413, "body_too_large"),
            (format!("{put}Content-Length: 11\r\n\r\nhello world"), 413, "body_too_large"),
            (format!("{put}Expect: 100-continue\r\nContent-Length: 11\r\n\r\n"), 413, "body_too_large"),
            (
                format!("{put}Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n"),
                413,
                "body_too_large",
            ),
            (
                format!("{put}Transfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n5\r\nworld"),
                413,
                "body_too_large",
            ),
            (
                format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(33_000)),
                414,
                "request_line_too_long",
            ),
            (format!("GET /{}", "x".repeat(33_000)), 414, "request_line_too_long"),
            (format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(33_000)), 431, "head_too_long"),
            (format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: 1\r\n".repeat(101)), 431, "too_many_fields"),
            (
                format!(
                    "GET / HTTP/1.1\r\nHost: h\r\n{}\r\n",
                    format!("X: {}\r\n", "x".repeat(5000)).repeat(8)
                ),
                431,
                "head_too_long",
            ),
            (
                format!("{put}Transfer-Encoding: chunked\r\n\r\n0\r\n{}\r\n", "X: 1\r\n".repeat(101)),
                431,
                "trailer_too_large",
            ),
        ] {
            let mut client = case.client();
            client.send(&request);
            let what = &request[..request.len().min(100)];
            let (got, body) = refusal(&mut client, what);
            assert!(got == status && body.contains(reason), "{mode:?} {what:?}: {body}");
        }
        assert_eq!(case.upstream.received_bytes(), 0, "{mode:?}");
        // At the limit it is forwarded.
        let mut client = case.client();
        assert_eq!(client.ask(format!("{put}Content-Length: 10\r\n\r\n0123456789")).status, 200, "{mode:?}");
        let chunks = format!("{put}Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n");
        assert_eq!(client.ask(chunks).status, 200, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn a_chunked_body_that_becomes_too_large_closes_both_connections() {
    for mode in MODES {
        let case = Case::new(mode, &["--max-body", "10"], |peer| peer.serve(OK));
        let mut client = case.client();
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n");
        poll_until(DEADLINE, "the first chunk", || case.upstream.received(0).ends_with(b"6\r\nhello \r\n"));
        client.send("5\r\nworld\r\n0\r\n\r\n");
        assert_eq!(refusal(&mut client, "grows").0, 413, "{mode:?}");
        case.upstream.wait_for_ending(0);
        assert_eq!(case.upstream.requests().len(), 0, "{mode:?}");
        assert!(!case.upstream.received(0).ends_with(b"0\r\n\r\n"), "{mode:?}");
        case.stop();
    }
}

#[test]
fn a_rejected_client_that_keeps_sending_still_reads_the_reason() {
    for mode in MODES {
        let case = Case::new(mode, &["--max-body", "10"], |peer| peer.serve(OK));
        let mut client = case.client();
        client.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n");
        for _ in 0..30 {
            client.send([b'x'; 100_000]);
        }
        assert_eq!(refusal(&mut client, "goes on").0, 413, "{mode:?}");
        case.stop();
    }
}

#[test]
fn the_error_response_to_head_has_no_body() {
    let case = Case::new(MODES[0], &[], |peer| {
        peer.request();
    });
    let mut client = case.client();
    let answer = client.ask("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((answer.status, answer.body.len()), (502, 0));
    // After the head comes the next response, not a body.
    let answer = client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(answer.status == 502 && answer.text().contains("upstream_closed"), "{}", answer.head);
    drop(client);
    case.stop();
}

/// Regression test: an early rejection did not know the request's method, so a client that had sent HEAD took the body
/// of a 413 for the next response.
#[test]
fn a_head_request_that_is_not_passed_on_gets_no_body_either() {
    let case = Case::new(MODES[0], &["--max-body", "10"], |peer| peer.serve(OK));
    let mut client = case.client();
    client.send("HEAD /big HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n");
    let answer = client.answer(Method::Head);
    assert_eq!((answer.status, answer.body.len()), (413, 0));
    assert_eq!(client.read_to_end().0, b"");
    case.weir.wait_for_stderr(&["413 body_too_large", "request=\"HEAD /big\""]);
    case.stop();
}

#[test]
fn log_lines_about_bad_requests_are_rate_limited() {
    let case = Case::answering(MODES[0], OK);
    let began = Instant::now();
    for _ in 0..300 {
        let mut client = case.client();
        client.send("nonsense\r\n\r\n");
        assert_eq!(client.answer(Method::Get).status, 400);
    }
    let ended = case.stop();
    let lines = ended.stderr.lines().filter(|line| line.contains("400")).count();
    let seconds = began.elapsed().as_secs() as usize + 2;
    assert!(lines > 0 && lines <= 50 * seconds, "{lines} lines in {seconds} seconds");
    assert!(ended.stdout.contains("ended early: 300 "), "all of them are counted: {}", ended.stdout);
}
