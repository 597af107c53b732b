//! What is refused: with which status and reason, that nothing of it reaches the upstream, and that the gateway goes on.

mod common;

use common::{Case, Certificates, Client, DEADLINE, Ending, MODES, Stream, Weir, poll_until};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;
use weir_http1::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Reads the refusal and the end of the connection behind it.
fn refusal(client: &mut Client, what: &str) -> (u16, String) {
    let answer = client.answer(Method::Get);
    assert!(answer.says_close(), "{what:?}: {}", answer.head);
    assert_eq!(answer.fields("content-length"), [answer.body.len().to_string()], "{what:?}");
    assert_eq!(answer.fields("content-type"), ["text/plain"], "{what:?}");
    assert_eq!(answer.fields("date").len(), 1, "{what:?}");
    assert!(answer.body.len() < 100, "{what:?}: {}", answer.text());
    let (rest, ending) = client.read_to_end();
    assert_eq!((rest.len(), ending), (0, Ending::Clean), "{what:?}");
    // So that the gateway need not wait for it.
    client.stream.finish_tcp();
    (answer.status, answer.text().to_owned())
}

/// (request, status, reason): what could be read in two ways, by this gateway and by what stands behind it, and what
/// cannot be read at all.
const REQUESTS: [(&str, u16, &str); 49] = [
    // Framing in two ways.
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
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "unsupported_version"),
    ("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", 501, "connect_not_supported"),
];

#[test]
fn a_request_that_breaks_a_rule_is_refused_and_nothing_of_it_is_passed_on() {
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
        // The same behind a good request on the same connection.
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
fn what_is_too_large_is_refused() {
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
            (format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(9000)), 414, "request_line_too_long"),
            (format!("GET /{}", "x".repeat(9000)), 414, "request_line_too_long"),
            (
                format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(9000)),
                431,
                "field_line_too_long",
            ),
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
        // At the limit it passes.
        let mut client = case.client();
        assert_eq!(client.ask(format!("{put}Content-Length: 10\r\n\r\n0123456789")).status, 200, "{mode:?}");
        let chunks = format!("{put}Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n");
        assert_eq!(client.ask(chunks).status, 200, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn a_chunked_body_that_grows_too_large_later_ends_both_connections() {
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
fn a_refused_client_that_goes_on_sending_still_reads_why() {
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

/// (what an upstream answers before it closes, the reason that is told)
const ANSWERS: [(&str, &str); 13] = [
    ("", "upstream_closed"),
    ("HTTP/1.1 200", "upstream_truncated"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "upstream_truncated"),
    ("HTTP/1.1 100 Continue\r\n\r\n", "upstream_closed"),
    ("garbage\r\n\r\n", "bad_response"),
    ("\x16\x03\x01\x02\x00\x01", "bad_response"),
    ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", "bad_response"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "bad_response"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello", "bad_response"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "bad_response"),
    ("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "bad_response"),
    ("HTTP/1.1 099 Low\r\n\r\n", "bad_response"),
    ("HTTP/2.0 200 OK\r\n\r\n", "bad_response"),
];

#[test]
fn what_an_upstream_does_wrong_is_502() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            if let Some(request) = peer.request() {
                let number: usize = request.head.split([' ', '/']).nth(2).unwrap().parse().unwrap();
                peer.answer(ANSWERS[number].0);
            }
        });
        for (number, (answer, reason)) in ANSWERS.into_iter().enumerate() {
            let mut client = case.client();
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: h\r\n\r\n"));
            let mut got = client.answer(Method::Get);
            if got.status == 100 {
                got = client.answer(Method::Get);
            }
            assert_eq!((got.status, got.says_close()), (502, true), "{mode:?} {answer:?}");
            assert!(got.text().contains(reason), "{mode:?} {answer:?}: {}", got.text());
            client.expect_end();
            case.weir.wait_for_stderr(&["weir: 502", reason, &format!("request=\"GET /{number}\"")]);
        }
        case.stop();
    }
}

#[test]
fn an_upstream_that_is_not_there_is_502() {
    for mode in MODES {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let certificates = Certificates::new();
        let weir = common::serve(mode, &certificates, free, &[]);
        let session = mode.client_tls.then(|| certificates.session());
        let mut client = Client::connect(weir.address(), session);
        client.send(GET);
        let (status, body) = refusal(&mut client, "not there");
        assert!(status == 502 && body.contains("upstream_connect"), "{mode:?}: {body}");
        weir.wait_for_stderr(&["502 upstream_connect", "refused"]);
        assert_eq!(weir.stop().code, Some(0), "{mode:?}");
    }
}

#[test]
fn an_upstream_that_is_not_trusted_is_502_and_gets_no_request() {
    for mode in MODES.into_iter().filter(|mode| mode.upstream_tls) {
        let stranger = Certificates::new();
        let elsewhere = Certificates::for_names(&["elsewhere.example"]);
        for (presents, trusts, flags, detail) in [
            (&stranger, &elsewhere, &[][..], "not trusted"),
            (&elsewhere, &elsewhere, &[][..], "not trusted"),
            (&stranger, &stranger, &["--upstream-name", "elsewhere.example"][..], "not trusted"),
        ] {
            let upstream = common::Upstream::start(Some(presents.server().core()), |peer| peer.serve(OK));
            let mut flags = flags.to_vec();
            flags.extend(["--upstream-ca", trusts.ca.to_str().unwrap()]);
            let client_side = Certificates::new();
            let weir = common::serve(mode, &client_side, upstream.address, &flags);
            let session = mode.client_tls.then(|| client_side.session());
            let mut client = Client::connect(weir.address(), session);
            client.send(GET);
            let (status, body) = refusal(&mut client, "not trusted");
            assert!(status == 502 && body.contains("upstream_tls"), "{mode:?}: {body}");
            weir.wait_for_stderr(&["502 upstream_tls", detail]);
            assert_eq!(upstream.received_bytes(), 0, "{mode:?}");
            assert_eq!(weir.stop().code, Some(0), "{mode:?}");
        }
        // The name that is verified can be told apart from the address.
        let upstream = common::Upstream::start(Some(elsewhere.server().core()), |peer| peer.serve(OK));
        let flags = ["--upstream-name", "elsewhere.example", "--upstream-ca", elsewhere.ca.to_str().unwrap()];
        let client_side = Certificates::new();
        let weir = common::serve(mode, &client_side, upstream.address, &flags);
        let session = mode.client_tls.then(|| client_side.session());
        assert_eq!(Client::connect(weir.address(), session).ask(GET).text(), "ok", "{mode:?}");
    }
}

