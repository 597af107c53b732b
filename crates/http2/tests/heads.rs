//! Fields that form a valid head or trailer section, and the error for each invalid combination.

use crate::hpack::REQUEST;
use weir_http::{FieldName, Method, Span};
use weir_http2::hpack::Decoder;
use weir_http2::{Head, HeadError, Limits, Scheme, Section};

/// A field block of literals, from lines of the form `name: value`.
pub(crate) fn block(lines: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for line in lines.lines() {
        let colon = 1 + line[1..].find(':').unwrap();
        let (name, value) = (&line[..colon], line[colon + 1..].strip_prefix(' ').unwrap_or_default());
        block.push(0);
        for text in [name, value] {
            assert!(text.len() < 127);
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn decode(section: Section, lines: &str) -> Result<Head, HeadError> {
    let mut head = Head::new();
    let decoded = Decoder::new(4096).decode(&block(lines), section, &Limits::default(), &mut head);
    decoded.unwrap().map(|()| head)
}

fn text(span: Span, head: &Head) -> String {
    String::from_utf8_lossy(span.of(&head.bytes)).into_owned()
}

fn fields(head: &Head) -> Vec<String> {
    head.fields.iter().map(|field| text(field.line, head).trim_end().to_owned()).collect()
}

const GET: &str = ":method: GET\n:scheme: https\n:path: /a?b\n:authority: example.com\n";

#[test]
fn a_request_is_taken_apart() {
    let lines = format!("{GET}x_a: b\nempty:\ncontent-length: 5\nte: trailers\nexpect: 100-continue\n");
    let head = decode(REQUEST, &lines).unwrap();
    assert_eq!((head.method, head.scheme), (Method::Get, Some(Scheme::Https)));
    assert_eq!(text(head.method_span, &head), "GET");
    assert_eq!(text(head.path, &head), "/a?b");
    assert_eq!(text(head.host.unwrap(), &head), "example.com");
    assert_eq!(head.content_length, Some(5));
    assert!(head.accepts_trailers && head.expect_continue && head.protocol.is_none());
    assert_eq!(
        fields(&head),
        ["x_a: b", "empty:", "content-length: 5", "te: trailers", "expect: 100-continue"]
    );
    assert!(head.fields[0].underscore && !head.fields[0].hop_by_hop);
    assert_eq!(text(head.fields[1].name, &head), "empty");
    assert!(head.fields[1].value.is_empty());
    assert_eq!(head.fields[3].known, FieldName::Te);
    assert!(head.fields[3].hop_by_hop);
    // The lines are contiguous, so that a writer can copy them in one run.
    assert!(head.fields.windows(2).all(|pair| pair[0].line.end == pair[1].line.start));
}

#[test]
fn a_response_is_taken_apart() {
    let head = decode(Section::Response, ":status: 204\nserver: a\n").unwrap();
    assert_eq!((head.status, fields(&head)), (204, vec!["server: a".to_owned()]));
}

#[test]
fn requests_are_accepted() {
    for lines in [
        ":method: OPTIONS\n:scheme: http\n:path: *\n:authority: a\n",
        ":method: OPTIONS\n:scheme: http\n:path: /\nhost: a\n",
        ":authority: A:80\n:path: /\n:scheme: http\n:method: PROPFIND\nhost: a:80\n",
        ":method: CONNECT\n:authority: a:443\n",
        ":method: GET\n:scheme: http\n:path: /\n:authority: a\ncontent-length: 5, 5\ncontent-length: 5\n",
    ] {
        assert!(decode(REQUEST, lines).is_ok(), "{lines}");
    }
}

#[test]
fn requests_are_rejected() {
    use HeadError::*;
    let get = |lines: &str| format!("{GET}{lines}\n");
    for (lines, error) in [
        (String::new(), PseudoFields),
        (":method: GET\n".into(), PseudoFields),
        (":method: GET\n:scheme: http\n:path: /\n".into(), MissingAuthority),
        (":method: GET\n:scheme: http\n:authority: a\n".into(), PseudoFields),
        (":method: GET\n:scheme: http\n:authority: a\n:path:\n".into(), BadPath),
        (":method: GET\n:scheme: http\n:authority: a\n:path: *\n".into(), BadPath),
        (":scheme: http\n:authority: a\n:path: /\n".into(), PseudoFields),
        (":method: GET\n:authority: a\n:path: /\n".into(), PseudoFields),
        (":method: CONNECT\n:authority: a\n".into(), BadAuthority),
        (":method: CONNECT\n:authority: a:443\n:scheme: http\n:path: /\n".into(), PseudoFields),
        (":method: CONNECT\nhost: a:443\n".into(), PseudoFields),
        (get(":path: /"), DuplicatePseudo),
        (format!("x: y\n{GET}"), LatePseudo),
        (format!("cookie: y\n{GET}"), LatePseudo),
        (get(":status: 200"), UnknownPseudo),
        (get(":protocol: websocket"), BadProtocol),
        (get(":x: y"), UnknownPseudo),
        (get("X: y"), BadFieldName),
        (get("x y: z"), BadFieldName),
        (get("x: y\rz"), BadFieldValue),
        (get("x: y "), BadFieldValue),
        (get("connection: close"), ConnectionField),
        (get("transfer-encoding: chunked"), ConnectionField),
        (get("te: gzip"), BadTe),
        (get("host: example.org"), DifferingHost),
        (get("host: example.com\nhost: example.com"), DuplicateHost),
        (get("content-length: +5"), BadContentLength),
        (get("content-length:"), BadContentLength),
        (get("content-length: 18446744073709551616"), BadContentLength),
        (get("content-length: 5\ncontent-length: 6"), DifferingContentLength),
    ] {
        assert_eq!(decode(REQUEST, &lines), Err(error), "{lines}");
    }
}

/// RFC 8441, section 4: extended CONNECT requires all pseudo-fields and our setting.
#[test]
fn extended_connect() {
    let lines = ":method: CONNECT\n:protocol: websocket\n:scheme: https\n:path: /chat\n:authority: a\n";
    let enabled = Section::Request { extended_connect: true };
    let head = decode(enabled, lines).unwrap();
    assert_eq!(text(head.protocol.unwrap(), &head), "websocket");
    assert_eq!(decode(REQUEST, lines), Err(HeadError::BadProtocol));
    assert_eq!(decode(enabled, &lines.replace("CONNECT", "GET")), Err(HeadError::BadProtocol));
    assert_eq!(decode(enabled, &lines.replace(":path: /chat\n", "")), Err(HeadError::PseudoFields));
}

#[test]
fn responses_and_trailers_are_rejected() {
    use HeadError::*;
    for (section, lines, error) in [
        (Section::Response, "server: a\n", PseudoFields),
        (Section::Response, ":status: 101\n", BadStatus),
        (Section::Response, ":status: 200\n:status: 200\n", DuplicatePseudo),
        (Section::Response, ":status: 200\n:path: /\n", UnknownPseudo),
        (Section::Response, ":status: 200\nupgrade: h2c\n", ConnectionField),
        (Section::Trailers, ":status: 200\n", UnknownPseudo),
        (Section::Trailers, "a: b\nConnection: c\n", BadFieldName),
        (Section::Trailers, "connection: c\n", ConnectionField),
    ] {
        assert_eq!(decode(section, lines), Err(error), "{lines}");
    }
}

/// All cookie crumbs become one field (RFC 9113, section 8.2.3).
#[test]
fn cookie_crumbs_are_joined() {
    for (lines, expected) in [
        ("cookie: a=1\n", vec!["cookie: a=1"]),
        ("cookie: a=1\ncookie: b=2\n", vec!["cookie: a=1; b=2"]),
        (
            "x: y\ncookie: a=1\nz: z\ncookie: b=2\ncookie: c=3\nv: w\n",
            vec!["x: y", "cookie: a=1; b=2; c=3", "z: z", "v: w"],
        ),
        // Regression test: the joined value was `; ; `, which servers reject for its trailing space.
        ("cookie:\n", vec!["cookie:"]),
        ("cookie:\ncookie:\ncookie:\n", vec!["cookie:"]),
        ("cookie:\ncookie: a=1\n", vec!["cookie: a=1"]),
        ("cookie: a=1\ncookie:\n", vec!["cookie: a=1"]),
        ("cookie: a=1\ncookie:\nx: y\ncookie: b=2\ncookie:\n", vec!["cookie: a=1; b=2", "x: y"]),
    ] {
        let head = decode(REQUEST, &format!("{GET}{lines}")).unwrap();
        assert_eq!(fields(&head), expected);
        for field in &head.fields {
            let (name, value) = (text(field.name, &head), text(field.value, &head));
            let space = if value.is_empty() { "" } else { " " };
            assert_eq!(text(field.line, &head), format!("{name}:{space}{value}\r\n"));
        }
    }
}

#[test]
fn limits() {
    let limits = Limits { head_bytes: 200, fields: 5 };
    let decode = |lines: &str| {
        let mut head = Head::new();
        Decoder::new(0).decode(&block(lines), Section::Trailers, &limits, &mut head).unwrap()
    };
    let value = |length: usize| format!("a: {}\n", "x".repeat(length));
    assert_eq!(decode(&"a: b\n".repeat(5)), Ok(()));
    assert_eq!(decode(&"cookie: b\n".repeat(6)), Err(HeadError::TooManyFields));
    assert_eq!(decode(&[value(33), value(101)].concat()), Ok(()));
    assert_eq!(decode(&[value(33), value(102)].concat()), Err(HeadError::HeadTooLong));
}

/// The table stores a malformed field with its verdict, so each reference to it is rejected, too. The name alone may be
/// valid.
#[test]
fn the_table_keeps_the_verdict() {
    let mut decoder = Decoder::new(4096);
    let mut head = Head::new();
    let mut decode =
        |block: &[u8]| decoder.decode(block, Section::Trailers, &Limits::default(), &mut head).unwrap();
    assert_eq!(decode(b"\x40\x01a\x01\n"), Err(HeadError::BadFieldValue));
    assert_eq!(decode(b"\xbe"), Err(HeadError::BadFieldValue));
    assert_eq!(decode(b"\x7e\x01b"), Ok(()));
    assert_eq!(decode(b"\x40\x01A\x01b"), Err(HeadError::BadFieldName));
    assert_eq!(decode(b"\x7e\x01b"), Err(HeadError::BadFieldName));
    assert_eq!(decode(b"\xc0"), Ok(()));
}
