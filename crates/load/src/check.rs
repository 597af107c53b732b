//! Response checks and error classes.

use aws_lc_rs::digest::{Context, SHA256};
use std::io;
use weir_transport::Fault;

/// The expected response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// Status; `None` accepts 200 to 299.
    pub status: Option<u16>,
    /// Body length; `None` accepts what the framing says.
    pub length: Option<u64>,
    /// SHA-256 of the body, after removing the transfer coding; `None` accepts any. See [`sha256`].
    pub sha256: Option<[u8; 32]>,
}

impl Expect {
    pub(crate) fn status_is_right(&self, status: u16) -> bool {
        match self.status {
            None => (200..=299).contains(&status),
            Some(expected) => status == expected,
        }
    }

    pub(crate) fn length_is_right(&self, length: u64) -> bool {
        self.length.is_none_or(|expected| length == expected)
    }

    /// The digest for the body, if asked for: hashing costs more than all other checks.
    pub(crate) fn digest(&self) -> Option<Context> {
        self.sha256.is_some().then(|| Context::new(&SHA256))
    }

    /// Checks the result of [`Expect::digest`] after the whole body.
    pub(crate) fn digest_is_right(&self, digest: Option<Context>) -> bool {
        self.sha256.is_none_or(|expected| digest.is_some_and(|digest| digest.finish().as_ref() == expected))
    }
}

/// Parses a SHA-256 as printed by `sha256sum`: 64 hexadecimal digits, in either case.
///
/// # Errors
/// When it is anything else.
pub fn sha256(text: &str) -> Result<[u8; 32], String> {
    let wrong = || "expected 64 hexadecimal digits, as printed by sha256sum".to_string();
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(wrong);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(wrong()) };
    let mut bytes = [0; 32];
    if pairs.len() != bytes.len() {
        return Err(wrong());
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Ok(bytes)
}

/// Why a request got no correct response, or a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Connection refused.
    ConnectRefused,
    /// Connecting failed for another reason.
    Connect,
    /// No free local port.
    Ports,
    /// The connection was reset.
    Reset,
    /// The connection ended before the response was complete.
    Closed,
    /// Another socket error.
    Socket,
    /// TLS failed: no handshake, a broken record, an alert.
    Tls,
    /// No complete response within the timeout.
    Timeout,
    /// Unexpected status.
    Status,
    /// Unexpected body length.
    Length,
    /// Unexpected body content.
    Digest,
    /// Not HTTP, or bytes after the end of the response.
    Malformed,
    /// A connection not established by the end of the warm-up.
    Missing,
    /// HTTP/2: the server reset the stream, or refused it again and again.
    StreamReset,
    /// gRPC: a status other than OK.
    GrpcStatus,
}

impl ErrorClass {
    /// All classes in the order of their numbers, with their names in results.
    pub const ALL: [(Self, &str); 15] = [
        (Self::ConnectRefused, "connect_refused"),
        (Self::Connect, "connect"),
        (Self::Ports, "ports"),
        (Self::Reset, "reset"),
        (Self::Closed, "closed"),
        (Self::Socket, "socket"),
        (Self::Tls, "tls"),
        (Self::Timeout, "timeout"),
        (Self::Status, "status"),
        (Self::Length, "length"),
        (Self::Digest, "digest"),
        (Self::Malformed, "malformed"),
        (Self::Missing, "missing_connections"),
        (Self::StreamReset, "stream_reset"),
        (Self::GrpcStatus, "grpc_status"),
    ];

    /// Whether the response was wrong: the server is not doing what we want to measure.
    pub fn is_wrong_answer(self) -> bool {
        matches!(self, Self::Status | Self::Length | Self::Digest | Self::Malformed | Self::GrpcStatus)
    }

    /// Whether the error budget may cover it: a request, or its connection, failed. A missing connection does
    /// not count, since fewer connections than asked for are a different load.
    pub fn is_budgeted(self) -> bool {
        !self.is_wrong_answer() && self != Self::Missing
    }

    /// The class of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(class, _)| class)
    }

    /// The name in results.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub(crate) fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Connect(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => Self::ConnectRefused,
                // From connect(2), with late port selection, and from bind(2).
                io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => Self::Ports,
                _ => Self::Connect,
            },
            Fault::Socket(error) => match error.kind() {
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Reset,
                _ => Self::Socket,
            },
            Fault::Tls(_) => Self::Tls,
        }
    }
}

