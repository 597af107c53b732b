//! Rules for single messages.

use super::{GET, OK, ask, cleartext, rejected};
use crate::common::{Ending, Switch};
use weir_http::Method;

#[test]
fn rule_01_a_message_has_one_framing_that_is_decided_once() {
    let case = cleartext(&[], |peer| peer.serve(OK));
    for (lines, framing) in [
        ("Content-Length: 5\r\n\r\nhello", "content-length: 5"),
        ("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "content-length: 5"),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "transfer-encoding: chunked"),
    ] {
        assert_eq!(ask(&case, format!("POST / HTTP/1.1\r\nHost: h\r\n{lines}")).status, 200, "{lines:?}");
        let request = case.upstream.requests().last().unwrap().clone();
        let head = request.head.to_ascii_lowercase();
        assert_eq!(
            head.matches("content-length").count() + head.matches("transfer-encoding").count(),
            1,
            "{head}"
        );
        assert!(head.contains(framing) && request.body == b"hello", "{head}");
    }
    for (version, lines, status, reason) in [
        (
            "1.1",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            400,
            "content_length_and_transfer_encoding",
        ),
        (
            "1.1",
            "Transfer-Encoding: chunked\r\nContent-Length: 0",
            400,
            "content_length_and_transfer_encoding",
        ),
        ("1.1", "Transfer-Encoding: gzip, chunked", 501, "unknown_transfer_coding"),
        ("1.1", "Transfer-Encoding: chunked, chunked", 400, "repeated_chunked"),
        ("1.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", 400, "chunked_not_final"),
        ("1.0", "Transfer-Encoding: chunked", 400, "transfer_encoding_in_http10"),
        ("1.1", "Content-Length: 5\r\nContent-Length: 6", 400, "differing_content_length"),
        ("1.1", "Content-Length: +5", 400, "bad_content_length"),
        ("1.1", "Content-Length: 0x5", 400, "bad_content_length"),
    ] {
        rejected(&case, &format!("POST / HTTP/{version}\r\nHost: h\r\n{lines}\r\n\r\n"), status, reason);
    }
    case.stop();
}

#[test]
fn rule_02_a_tunnel_begins_only_with_the_servers_consent() {
    const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
    let (decline, seen) = (Switch::default(), Switch::default());
    let (gate, saw) = (decline.clone(), seen.clone());
    let case = cleartext(&[], move |peer| {
        match peer.index {
            // The server declines, so the following bytes are requests.
            0 => {
                peer.request();
                saw.throw();
                gate.wait();
                peer.answer(OK);
                peer.serve(OK);
            }
            // The server consents.
            1 => {
                peer.head();
                peer.answer(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                );
                peer.read_to_end();
            }
            _ => peer.serve(OK),
        }
    });
    let mut client = case.client();
    client.send(format!("{UPGRADE}\r\nGET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"));
    seen.wait();
    assert!(
        !String::from_utf8_lossy(&case.upstream.received(0)).contains("/hidden"),
        "it waits for the answer"
    );
    decline.throw();
    assert_eq!(client.answer(Method::Get).status, 200);
    assert_eq!(client.answer(Method::Get).status, 200);
    let lines: Vec<_> = case.upstream.requests().iter().map(|request| request.head.clone()).collect();
    assert!(
        lines.len() == 2 && lines[1].contains("X-Forwarded-For: "),
        "the gateway read the second one: {lines:?}"
    );

    // With a body, the gateway does not forward the upgrade.
    let mut client = case.client();
    client.send(format!("{}Content-Length: 2\r\n\r\nhi", UPGRADE.replace("GET", "POST")));
    assert_eq!(client.answer(Method::Post).status, 200);
    assert!(case.upstream.requests().last().unwrap().fields("upgrade").is_empty());

    // Both pooled connections are the first one; while that is in use, there is a second.
    let mut first = case.client();
    first.send("POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n");
    crate::common::poll_until(crate::common::DEADLINE, "the head at the upstream", || {
        String::from_utf8_lossy(&case.upstream.received(0)).contains("/slow")
    });
    let mut upgraded = case.client();
    upgraded.send(format!("{UPGRADE}\r\n"));
    assert_eq!(upgraded.answer(Method::Get).status, 101);
    upgraded.stream.finish();
    assert_eq!(case.upstream.wait_for_ending(1), Ending::Clean);
    assert_eq!(ask(&case, GET).status, 200);
    assert_eq!(case.upstream.connections(), 3, "an upgraded connection is never reused");
    first.send("ok");
    assert_eq!(first.answer(Method::Post).status, 200);
    drop((client, first, upgraded));
    case.stop();
}

#[test]
fn rule_03_chunks_are_read_strictly_and_written_anew() {
    let case = cleartext(&[], |peer| peer.serve(OK));
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(ask(&case, format!("{head}0005;name=\"a value\"\r\nhello\r\n000;last\r\n\r\n")).status, 200);
    let request = case.upstream.requests().last().unwrap().clone();
    assert_eq!(request.raw_body, b"5\r\nhello\r\n0\r\n\r\n");
    let long = "x".repeat(20_000);
    for (body, reason) in [
        ("5\nhello\r\n0\r\n\r\n", "bare_lf"),
        ("5;a\nhello\r\n0\r\n\r\n", "bare_lf"),
        ("5\r\nhello\n0\r\n\r\n", "bare_lf"),
        ("5\r\nhello!\r\n0\r\n\r\n", "bad_chunk_end"),
        ("5\rhello\r\n0\r\n\r\n", "bare_cr"),
        ("10000000000000005\r\nhello\r\n0\r\n\r\n", "bad_chunk_size"),
        ("fffffffffffffffff\r\n", "bad_chunk_size"),
        ("-5\r\nhello\r\n", "bad_chunk_size"),
        ("5 \r\nhello\r\n", "bad_chunk_extension"),
        (&format!("5;{long}\r\nhello\r\n"), "chunk_extension_too_long"),
    ] {
        let answer = ask(&case, format!("{head}{body}"));
        assert!(answer.status == 400 && answer.text().contains(reason), "{body:.40}: {}", answer.text());
    }
    assert_eq!(case.upstream.requests().len(), 1, "no other one was ever complete");
    case.stop();
}

#[test]
fn rule_04_trailers_are_bounded_and_never_become_fields() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\n\r\n";
    let case = cleartext(&[], move |peer| peer.serve(chunked));
    let plain = ask(&case, GET);
    assert!(
        plain.raw_body.ends_with(b"0\r\n\r\n") && plain.text() == "ok",
        "{:?}",
        plain.raw_body.escape_ascii()
    );
    let with = ask(&case, "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    assert!(with.raw_body.ends_with(b"0\r\nX-Sum: 1\r\n\r\n"), "{:?}", with.raw_body.escape_ascii());
    assert!(with.fields("x-sum").is_empty());
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
    let answer = ask(&case, format!("{head}X-Role: admin\r\nTransfer-Encoding: gzip\r\n\r\n"));
    assert_eq!(answer.status, 200);
    let request = case.upstream.requests().last().unwrap().clone();
    assert!(request.fields("x-role").is_empty() && request.raw_body.ends_with(b"0\r\n\r\n"));
    let long: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    let answer = ask(&case, format!("{head}{long}\r\n"));
    assert!(answer.status == 431 && answer.text().contains("trailer_too_large"), "{}", answer.text());
    case.stop();
}

#[test]
fn rule_06_fields_of_one_hop_and_forged_identities_do_not_pass() {
    let case = cleartext(&[], |peer| peer.serve(OK));
    let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: X-Secret, keep-alive\r\nX-Secret: 1\r\nKeep-Alive: 5\r\n\
                   X-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\n\r\n";
    assert_eq!(ask(&case, request).status, 200);
    let got = case.upstream.requests().last().unwrap().clone();
    for name in ["connection", "x-secret", "keep-alive", "x_forwarded_for", "forwarded"] {
        assert!(got.fields(name).is_empty(), "{name}: {}", got.head);
    }
    assert_eq!(
        (got.fields("x-forwarded-for"), got.fields("x-forwarded-proto")),
        (vec!["127.0.0.1"], vec!["http"])
    );
    assert!(!got.head.contains("6.6.6.6"), "{}", got.head);
    let reason = "connection_names_relied_on_field";
    for name in ["Host", "Content-Length", "Transfer-Encoding", "X-Forwarded-For"] {
        rejected(&case, &format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: {name}\r\n\r\n"), 400, reason);
    }
    case.stop();
}

#[test]
fn rule_10_interim_responses_and_expectations_pass_and_none_is_invented() {
    let case = cleartext(&[], |peer| {
        let (head, _) = peer.head().unwrap();
        match head.contains("/refuse") {
            true => {
                peer.answer("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
                peer.read_to_end();
            }
            false => {
                peer.answer("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
                let mut body = Vec::new();
                while body.len() < 5 {
                    assert_eq!(peer.stream.receive(&mut body), None);
                }
                peer.answer(OK.replace("Content", "Connection: close\r\nContent"));
                peer.read_to_end();
            }
        }
    });
    let post = |target: &str| {
        format!("POST {target} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    };
    let mut client = case.client();
    client.send(post("/"));
    let statuses = [(); 2].map(|()| client.answer(Method::Post).status);
    assert_eq!(statuses, [103, 100]);
    client.send("hello");
    assert_eq!(client.answer(Method::Post).text(), "ok");
    drop(client);
    // A final status precedes the body: no 100 follows, and neither connection is reused.
    let mut client = case.client();
    client.send(post("/refuse"));
    let answer = client.answer(Method::Post);
    assert!(answer.status == 413 && answer.says_close(), "{}", answer.head);
    client.expect_end();
    let ending = case.upstream.wait_for_ending(case.upstream.connections() - 1);
    assert_ne!(ending, Ending::Truncated);
    case.stop();
}
