//! gRPC over HTTP/2: its content type, its messages in a body, and its statuses.
//!
//! Source: "gRPC over HTTP2" of the gRPC project.

use weir_http::Field;

/// The content type of a call. A `+` with the name of a serialisation format, or parameters, may follow.
pub const CONTENT_TYPE: &[u8] = b"application/grpc";

/// The field with a response's status: a trailer, or a field of the head if the response has neither body nor trailers.
pub const STATUS: &[u8] = b"grpc-status";

/// The field with a status's message, which is percent-encoded.
pub const MESSAGE: &[u8] = b"grpc-message";

/// The names of all statuses, in the order of their numbers. Clients treat other numbers as `UNKNOWN`.
pub const STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// An unknown error. This constant and the following ones are indices of [`STATUSES`].
pub const UNKNOWN: u8 = 2;
/// The deadline expired before the call was complete.
pub const DEADLINE_EXCEEDED: u8 = 4;
/// The client may not make this call.
pub const PERMISSION_DENIED: u8 = 7;
/// A resource, such as a quota, is exhausted.
pub const RESOURCE_EXHAUSTED: u8 = 8;
/// The server does not implement the method.
pub const UNIMPLEMENTED: u8 = 12;
/// An internal error.
pub const INTERNAL: u8 = 13;
/// The service is unavailable at present; the client may retry.
pub const UNAVAILABLE: u8 = 14;
/// The call contains no valid credentials.
pub const UNAUTHENTICATED: u8 = 16;

/// The length of a message's prefix: a flag, 1 if the message is compressed, and the message's length in big-endian
/// order.
pub const PREFIX_BYTES: usize = 5;

/// The prefix of a message of `length` bytes, not compressed.
#[must_use]
pub fn prefix(length: u32) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d] = length.to_be_bytes();
    [0, a, b, c, d]
}

/// Whether a content type is gRPC's. `application/grpc-web` is not.
#[must_use]
pub fn is_content_type(value: &[u8]) -> bool {
    let rest = value.split_at_checked(CONTENT_TYPE.len());
    rest.is_some_and(|(name, rest)| {
        name.eq_ignore_ascii_case(CONTENT_TYPE) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
    })
}

/// Returns the value of the first field with this lower-case name; `bytes` are the head's bytes.
#[must_use]
pub fn value<'a>(fields: &[Field], bytes: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let field = fields.iter().find(|field| field.name.of(bytes) == name)?;
    Some(field.value.of(bytes))
}

/// Counts the messages of a body that arrives in pieces, and checks their prefixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    count: u64,
    bytes: u64,
    at: At,
}

/// The position in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// After `seen` bytes of a prefix; `length` is the part of the message's length received so far.
    Prefix { seen: u8, length: u32 },
    /// Within a message, before its last `left` bytes.
    Message { left: u32 },
    /// After a prefix with this invalid flag: the following bytes cannot be split into messages.
    Flag(u8),
}

impl Default for At {
    fn default() -> Self {
        Self::Prefix { seen: 0, length: 0 }
    }
}

/// The reason why a body is not a sequence of gRPC messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// The first byte of a prefix is neither 0 nor 1.
    #[error("the prefix of a gRPC message starts with {0}: expected 0 or 1")]
    Flag(u8),
    /// The body ends within a prefix.
    #[error("the body ends within the prefix of a gRPC message")]
    Prefix,
    /// The body ends within a message.
    #[error("the body ends within a gRPC message; missing bytes: {0}")]
    Message(u32),
}

impl Messages {
    /// Takes the next piece of the body.
    pub fn take(&mut self, mut piece: &[u8]) {
        while let [first, rest @ ..] = piece {
            match self.at {
                At::Prefix { seen: 0, .. } if *first > 1 => self.at = At::Flag(*first),
                At::Prefix { seen: 0, .. } => {
                    self.at = At::Prefix { seen: 1, length: 0 };
                    piece = rest;
                }
                At::Prefix { seen, length } => {
                    self.prefix(seen + 1, length << 8 | u32::from(*first));
                    piece = rest;
                }
                At::Message { left } => {
                    let taken = piece.len().min(left as usize);
                    self.message(left - taken as u32);
                    piece = &piece[taken..];
                }
                At::Flag(_) => return,
            }
        }
    }

    fn prefix(&mut self, seen: u8, length: u32) {
        if usize::from(seen) < PREFIX_BYTES {
            self.at = At::Prefix { seen, length };
            return;
        }
        self.bytes += u64::from(length);
        self.message(length);
    }

    fn message(&mut self, left: u32) {
        self.at = if left == 0 { At::default() } else { At::Message { left } };
        self.count += u64::from(left == 0);
    }

    /// The number of complete messages so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The bytes of the messages so far, without prefixes; the last message counts in full.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Checks that the body may end.
    ///
    /// # Errors
    /// A prefix is invalid, or the body is truncated.
    pub fn end(&self) -> Result<(), BadMessage> {
        match self.at {
            At::Prefix { seen: 0, .. } => Ok(()),
            At::Prefix { .. } => Err(BadMessage::Prefix),
            At::Message { left } => Err(BadMessage::Message(left)),
            At::Flag(flag) => Err(BadMessage::Flag(flag)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(pieces: &[&[u8]]) -> Messages {
        let mut messages = Messages::default();
        pieces.iter().for_each(|piece| messages.take(piece));
        messages
    }

    #[test]
    fn messages_are_counted_in_any_pieces() {
        let body = b"\0\0\0\0\x02hi\0\0\0\0\0\x01\0\0\x01\0".iter().copied().chain([b'x'; 256]);
        let body: Vec<u8> = body.collect();
        for size in 1..=body.len() {
            let pieces: Vec<&[u8]> = body.chunks(size).collect();
            let messages = counted(&pieces);
            assert_eq!((messages.count(), messages.bytes(), messages.end()), (3, 258, Ok(())), "{size}");
        }
        assert_eq!(counted(&[]).end(), Ok(()));
    }

    #[test]
    fn a_body_cut_off_and_a_wrong_flag_are_faults() {
        for (body, count, fault) in [
            (&b"\0"[..], 0, BadMessage::Prefix),
            (b"\0\0\0\0\x01x\0\0\0\0", 1, BadMessage::Prefix),
            (b"\0\0\0\x01\x01x", 0, BadMessage::Message(256)),
            (b"\0\xff\xff\xff\xff", 0, BadMessage::Message(u32::MAX)),
            (b"\0\0\0\0\0\x02\0\0\0\0", 1, BadMessage::Flag(2)),
        ] {
            let messages = counted(&[body]);
            assert_eq!((messages.count(), messages.end()), (count, Err(fault)), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn a_prefix_has_the_length() {
        assert_eq!(prefix(0x0102_0304), [0, 1, 2, 3, 4]);
        let mut messages = counted(&[&prefix(3), b"ab"]);
        assert_eq!(messages.end(), Err(BadMessage::Message(1)));
        messages.take(b"c");
        assert_eq!((messages.count(), messages.end()), (1, Ok(())));
    }

    #[test]
    fn content_types_of_calls() {
        for (value, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("Application/GRPC; charset=utf-8", true),
            ("application/grpc-web", false),
            ("application/grpcx", false),
            ("application/json", false),
            ("", false),
        ] {
            assert_eq!(is_content_type(value.as_bytes()), expected, "{value}");
        }
    }
}
