//! Server responses, message by message: valid ones are parsed correctly, malformed ones are rejected
//! by name, and nothing panics.

use crate::invariants;
use proptest::collection::vec;
use proptest::prelude::*;
use weir_probe::{Answer, AnswerError, Flight, MAX_ANSWER, Ticket12, Until};

const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16).to_be_bytes();
    [&[kind, 3, 3], &length[..], body].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32).to_be_bytes()[1..], body].concat()
}

fn hello(version: [u8; 2], random: [u8; 32], suite: [u8; 2], extensions: &[u8]) -> Vec<u8> {
    let length = (extensions.len() as u16).to_be_bytes();
    let id = [&[4][..], &[1; 4]].concat();
    message(2, &[&version[..], &random, &id, &suite, &[0], &length, extensions].concat())
}

fn hello_12(suite: [u8; 2]) -> Vec<u8> {
    hello([3, 3], [5; 32], suite, &[0xff, 1, 0, 1, 0])
}

/// A chain of two certificates of 3 and 1 bytes.
fn chain() -> Vec<u8> {
    message(11, &[0, 0, 10, 0, 0, 3, 7, 8, 9, 0, 0, 1, 6])
}

fn read(messages: &[Vec<u8>], until: Until) -> Result<Option<Answer>, AnswerError> {
    Answer::read(&record(22, &messages.concat()), until)
}