#[test]
fn an_upstream_that_speaks_the_other_protocol_is_502() {
    for mode in MODES {
        let certificates = Certificates::new();
        let other = common::Mode { upstream_tls: !mode.upstream_tls, ..mode };
        let acceptor = other.upstream_tls.then(|| certificates.server().core());
        let upstream = common::Upstream::start(acceptor, |peer| {
            let _ = peer.answer("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            peer.read_to_end();
        });
        let weir = common::serve(mode, &certificates, upstream.address, &[]);
        let session = mode.client_tls.then(|| certificates.session());
        let mut client = Client::connect(weir.address(), session);
        client.send(GET);
        assert_eq!(refusal(&mut client, "other protocol").0, 502, "{mode:?}");
        // A hello that cannot be understood may have come, but nothing of the request, unless it was to be in clear.
        let received = upstream.received(0);
        assert!(!mode.upstream_tls || !received.windows(4).any(|four| four == b"HTTP"), "{mode:?}");
        assert_eq!(weir.stop().code, Some(0), "{mode:?}");
    }
}

#[test]
fn tls_on_a_cleartext_port_is_400_in_cleartext() {
    let case = Case::answering(MODES[0], OK);
    let certificates = Certificates::new();
    let mut hello = Vec::new();
    certificates.session().receive(&mut [], &mut Vec::new(), &mut hello).unwrap();
    let mut client = case.client();
    client.send(&hello);
    let (status, body) = refusal(&mut client, "TLS");
    assert!(status == 400 && body.contains("tls_on_cleartext"), "{body}");
    assert_eq!(case.client().ask(GET).text(), "ok");
    assert_eq!(case.upstream.requests().len(), 1);
    case.stop();
}

/// A connection to a TLS port that speaks no TLS.
fn raw(weir: &Weir) -> Client {
    Client { stream: Stream::over(TcpStream::connect(weir.address()).unwrap(), None).unwrap() }
}

#[test]
fn cleartext_on_a_tls_port_is_400_in_cleartext() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls) {
        let case = Case::answering(mode, OK);
        for request in [GET, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "G"] {
            let mut client = raw(&case.weir);
            client.send(request);
            let (status, body) = refusal(&mut client, request);
            assert!(status == 400 && body.contains("not_tls"), "{mode:?} {request:?}: {body}");
        }
        assert_eq!(case.upstream.connections(), 0, "{mode:?}");
        assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
        case.stop();
    }
}

/// Bytes that look like nothing, the same in every run.
fn garbage(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn garbage_on_any_port_ends_its_connection_and_nothing_else() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        // Behind a good handshake, a record that does not decrypt.
        if mode.client_tls {
            let mut stream = case.connect().unwrap();
            stream.send(b"GET / HT").unwrap();
            let mut tcp = stream.tcp().try_clone().unwrap();
            std::io::Write::write_all(
                &mut tcp,
                &[23, 3, 3, 0, 30, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
            )
            .unwrap();
            std::io::Write::write_all(&mut tcp, &[0; 20]).unwrap();
            case.weir.wait_for_stderr(&["client_tls", "did not decrypt"]);
        }
        for seed in 0..60 {
            let mut bytes = garbage(seed * 7919, 1 + seed as usize * 37);
            match seed % 4 {
                // Looks like a handshake record.
                0 if bytes.len() > 5 => bytes[..5].copy_from_slice(&[22, 3, 1, 0, 32]),
                // Looks like an alert or a change of ciphers.
                1 if bytes.len() > 5 => bytes[..5].copy_from_slice(&[20 + (seed % 2) as u8, 3, 3, 0, 2]),
                _ => {}
            }
            let mut client = raw(&case.weir);
            client.send(&bytes);
            // Whatever is being waited for does not come.
            client.stream.finish_tcp();
            let (answer, _) = client.read_to_end();
            let text = String::from_utf8_lossy(&answer);
            // An alert (21), a refusal, or nothing.
            assert!(
                answer.is_empty() || answer[0] == 21 || text.starts_with("HTTP/1.1 "),
                "{mode:?} {seed}: {text:?}"
            );
        }
        assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
        assert_eq!(case.upstream.requests().len(), 1, "{mode:?}");
        case.stop();
    }
}

#[test]
fn the_refusal_of_head_has_no_body() {
    let case = Case::new(MODES[0], &[], |peer| {
        peer.request();
    });
    let mut client = case.client();
    let answer = client.ask("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((answer.status, answer.body.len()), (502, 0));
    client.expect_end();
    case.stop();
}

#[test]
fn a_storm_of_bad_requests_is_no_storm_of_lines() {
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
