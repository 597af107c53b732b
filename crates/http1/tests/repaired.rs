//! Heads that violate relaxed rules: repaired heads, and heads that are still rejected.

use weir_http::Method;
use weir_http1::{Framing, Limits, Repaired, RequestError, RequestHead, ResponseHead, Rule, Rules};

const LIMITS: Limits = Limits { head_bytes: 2048, fields: 20, line_bytes: 512, extension_bytes: 0 };

fn all(rules: [Rule; 5]) -> Rules {
    rules.into_iter().collect()
}

/// The repaired head and the rules that the original violated; or the reason for its rejection.
fn request(bytes: &str, rules: Rules) -> Result<(String, Vec<Rule>), &'static str> {
    let (mut head, mut out) = (RequestHead::new(), Vec::new());
    let error = head.parse(bytes.as_bytes(), &LIMITS).expect_err("it is not strict");
    let Repaired { length, broken } = head
        .repair(bytes.as_bytes(), &LIMITS, rules, error, &mut out)
        .map_err(RequestError::reason)?
        .ok_or("not complete")?;
    assert_eq!(length, bytes.len());
    Ok((String::from_utf8(out).unwrap(), broken.iter().collect()))
}

fn response(bytes: &str, rules: Rules) -> Result<(String, Vec<Rule>, Framing), &'static str> {
    let (mut head, mut out) = (ResponseHead::new(), Vec::new());
    let error = head.parse(bytes.as_bytes(), &LIMITS).expect_err("it is not strict");
    let repaired = head
        .repair(bytes.as_bytes(), &LIMITS, rules, error, &mut out)
        .map_err(weir_http1::ResponseError::reason)?;
    let Repaired { length, broken } = repaired.ok_or("not complete")?;
    assert_eq!(length, bytes.len());
    Ok((String::from_utf8(out).unwrap(), broken.iter().collect(), head.framing(Method::Get)))
}

#[test]
fn requests_are_repaired_by_their_rule_alone() {
    const REST: &str = "Host: h\r\nX:1\r\n\r\n";
    let table = [
        (Rule::HttpMinor, format!("GET / HTTP/1.2\r\n{REST}"), format!("GET / HTTP/1.1\r\n{REST}")),
        (Rule::HttpMinor, format!("\r\nGET / HTTP/1.9\r\n{REST}"), format!("GET / HTTP/1.1\r\n{REST}")),
        (
            Rule::EmptyHost,
            "GET / HTTP/1.1\r\nHost:\r\nX:1\r\n\r\n".into(),
            "GET / HTTP/1.1\r\nX:1\r\n\r\n".into(),
        ),
        (
            Rule::EmptyHost,
            "GET http://a/ HTTP/1.1\r\nhost: \t\r\n\r\n".into(),
            "GET http://a/ HTTP/1.1\r\n\r\n".into(),
        ),
        (
            Rule::HostWithoutPort,
            "GET / HTTP/1.1\r\nHOST:[::1]:\t\r\n\r\n".into(),
            "GET / HTTP/1.1\r\nHOST: [::1]\r\n\r\n".into(),
        ),
        (Rule::EmptyLines, format!("\r\n\r\nGET / HTTP/1.1\r\n{REST}"), format!("GET / HTTP/1.1\r\n{REST}")),
        (
            Rule::EmptyLines,
            format!("{}GET / HTTP/1.1\r\n{REST}", "\r\n".repeat(8)),
            format!("GET / HTTP/1.1\r\n{REST}"),
        ),
        (
            Rule::RawUtf8Target,
            format!("GET /ä/%c3?€ HTTP/1.1\r\n{REST}"),
            format!("GET /%C3%A4/%c3?%E2%82%AC HTTP/1.1\r\n{REST}"),
        ),
    ];
    for (rule, bytes, repaired) in table {
        assert_eq!(request(&bytes, all(Rule::OF_REQUESTS)), Ok((repaired, vec![rule])), "{bytes:?}");
        let others = Rule::OF_REQUESTS.into_iter().filter(|other| *other != rule).collect();
        let error = RequestHead::new().parse(bytes.as_bytes(), &LIMITS).unwrap_err();
        assert_eq!(request(&bytes, others), Err(error.reason()), "{bytes:?}");
        let would_pass = |rules| RequestHead::would_pass(bytes.as_bytes(), &LIMITS, rules, error);
        assert_eq!((would_pass(Rules::NONE), would_pass(others)), (Some(rule), Some(rule)), "{bytes:?}");
        for length in 0..bytes.len() {
            let (mut head, part) = (RequestHead::new(), &bytes.as_bytes()[..length]);
            if let Err(error) = head.parse(part, &LIMITS) {
                let part = head.repair(part, &LIMITS, all(Rule::OF_REQUESTS), error, &mut Vec::new());
                assert_eq!(part, Ok(None), "{bytes:?} {length}");
            }
        }
    }
    let all_at_once = "\r\n\r\nGET /ä HTTP/1.3\r\nHost: h:\r\n\r\n";
    let repaired = request(all_at_once, all(Rule::OF_REQUESTS)).unwrap();
    assert_eq!((repaired.0.as_str(), repaired.1.len()), ("GET /%C3%A4 HTTP/1.1\r\nHost: h\r\n\r\n", 4));
}

