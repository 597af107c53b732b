//! The parts of a request that an exchange keeps: the head for further attempts, the body if it is buffered.

use std::borrow::Cow;
use weir_http::Field;
use weir_http1::{BodyDecoder, BodyError, Framing, RequestHead, chunk, last_chunk_with};

#[derive(Debug, Default)]
pub(crate) struct HeldHead {
    /// The bytes that `request` points into.
    pub bytes: Vec<u8>,
    pub request: RequestHead,
}

#[derive(Debug)]
pub(crate) struct HeldBody {
    /// The body's bytes, with their framing.
    pub body: Vec<u8>,
    /// Finds the body's end.
    pub decoder: BodyDecoder,
    /// The request is sent once the buffer contains this many bytes, or the whole body.
    pub most: usize,
    /// The route's maximum body length.
    pub max_body: u64,
    /// The body's bytes, without their framing.
    pub passed: u64,
}

/// The part of a body that was sent to a server, stored for another attempt.
#[derive(Debug, Default)]
pub(crate) struct SentBody {
    /// The body's bytes, without their framing.
    pub bytes: Vec<u8>,
    /// The length of the sent part, with its framing.
    pub length: usize,
    /// The lines of the trailers, once the body is complete.
    pub trailers: Option<Vec<u8>>,
}

/// The maximum length of a sent body to store, in bytes with framing.
const MOST_STORED: usize = 16 * 1024;

impl SentBody {
    /// Adds a piece that was sent with the request's framing.
    pub(crate) fn push(&mut self, data: &[u8], framing: Framing) {
        self.bytes.extend_from_slice(data);
        let is_chunk = framing == Framing::Chunked && !data.is_empty();
        let digits = (usize::BITS - data.len().leading_zeros()).div_ceil(4) as usize;
        self.length += data.len() + if is_chunk { digits + 2 * b"\r\n".len() } else { 0 };
    }

    /// Whether the body is too long to store. The limit is low, since idempotent requests usually have small bodies or
    /// none.
    pub(crate) fn is_too_long(&self) -> bool {
        self.length > MOST_STORED
    }

    /// Whether a body with this framing may become too long to store.
    pub(crate) fn may_be_too_long(framing: Framing) -> bool {
        match framing {
            Framing::None => false,
            Framing::Length(length) => length > MOST_STORED as u64,
            Framing::Chunked | Framing::UntilClose => true,
        }
    }

    /// Writes the stored part with the request's framing.
    pub(crate) fn write(&self, framing: Framing, out: &mut Vec<u8>) {
        if framing != Framing::Chunked {
            return out.extend_from_slice(&self.bytes);
        }
        chunk(&self.bytes, out);
        if let Some(trailers) = &self.trailers {
            last_chunk_with(|out| out.extend_from_slice(trailers), out);
        }
    }
}

impl HeldHead {
    /// Takes a head that was parsed from `buf`. Swaps the storage of fields, to avoid an allocation.
    pub(crate) fn take(&mut self, request: &mut RequestHead, buf: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(buf);
        std::mem::swap(&mut self.request, request);
    }

    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity() + self.request.fields.capacity() * size_of::<Field>()
    }

    /// The request's host for the log: the value of `Host`, or the authority of the target.
    pub(crate) fn host(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.request.host.map_or(&b""[..], |host| host.of(&self.bytes)))
    }
}

impl HeldBody {
    /// Buffers the part of the body at the start of `input`; returns its length. Errors: invalid framing.
    pub(crate) fn take(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        let mut taken = 0;
        while !self.is_due() {
            let step = self.decoder.decode(&input[taken..])?;
            self.passed += step.data.len() as u64;
            self.body.extend_from_slice(&input[taken..taken + step.consumed]);
            taken += step.consumed;
            if step.consumed == 0 {
                break;
            }
        }
        Ok(taken)
    }

    /// Whether to send the request now: its body is complete, or the buffer is full.
    pub(crate) fn is_due(&self) -> bool {
        self.decoder.is_complete() || self.body.len() >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::Limits;

    #[test]
    fn a_long_body_is_not_kept() {
        let mut sent = SentBody::default();
        while !sent.is_too_long() {
            sent.push(b"abcd", Framing::Chunked);
        }
        // Each piece takes nine bytes.
        assert_eq!((sent.bytes.len(), sent.length), (4 * 1821, 9 * 1821));
    }

    #[test]
    fn a_body_is_written_again_as_far_as_it_was_sent() {
        let lines = b"X-Sum: 7\r\n".to_vec();
        for (framing, bytes, trailers, expected) in [
            (Framing::Length(5), "abc", None, "abc"),
            (Framing::Length(3), "abc", Some(vec![]), "abc"),
            (Framing::Chunked, "", None, ""),
            (Framing::Chunked, "abc", None, "3\r\nabc\r\n"),
            (Framing::Chunked, "abc", Some(vec![]), "3\r\nabc\r\n0\r\n\r\n"),
            (Framing::Chunked, "", Some(lines), "0\r\nX-Sum: 7\r\n\r\n"),
        ] {
            let mut out = Vec::new();
            let is_open = trailers.is_none();
            let mut sent = SentBody { trailers, ..SentBody::default() };
            sent.push(bytes.as_bytes(), framing);
            sent.write(framing, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{framing:?} {bytes}");
            assert!(!is_open || sent.length == expected.len(), "{framing:?} {bytes}");
        }
    }

    #[test]
    fn a_body_is_due_when_it_is_complete_or_long_enough() {
        let input = b"3\r\nabc\r\n0\r\n\r\nGET";
        for (most, len, passed) in [(100, 13, 3), (1, 8, 3)] {
            let decoder = BodyDecoder::new(Framing::Chunked, &Limits::default());
            let mut held = HeldBody { body: Vec::new(), decoder, most, max_body: 9, passed: 0 };
            let mut taken = held.take(&input[..1]).unwrap();
            taken += held.take(&input[taken..]).unwrap();
            assert!(held.is_due());
            assert!(taken <= len && held.body == input[..taken] && held.passed <= passed);
            assert_eq!(held.decoder.is_complete(), most == 100);
        }
    }
}
