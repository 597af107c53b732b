//! The null server: every read that brings bytes is answered with the same bytes, made once. What it costs is the system
//! calls and TLS, so that what is measured against it is the client.
//!
//! It reads no request. So a request must come in one piece and be small, without a second one behind it, as the load
//! engine sends them; it never ends a connection itself.

use crate::desk::{Desk, Needs};
use crate::pattern;
use weir_transport::{Fault, Transport};

/// An answer of 200 with `length` bytes of the known pattern.
pub(crate) fn answer(length: u64) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    let mut at = 0;
    while at < length {
        let piece = pattern::from(at, length - at);
        answer.extend_from_slice(piece);
        at += piece.len() as u64;
    }
    answer
}

/// Answers what has come.
pub(crate) fn visit(
    transport: &mut Transport,
    answer: &[u8],
    (readable, writable): (bool, bool),
    desk: &mut Desk,
) -> Result<Needs, Fault> {
    if writable && transport.pending() > 0 {
        transport.advance(&mut desk.wire)?;
    }
    if !readable {
        return Ok(Needs::default());
    }
    desk.input.clear();
    let received = transport.receive(&mut desk.wire, &mut desk.input)?;
    if received.handshake_finished
        && let Some(facts) = transport.facts()
    {
        desk.count().handshake(facts);
    }
    if received.bytes > 0 {
        desk.count().requests.add(1);
        transport.send(answer, &mut desk.wire)?;
        desk.count().answers.add(1);
    }
    Ok(Needs { end: received.end.is_some(), ..Needs::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_its_length_and_the_pattern() {
        for length in [0, 1, 1024, 200_000] {
            let bytes = answer(length);
            let body = bytes.len() - length as usize;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            assert_eq!(&bytes[..body], head.as_bytes());
            let right = |(at, byte): (usize, &u8)| *byte == pattern::from(at as u64, 1)[0];
            assert!(bytes[body..].iter().enumerate().all(right));
        }
    }
}