const NO_PORT: &str = "; no free local port: use more addresses (--source), --close rst, \
                       fewer new connections per second (--rate), or fewer at once (-c)";

/// One error: its class and message.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    pub(crate) class: ErrorClass,
    pub(crate) detail: Detail,
}

/// Formatted only for the first error of a class.
#[derive(Clone, Debug)]
pub(crate) enum Detail {
    Fixed(&'static str),
    Number(&'static str, u64),
    Text(String),
}

impl Wrong {
    pub(crate) const fn fixed(class: ErrorClass, text: &'static str) -> Self {
        Self { class, detail: Detail::Fixed(text) }
    }

    pub(crate) const fn number(class: ErrorClass, text: &'static str, number: u64) -> Self {
        Self { class, detail: Detail::Number(text, number) }
    }

    /// A response that cannot be parsed. A TLS record (RFC 8446 section 5.1) is reported as one.
    pub(crate) fn no_http(input: &[u8], error: &dyn std::fmt::Display) -> Self {
        let text = match input {
            [20..=23, 3, ..] => "got a TLS record instead of a response; use https://".to_string(),
            _ => error.to_string(),
        };
        Self { class: ErrorClass::Malformed, detail: Detail::Text(text) }
    }
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Self {
        let class = ErrorClass::of(&fault);
        let advice = if class == ErrorClass::Ports { NO_PORT } else { "" };
        Self { class, detail: Detail::Text(format!("{fault}{advice}")) }
    }
}

impl std::fmt::Display for Detail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(text) => f.write_str(text),
            Self::Number(text, number) => write!(f, "{text} {number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The hash of `abc` (FIPS 180-2 appendix B.1).
    pub(crate) const ABC: [u8; 32] = [
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0,
        0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
    ];

    #[test]
    fn hashes_as_people_write_them() {
        let text = "ba7816bf8f01cfea414140de5dae2223B00361A396177A9CB410FF61F20015AD";
        assert_eq!(sha256(text), Ok(ABC));
        let (short, long) = (&text[1..], format!("{text}00"));
        for text in ["", "ba", short, &long, &text.replace('b', "g"), &text.replace("ba", "é")] {
            assert!(sha256(text).unwrap_err().contains("64 hexadecimal"), "{text}");
        }
    }

    #[test]
    fn statuses_and_lengths() {
        let any = Expect::default();
        assert!(any.status_is_right(200) && any.status_is_right(204) && any.length_is_right(7));
        assert!(!any.status_is_right(199) && !any.status_is_right(304) && !any.status_is_right(404));
        let exact = Expect { status: Some(404), length: Some(0), ..any };
        assert!(exact.status_is_right(404) && !exact.status_is_right(200));
        assert!(exact.length_is_right(0) && !exact.length_is_right(1));
    }

    #[test]
    fn a_body_is_hashed_where_it_is_asked_for_alone() {
        assert!(Expect::default().digest().is_none() && Expect::default().digest_is_right(None));
        let expect = Expect { sha256: Some(ABC), ..Expect::default() };
        for (pieces, right) in
            [(["a", "bc"], true), (["", "abc"], true), (["ab", "c"], true), (["ab", ""], false)]
        {
            let mut digest = expect.digest().unwrap();
            pieces.iter().for_each(|piece| digest.update(piece.as_bytes()));
            assert_eq!(expect.digest_is_right(Some(digest)), right, "{pieces:?}");
        }
        assert!(!expect.digest_is_right(None));
    }

    #[test]
    fn an_error_without_a_free_port_says_what_to_do() {
        for (kind, name) in [
            (io::ErrorKind::AddrNotAvailable, "ports"),
            (io::ErrorKind::AddrInUse, "ports"),
            (io::ErrorKind::ConnectionRefused, "connect_refused"),
            (io::ErrorKind::PermissionDenied, "connect"),
        ] {
            let wrong = Wrong::from(Fault::Connect(kind.into()));
            assert_eq!(wrong.class.name(), name);
            assert_eq!(wrong.detail.to_string().contains("--source"), name == "ports", "{}", wrong.detail);
        }
    }

    #[test]
    fn classes_are_numbered_in_their_order() {
        for (number, (class, name)) in ErrorClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, number);
            assert_eq!((ErrorClass::of_name(name), class.name()), (Some(class), name));
        }
    }
}
