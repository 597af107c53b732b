//! Bodies of requests to the admin address.

use super::{Response, WITHIN};
use socket2::Socket;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::time::Instant;
use weir_http1::{BodyDecoder, Framing, Limits, RequestHead};

/// The maximum size of a body in bytes: enough for a list of about ten thousand servers.
pub(super) const LARGEST: usize = 1 << 20;

/// Reads the body that follows a head of `len` bytes in `bytes`, and removes it from `bytes`, which keeps the head.
/// Fails if the connection fails or ends. An inner `Err` is the response to a body that is too large, malformed or
/// late, after which the connection must close.
pub(super) fn read(
    mut stream: &Socket,
    head: &RequestHead,
    bytes: &mut Vec<u8>,
    len: usize,
) -> io::Result<Result<Vec<u8>, Response>> {
    let too_large =
        || Response::text(413, format!("the body is too large: expected at most {LARGEST} bytes\n"));
    if matches!(head.framing, Framing::Length(length) if length > LARGEST as u64) {
        return Ok(Err(too_large()));
    }
    let until = Instant::now() + WITHIN;
    let (mut decoder, mut body) = (BodyDecoder::new(head.framing, &Limits::default()), Vec::new());
    let (mut is_awaited, mut some) = (head.expect_continue, [0; 16 << 10]);
    loop {
        let mut at = len;
        while !decoder.is_complete() {
            let step = match decoder.decode(&bytes[at..]) {
                Ok(step) => step,
                Err(error) => return Ok(Err(Response::text(400, format!("{error}\n")))),
            };
            body.extend_from_slice(&bytes[at..][step.data]);
            at += step.consumed;
            if step.consumed == 0 {
                break;
            }
        }
        bytes.drain(len..at);
        if body.len() > LARGEST {
            return Ok(Err(too_large()));
        }
        if decoder.is_complete() {
            return Ok(Ok(body));
        }
        if std::mem::take(&mut is_awaited) {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        match read_some(stream, &mut some, until)? {
            Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Some(read) => bytes.extend_from_slice(&some[..read]),
            None => return Ok(Err(Response::text(408, "a request takes too long\n"))),
        }
    }
}

/// Reads and drops the rest of a request, up to a limit of time and bytes, so that the client gets the last response:
/// closing with unread bytes would make the kernel reset the connection.
pub(super) fn discard(stream: &Socket) {
    // An error means that the client has disconnected.
    let _ = stream.shutdown(Shutdown::Write);
    let (until, mut some, mut left) = (Instant::now() + WITHIN, [0; 16 << 10], MOST_DISCARDED);
    while let Ok(Some(read @ 1..)) = read_some(stream, &mut some, until) {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}

/// Reads once, and returns `None` if no bytes arrive before `until`.
fn read_some(mut stream: &Socket, some: &mut [u8], until: Instant) -> io::Result<Option<usize>> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(some) {
            Ok(read) => return Ok(Some(read)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The maximum number of bytes to drop before the connection closes anyway.
const MOST_DISCARDED: usize = 16 << 20;