#[test]
fn requests_that_are_refused_still() {
    let nine = format!("{}GET / HTTP/1.1\r\nHost: h\r\n\r\n", "\r\n".repeat(9));
    for (bytes, reason) in [
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", "unsupported_version"),
        ("GET / HTTP/1.10\r\nHost: h\r\n\r\n", "bad_request_line"),
        ("GET / HTTP/0.9\r\nHost: h\r\n\r\n", "unsupported_version"),
        ("GET / HTTP/1.2 \r\nHost: h\r\n\r\n", "unsupported_version"),
        ("GET / HTTP/1.2\r\n\r\n", "missing_host"),
        ("GET / HTTP/1.1\r\nHost:\r\nHost: h\r\n\r\n", "duplicate_host"),
        ("GET / HTTP/1.1\r\nHost: h\r\nHost:\r\n\r\n", "duplicate_host"),
        ("GET / HTTP/1.1\r\nHost:\r\nHost:\r\n\r\n", "duplicate_host"),
        ("GET / HTTP/1.1\r\nHost: :\r\n\r\n", "bad_host"),
        ("GET / HTTP/1.1\r\nHost: h::\r\n\r\n", "bad_host"),
        ("GET / HTTP/1.1\r\nHost: h:80:\r\n\r\n", "bad_host"),
        ("GET / HTTP/1.1\r\nHost: u@h:\r\n\r\n", "bad_host"),
        (&nine, "bad_method"),
        ("\r\n \r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "bad_method"),
        ("\r\n\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "bare_lf"),
        ("GÄT / HTTP/1.1\r\nHost: h\r\n\r\n", "bad_method"),
        ("GET /ä b HTTP/1.1\r\nHost: h\r\n\r\n", "bad_version"),
        ("GET /ä#b HTTP/1.1\r\nHost: h\r\n\r\n", "bad_target_character"),
        ("GET http://ä/ HTTP/1.1\r\nHost: h\r\n\r\n", "bad_target_form"),
        ("GET / HTTP/1.1ä\r\nHost: h\r\n\r\n", "bad_request_line"),
        ("GET / HTTP/1.2\nHost: h\r\n\r\n", "unsupported_version"),
        ("GET / HTTP/1.2\r\nHost: h\n\r\n", "bare_lf"),
        ("GET / HTTP/1.2\r\nHost: h\r\nX: 1\r\n 2\r\n\r\n", "obs_fold"),
        ("GET / HTTP/1.2\r\nHost: h\r\nX : 1\r\n\r\n", "whitespace_before_colon"),
        (
            "GET / HTTP/1.2\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "repeated_chunked",
        ),
        (
            "GET / HTTP/1.2\r\nHost: h\r\nConnection: close, Content-Length\r\nContent-Length: 1\r\n\r\n",
            "connection_names_relied_on_field",
        ),
        (
            "GET / HTTP/1.2\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "differing_content_length",
        ),
    ] {
        let every = Rule::OF_REQUESTS.into_iter().chain(Rule::OF_RESPONSES).collect();
        assert_eq!(request(bytes, every).map(|repaired| repaired.0), Err(reason), "{bytes:?}");
        let error = RequestHead::new().parse(bytes.as_bytes(), &LIMITS).unwrap_err();
        assert_eq!(RequestHead::would_pass(bytes.as_bytes(), &LIMITS, Rules::NONE, error), None, "{bytes:?}");
    }
    for byte in [b"\xff".as_slice(), b"\xc0\xaf", b"\xed\xa0\x80", b"\xc3"] {
        let bytes = [b"GET /", byte, b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
        let (mut head, error) = (RequestHead::new(), RequestError::BadTargetCharacter);
        assert_eq!(head.parse(&bytes, &LIMITS), Err(error), "{byte:?}");
        let repaired = head.repair(&bytes, &LIMITS, all(Rule::OF_REQUESTS), error, &mut Vec::new());
        assert_eq!(repaired, Err(error), "{byte:?}");
    }
}

#[test]
fn what_grows_is_held_to_the_limits() {
    let line = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "ä".repeat(100));
    assert_eq!(request(&line, all(Rule::OF_REQUESTS)), Err("request_line_too_long"));
    for (bytes, reason) in [
        (format!("\r\n\r\n{}", "a".repeat(512)), "request_line_too_long"),
        (format!("GET / HTTP/1.2\r\nHost: h\r\nX: {}", "a".repeat(509)), "field_line_too_long"),
        (format!("GET / HTTP/1.2\r\nHost: h\r\n{}", "X: 1\r\n".repeat(400)), "too_many_fields"),
    ] {
        assert_eq!(request(&bytes, all(Rule::OF_REQUESTS)).map(|repaired| repaired.0), Err(reason));
    }
    let fields = format!("X: {}\r\n", "a".repeat(300)).repeat(7);
    let bytes = format!("GET / HTTP/1.2\r\nHost: h\r\n{fields}\r\n");
    assert_eq!(request(&bytes, all(Rule::OF_REQUESTS)).map(|repaired| repaired.0), Err("head_too_long"));
    let folds = format!("HTTP/1.1 200 OK\r\nX: 1\r\n{}", " aaaaaaaaaaaaaaa\r\n".repeat(40));
    assert_eq!(
        response(&folds, all(Rule::OF_RESPONSES)).map(|repaired| repaired.0),
        Err("field_line_too_long")
    );
}

#[test]
fn responses_are_repaired_by_their_rule_alone() {
    let table = [
        (Rule::BareLf, "HTTP/1.1 200 OK\nContent-Length: 2\nX: 1\r\n\n", "Content-Length: 2\r\nX: 1\r\n"),
        (Rule::BareLf, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\n", "Content-Length: 2\r\n"),
        (
            Rule::ObsFold,
            "HTTP/1.1 200 OK\r\nX: 1\r\n \t2 \r\n\t3\r\nContent-Length: 2\r\n\r\n",
            "X: 1 2 3\r\nContent-Length: 2\r\n",
        ),
        (
            Rule::ObsFold,
            "HTTP/1.1 200 OK\r\nX:\r\n Content-Length: 5\r\nContent-Length: 2\r\n\r\n",
            "X: Content-Length: 5\r\nContent-Length: 2\r\n",
        ),
        (
            Rule::SpaceBeforeColon,
            "HTTP/1.1 200 OK\r\nX \t : 1\r\nContent-Length : 2\r\n\r\n",
            "X: 1\r\nContent-Length: 2\r\n",
        ),
        (
            Rule::ConnectionNamesFraming,
            "HTTP/1.1 200 OK\r\nConnection: close, content-length, X-A,Transfer-Encoding\r\nContent-Length: 2\r\n\r\n",
            "Connection: close, X-A\r\nContent-Length: 2\r\n",
        ),
        (
            Rule::ConnectionNamesFraming,
            "HTTP/1.1 200 OK\r\nConnection: Transfer-Encoding\r\nContent-Length: 2\r\n\r\n",
            "Content-Length: 2\r\n",
        ),
    ];
    for (rule, bytes, fields) in table {
        let repaired = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        expect_response(rule, bytes, &repaired, Framing::Length(2));
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for fields in [
        "Transfer-Encoding: chunked\r\ntransfer-encoding: Chunked\r\n",
        "Transfer-Encoding: chunked, , chunked\r\n",
    ] {
        expect_response(
            Rule::ChunkedTwice,
            &format!("HTTP/1.1 200 OK\r\n{fields}\r\n"),
            chunked,
            Framing::Chunked,
        );
    }
}

fn expect_response(rule: Rule, bytes: &str, repaired: &str, framing: Framing) {
    let result = response(bytes, all(Rule::OF_RESPONSES));
    assert_eq!(result, Ok((repaired.to_owned(), vec![rule], framing)), "{bytes:?}");
    let others = Rule::OF_RESPONSES.into_iter().filter(|other| *other != rule).collect();
    let error = ResponseHead::new().parse(bytes.as_bytes(), &LIMITS).unwrap_err();
    assert_eq!(response(bytes, others), Err(error.reason()), "{bytes:?}");
    let would_pass = |rules| ResponseHead::would_pass(bytes.as_bytes(), &LIMITS, rules, error);
    assert_eq!((would_pass(Rules::NONE), would_pass(others)), (Some(rule), Some(rule)), "{bytes:?}");
    for length in 0..bytes.len() {
        let (mut head, part) = (ResponseHead::new(), &bytes.as_bytes()[..length]);
        if let Err(error) = head.parse(part, &LIMITS) {
            let part = head.repair(part, &LIMITS, all(Rule::OF_RESPONSES), error, &mut Vec::new());
            assert_eq!(part, Ok(None), "{bytes:?} {length}");
        }
    }
}

#[test]
fn responses_that_are_refused_still() {
    for (fields, reason) in [
        ("Content-Length: 2\nContent-Length: 3\n", "differing_content_length"),
        ("Content-Length: 2\nTransfer-Encoding: chunked\n", "content_length_and_transfer_encoding"),
        ("Content-Length : 2\r\nContent-Length: 3\r\n", "differing_content_length"),
        ("X: 1\r\r\nContent-Length: 2\n", "bare_cr"),
        ("X: 1\rContent-Length: 2\n", "bare_cr"),
        ("X: \0\n", "control_character"),
        ("Transfer-Encoding: chunked\r\n , identity\r\n", "obs_fold"),
        ("Transfer-Encoding:\r\n chunked\r\n", "bad_transfer_encoding"),
        ("Content-Length: 1\r\n 2\r\n", "obs_fold"),
        ("Connection: close\r\n , X\r\n", "obs_fold"),
        (" X: 1\r\n", "obs_fold"),
        ("X: 1\r\n \r\nContent-Length: 2\r\n", "obs_fold"),
        ("X: 1\r\n \t\n\n", "obs_fold"),
        ("X\r\n 1: 2\r\n", "missing_colon"),
        ("X y: 1\n", "whitespace_before_colon"),
        (" : 1\n", "obs_fold"),
        ("Transfer-Encoding: chunked, identity\n", "chunked_not_final"),
        ("Transfer-Encoding: identity, chunked\n", "unknown_transfer_coding"),
        ("Transfer-Encoding: chunked, chunked, chunked\n", "repeated_chunked"),
        ("Transfer-Encoding: chunked, chunked\nTransfer-Encoding: chunked\n", "repeated_chunked"),
        ("Transfer-Encoding: chunked, chunked\nTransfer-Encoding: gzip\n", "chunked_not_final"),
        ("Transfer-Encoding: chunked, gzip, chunked\n", "chunked_not_final"),
        ("Transfer-Encoding: chunked, chunked\nTransfer-Encoding:\n", "bad_transfer_encoding"),
        ("Transfer-Encoding: chunked, chunked\nContent-Length: 2\n", "content_length_and_transfer_encoding"),
        ("Connection: Host\nContent-Length: 2\n", "connection_names_relied_on_field"),
        ("Connection: Content-Length, a b\nContent-Length: 2\n", "bad_connection_option"),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let repaired = response(&bytes, all(Rule::OF_RESPONSES));
        assert_eq!(repaired.map(|repaired| repaired.0), Err(reason), "{bytes:?}");
    }
    // A violation that no rule concerns is reported before the head is complete.
    for bytes in ["<html>", "HTTP/1.1 200 OK\r\nX\0"] {
        assert!(
            response(bytes, all(Rule::OF_RESPONSES)).is_err_and(|reason| reason != "not complete"),
            "{bytes}"
        );
    }
    assert!(request("\u{1}", all(Rule::OF_REQUESTS)).is_err_and(|reason| reason == "bad_method"));
    // A fold must not continue a rejected line.
    let bytes = "HTTP/1.1 200 OK\r\nX: 1\r\nY: 2\n 3\r\n\r\n";
    assert_eq!(response(bytes, Rules::NONE.with(Rule::ObsFold)), Err("bare_lf"));
}
