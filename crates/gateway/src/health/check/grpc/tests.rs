use super::*;
use weir_http2::hpack::{Decoder, Encoder};
use weir_http2::{Limits, Section};

/// A decoded section of a response.
fn section(section: Section, status: Option<u16>, fields: &[(&str, &str)]) -> Head {
    let mut block = Vec::new();
    let mut encoder = Encoder::new(&mut block);
    if let Some(status) = status {
        encoder.status(status);
    }
    for (name, value) in fields {
        encoder.field(name.as_bytes(), value.as_bytes());
    }
    let mut head = Head::new();
    Decoder::new(4096).decode(&block, section, &Limits::default(), &mut head).unwrap().unwrap();
    head
}

fn head(status: u16, fields: &[(&str, &str)]) -> Head {
    section(Section::Response, Some(status), fields)
}

fn trailers(fields: &[(&str, &str)]) -> Head {
    section(Section::Trailers, None, fields)
}

/// The verdict on a body with these trailers.
fn verdict(body: &[u8], fields: &[(&str, &str)]) -> Verdict {
    let mut response = Response::default();
    assert_eq!(response.head(&head(200, &[("content-type", CONTENT_TYPE)]), false), None);
    // The body arrives in pieces of one byte.
    for byte in body {
        assert_eq!(response.data(&[*byte], false), None);
    }
    response.trailers(&trailers(fields))
}

fn body(message: &[u8]) -> Vec<u8> {
    [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
}

const OK: &[(&str, &str)] = &[("grpc-status", "0")];

#[test]
fn a_request_is_one_message_with_the_name() {
    assert_eq!(request(""), [0; 5]);
    assert_eq!(request("a.B"), [&[0, 0, 0, 0, 5, 0x0a, 3][..], b"a.B"].concat());
    let long = "x".repeat(300);
    // 300 = 0b10_0101100.
    assert_eq!(request(&long), [&[0, 0, 0, 1, 47, 0x0a, 0xac, 2][..], long.as_bytes()].concat());
}

#[test]
fn a_serving_server_is_healthy() {
    let long = [&[0x08, 1, 0x12, 200, 1][..], &[7; 200]].concat();
    for message in [
        &[0x08, 1][..],
        // The longest encoding of 1.
        &[0x08, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
        // If a field occurs twice, the last value counts.
        &[0x08, 2, 0x08, 1],
        // Unknown fields of every type, and field 1 of another type.
        &[0x10, 9, 0x08, 1, 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4, 0x0a, 2, 0x08, 2],
        &long,
    ] {
        assert_eq!(verdict(&body(message), OK), Ok(()), "{message:?}");
    }
}

#[test]
fn another_message_is_named() {
    let body_of = |message: &[u8]| body(message);
    let mut compressed = body(&[0x08, 1]);
    compressed[0] = 1;
    let malformed = "a malformed response message";
    for (body, expected) in [
        (body_of(&[]), "status UNKNOWN"),
        (body_of(&[0x08, 0]), "status UNKNOWN"),
        (body_of(&[0x08, 2]), "status NOT_SERVING"),
        (body_of(&[0x08, 1, 0x08, 2]), "status NOT_SERVING"),
        (body_of(&[0x08, 3]), "status SERVICE_UNKNOWN"),
        (body_of(&[0x08, 4]), "status 4"),
        (body_of(&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), "status 18446744073709551615"),
        (body_of(&[0x08]), malformed),
        (body_of(&[0x08, 0x81]), malformed),
        (body_of(&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]), malformed),
        (body_of(&[0x08, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0]), malformed),
        (body_of(&[0x00, 1]), malformed),
        (body_of(&[0x0b]), malformed),
        (body_of(&[0x12, 5, 1]), malformed),
        (body_of(&[0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), malformed),
        (body_of(&[0x19, 1]), malformed),
        (body_of(&[0x25, 1, 2, 3]), malformed),
        (Vec::new(), "no response message"),
        (vec![0, 0, 0], "a truncated response message"),
        (vec![0, 0, 0, 0, 2, 0x08], "a truncated response message"),
        (vec![0, 255, 255, 255, 255, 0x08, 1], "a truncated response message"),
        ([body_of(&[0x08, 1]), body_of(&[0x08, 1])].concat(), "more than one response message"),
        (compressed, "a compressed response message"),
    ] {
        assert_eq!(verdict(&body, OK), Err(expected.to_owned()), "{body:?}");
    }
}

#[test]
fn another_grpc_status_is_named() {
    let serving = body(&[0x08, 1]);
    for (value, expected) in [
        ("5", "grpc-status 5 NOT_FOUND"),
        ("12", "grpc-status 12 UNIMPLEMENTED"),
        ("16", "grpc-status 16 UNAUTHENTICATED"),
        ("17", "grpc-status 17 (unknown)"),
        ("x", "invalid grpc-status `x`"),
        ("-1", "invalid grpc-status `-1`"),
        ("4294967296", "invalid grpc-status `4294967296`"),
        ("\u{9b}2J", "invalid grpc-status `\\xc2\\x9b2J`"),
    ] {
        assert_eq!(verdict(&serving, &[("grpc-status", value)]), Err(expected.to_owned()));
        // A response without a message has its status in the head.
        let fields = [("content-type", "application/grpc"), ("grpc-status", value)];
        assert_eq!(Response::default().head(&head(200, &fields), true), Some(Err(expected.to_owned())));
    }
    let without = Err("a response without grpc-status".to_owned());
    assert_eq!(verdict(&serving, &[("x", "0")]), without);
    assert_eq!(Response::default().data(&serving, true), Some(without));
}

#[test]
fn what_is_not_grpc_is_named() {
    for (status, fields, end, expected) in [
        (200, &[("content-type", "application/grpc+proto")][..], false, None),
        (200, &[("content-type", "application/grpc;a=b")], false, None),
        (404, &[("content-type", "application/grpc")], false, Some("HTTP status 404")),
        (503, &[], true, Some("HTTP status 503")),
        (200, &[], true, Some("no content-type: expected application/grpc")),
        (
            200,
            &[("content-type", "text/html")],
            false,
            Some("content-type text/html: expected application/grpc"),
        ),
        (
            200,
            &[("content-type", "application/grpc-web")],
            false,
            Some("content-type application/grpc-web: expected application/grpc"),
        ),
        (200, &[("content-type", "application/grpc")], true, Some("a response without grpc-status")),
        (
            200,
            &[("content-type", "application/grpc"), ("grpc-status", "0")],
            true,
            Some("no response message"),
        ),
    ] {
        let found = Response::default().head(&head(status, fields), end);
        assert_eq!(found, expected.map(|expected| Err(expected.to_owned())), "{status} {fields:?}");
    }
}

#[test]
fn a_body_is_bounded() {
    let mut response = Response::default();
    assert_eq!(response.data(&[0; MOST_BYTES], false), None);
    let expected = Some(Err("a response of more than 4096 bytes".to_owned()));
    assert_eq!(response.data(&[0], false), expected);
}
