//! The null server: it responds to every read with the same bytes. It costs only system
//! calls and TLS, so a measurement against it measures the client.
//!
//! It parses no request. So requests must be small, arrive in one piece and not be pipelined, as the load
//! engine sends them. It never closes a connection itself.

use crate::context::{Context, Needs};
use crate::pattern;
use weir_transport::{Fault, Transport};

/// A 200 response with `length` bytes of the known pattern.
pub(crate) fn response(length: u64) -> Vec<u8> {
    let mut response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    let mut at = 0;
    while at < length {
        let piece = pattern::from(at, length - at);
        response.extend_from_slice(piece);
        at += piece.len() as u64;
    }
    response
}

/// Responds to the input.
pub(crate) fn visit(
    transport: &mut Transport,
    response: &[u8],
    (readable, writable): (bool, bool),
    context: &mut Context,
) -> Result<Needs, Fault> {
    if writable && transport.pending() > 0 {
        transport.advance(&mut context.wire)?;
    }
    if !readable {
        return Ok(Needs::default());
    }
    context.input.clear();
    let received = transport.receive(&mut context.wire, &mut context.input)?;
    if received.handshake_finished
        && let Some(facts) = transport.facts()
    {
        context.count().handshake(facts);
    }
    if received.bytes > 0 {
        context.count().requests.add(1);
        transport.send(response, &mut context.wire)?;
        context.count().answers.add(1);
    }
    Ok(Needs { end: received.end.is_some(), ..Needs::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_its_length_and_the_pattern() {
        for length in [0, 1, 1024, 200_000] {
            let bytes = response(length);
            let body = bytes.len() - length as usize;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            assert_eq!(&bytes[..body], head.as_bytes());
            let right = |(at, byte): (usize, &u8)| *byte == pattern::from(at as u64, 1)[0];
            assert!(bytes[body..].iter().enumerate().all(right));
        }
    }
}