fn flight(messages: &[Vec<u8>], until: Until) -> Flight {
    match read(messages, until) {
        Ok(Some(Answer::Flight(flight))) => flight,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flight_of_tls_1_2() {
    let ecdhe = message(12, &[3, 0, 0x1d, 2, 9, 9, 8, 4, 0, 1, 5]);
    let messages = [hello_12([0xc0, 0x2f]), chain(), message(22, &[1, 0, 0, 0]), ecdhe, message(13, &[0])];
    let all = [&messages[..], &[message(14, &[])]].concat();
    let expected = Flight {
        version: 0x0303,
        suite: 0xc02f,
        session_id: 4,
        group: Some(0x1d),
        scheme: Some(0x0804),
        chain: vec![vec![7, 8, 9], vec![6]],
        stapled: true,
        asks_certificate: true,
        ..Flight::default()
    };
    assert_eq!(flight(&all, Until::HelloDone), expected);
    assert_eq!(read(&messages, Until::HelloDone), Ok(None));
    // One record for each message, and one for each byte.
    for size in [1, 7, 40] {
        let records = all.concat().chunks(size).map(|piece| record(22, piece)).collect::<Vec<_>>().concat();
        assert_eq!(Answer::read(&records, Until::HelloDone), Ok(Some(Answer::Flight(expected.clone()))));
    }
    let hello = flight(&messages, Until::Hello);
    assert_eq!((hello.suite, hello.chain.len()), (0xc02f, 0));
}

#[test]
fn a_finite_field_is_reported_by_its_bits() {
    for (prime, bits) in [(&[0, 0x80, 0][..], 16), (&[1, 0], 9), (&[0], 0), (&[], 0)] {
        let length = (prime.len() as u16).to_be_bytes();
        let dhe = [&length[..], prime, &[0, 1, 2], &[0, 1, 3], &[4, 1, 0, 0]].concat();
        let messages = [hello_12([0, 0x9e]), message(12, &dhe), message(14, &[])];
        let flight = flight(&messages, Until::HelloDone);
        assert_eq!((flight.prime_bits, flight.scheme), (Some(bits), Some(0x0401)));
    }
}

#[test]
fn before_tls_1_2_no_scheme_is_named() {
    let ecdhe = message(12, &[3, 0, 0x17, 1, 9, 0, 1, 5]);
    let hello = hello([3, 1], [5; 32], [0xc0, 0x13], &[]);
    let flight = flight(&[hello, ecdhe, message(14, &[])], Until::HelloDone);
    assert_eq!((flight.version, flight.group, flight.scheme), (0x0301, Some(0x17), None));
}

#[test]
fn a_hello_retry_request_names_suite_and_group() {
    let extensions = [0, 43, 0, 2, 3, 4, 0, 51, 0, 2, 0, 0x1d];
    for until in [Until::Hello, Until::HelloDone, Until::Encrypted] {
        let flight = flight(&[hello([3, 3], RETRY, [0x13, 1], &extensions)], until);
        assert!(flight.retry);
        assert_eq!((flight.version, flight.suite, flight.group), (0x0304, 0x1301, Some(0x1d)));
    }
}

#[test]
fn a_ticket_comes_before_the_encryption() {
    let ticket = message(4, &[0, 0, 0x1c, 0x20, 0, 2, 1, 2]);
    let clear = record(22, &[hello_12([0xc0, 0x2f]), ticket].concat());
    assert_eq!(Answer::read(&clear, Until::Encrypted), Ok(None));
    // The rest, after the ChangeCipherSpec, is encrypted.
    let stream = [clear, record(20, &[1]), record(22, &[2, 9, 9, 9, 9])].concat();
    let Ok(Some(Answer::Flight(flight))) = Answer::read(&stream, Until::Encrypted) else { panic!() };
    assert_eq!(flight.ticket, Some(Ticket12 { lifetime_s: 7200, bytes: 2 }));
}

#[test]
fn an_alert_ends_it_and_a_warning_does_not() {
    assert_eq!(Answer::read(&record(21, &[2, 40]), Until::Hello), Ok(Some(Answer::Alert(40))));
    assert_eq!(Answer::read(&record(21, &[1, 0]), Until::Hello), Ok(Some(Answer::Alert(0))));
    let unrecognized_name = record(21, &[1, 112]);
    assert_eq!(Answer::read(&unrecognized_name, Until::Hello), Ok(None));
    let warned = [unrecognized_name, record(22, &hello_12([0xc0, 0x2f]))].concat();
    assert!(matches!(Answer::read(&warned, Until::Hello), Ok(Some(Answer::Flight(_)))));
}

#[test]
fn other_protocols_are_distinguished_from_truncated_tls() {
    for (bytes, expected) in [
        (&b""[..], Ok(None)),
        (&[22], Ok(None)),
        (&[22, 3], Ok(None)),
        (&[22, 3, 3, 0, 1], Ok(None)),
        (b"HTTP/1.1 400 Bad Request\r\n", Err(AnswerError::NotTls { http: true })),
        (b"<html>", Err(AnswerError::NotTls { http: true })),
        (b"SSH-2.0-x", Err(AnswerError::NotTls { http: false })),
        (b"220 mail", Err(AnswerError::NotTls { http: false })),
        (&[22, 2, 0], Err(AnswerError::NotTls { http: false })),
    ] {
        assert_eq!(Answer::read(bytes, Until::Hello), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn what_is_malformed_is_refused_by_name() {
    let hello_12 = || hello_12([0xc0, 0x2f]);
    for (messages, expected) in [
        (vec![message(2, &[3, 3])], AnswerError::Malformed("ServerHello")),
        (vec![hello([3, 3], [0; 32], [0, 0], &[0, 43, 0, 9])], AnswerError::Malformed("ServerHello")),
        (vec![chain()], AnswerError::OutOfPlace(11)),
        (vec![hello_12(), hello_12()], AnswerError::OutOfPlace(2)),
        (vec![hello_12(), message(11, &[0, 0, 9, 0])], AnswerError::Malformed("Certificate")),
        (vec![hello_12(), message(12, &[3, 0])], AnswerError::Malformed("ServerKeyExchange")),
        (vec![hello_12(), message(4, &[0])], AnswerError::Malformed("NewSessionTicket")),
    ] {
        assert_eq!(read(&messages, Until::HelloDone), Err(expected), "{messages:?}");
    }
    assert_eq!(Answer::read(&[22, 3, 3, 0xff, 0xff], Until::Hello), Err(AnswerError::Malformed("record")));
    assert_eq!(Answer::read(&record(20, &[1]), Until::Hello), Err(AnswerError::OutOfPlace(20)));
    assert_eq!(Answer::read(&record(23, &[1]), Until::Hello), Err(AnswerError::OutOfPlace(23)));
}

#[test]
fn an_answer_without_end_is_given_up() {
    let endless = record(22, &[&[2, 0xff, 0xff, 0xff][..], &[0; 16000]].concat());
    let much = endless.repeat(MAX_ANSWER / endless.len() + 1);
    assert_eq!(Answer::read(&much, Until::Hello), Err(AnswerError::TooLong));
    let silence = record(22, &[]).repeat(MAX_ANSWER / 5 + 1);
    assert_eq!(Answer::read(&silence, Until::Hello), Err(AnswerError::TooLong));
}

proptest! {
    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..600)) {
        invariants::answer(&bytes);
        invariants::certificate(&bytes);
    }

    /// Bytes that look plausible, so that parsing gets further.
    #[test]
    fn any_messages(
        until in 0_u8..3,
        suite in prop::sample::select(vec![[0xc0_u8, 0x2f], [0, 0x9e], [0, 0x34], [0, 0x9c], [0x13, 1]]),
        bodies in vec(
            (prop::sample::select(vec![2_u8, 4, 11, 12, 13, 14, 20, 22]), vec(any::<u8>(), 0..60)),
            0..8,
        ),
        cut in 1_usize..200,
    ) {
        let mut messages = hello_12(suite);
        bodies.iter().for_each(|(kind, body)| messages.extend(message(*kind, body)));
        let mut stream = vec![until];
        messages.chunks(cut).for_each(|piece| stream.extend(record(22, piece)));
        stream.extend(record(20, &[1]));
        invariants::answer(&stream);
    }

    /// A valid flight with one byte changed.
    #[test]
    fn a_flipped_byte(until in 0_u8..3, at in 0_usize..1000, value: u8) {
        let ecdhe = message(12, &[3, 0, 0x1d, 2, 9, 9, 8, 4, 0, 1, 5]);
        let messages = [hello_12([0xc0, 0x2f]), chain(), ecdhe, message(14, &[])].concat();
        let mut stream = [vec![until], record(22, &messages)].concat();
        let length = stream.len();
        stream[at % length] = value;
        invariants::answer(&stream);
    }
}
