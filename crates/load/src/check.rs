//! What an answer must be, and the classes of what goes wrong.

use crate::digest::Digest;
use std::io;
use weir_transport::Fault;

/// What every answer must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// Its status; `None` is any of 200 to 299.
    pub status: Option<u16>,
    /// Bytes of its body; `None` is whatever its framing says.
    pub length: Option<u64>,
    /// SHA-256 of its body, without the transfer coding; `None` is any. See [`crate::sha256`].
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

    /// What the body is to go through, if anybody asks for it: hashing costs more than all other checks.
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.sha256.is_some().then(Digest::new)
    }

    /// Takes what [`Expect::digest`] gave, after the whole body.
    pub(crate) fn digest_is_right(&self, digest: Option<Digest>) -> bool {
        self.sha256.is_none_or(|expected| digest.is_some_and(|digest| digest.finish() == expected))
    }
}

/// Why a request has no right answer, or a connection could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Nobody listens there.
    ConnectRefused,
    /// The connection could not be made for another reason.
    Connect,
    /// No local port is free for another connection.
    Ports,
    /// The connection was reset.
    Reset,
    /// The connection ended before the answer did.
    Closed,
    /// The socket failed otherwise.
    Socket,
    /// TLS failed: no handshake, a broken record, an alert.
    Tls,
    /// No complete answer within the time-out.
    Timeout,
    /// A status that was not asked for.
    Status,
    /// A body of another length.
    Length,
    /// A body of other bytes.
    Digest,
    /// Not HTTP, or bytes after the end of the answer.
    Malformed,
    /// A connection that did not stand when the warm-up was over.
    Missing,
}

impl ErrorClass {
    /// All classes, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::ConnectRefused,
        Self::Connect,
        Self::Ports,
        Self::Reset,
        Self::Closed,
        Self::Socket,
        Self::Tls,
        Self::Timeout,
        Self::Status,
        Self::Length,
        Self::Digest,
        Self::Malformed,
        Self::Missing,
    ];

    /// Whether there was an answer, and not the right one: the server does something else than what is to be measured.
    pub fn is_wrong_answer(self) -> bool {
        matches!(self, Self::Status | Self::Length | Self::Digest | Self::Malformed)
    }

    /// Whether a budget of errors may cover it: a request, or the connection that it needed, failed. A missing connection is
    /// none, since fewer connections than asked for are another load.
    pub fn is_budgeted(self) -> bool {
        !self.is_wrong_answer() && self != Self::Missing
    }

    /// The class of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connect_refused",
            Self::Connect => "connect",
            Self::Ports => "ports",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Socket => "socket",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::Length => "length",
            Self::Digest => "digest",
            Self::Malformed => "malformed",
            Self::Missing => "missing_connections",
        }
    }

    pub(crate) fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Connect(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => Self::ConnectRefused,
                // Of connect(2), with its port chosen late, and of bind(2).
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

const NO_PORT: &str = "; no local port is free: use more addresses (--source), --close rst, \
                       fewer new connections per second (--rate), or fewer at once (-c)";

/// One error: its class, and the first one's words.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    pub(crate) class: ErrorClass,
    pub(crate) detail: Detail,
}

/// Formed into text only for the first error of a class.
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

    /// An answer that cannot be read. What a TLS server sends instead (RFC 8446 section 5.1) is told as that.
    pub(crate) fn no_http(input: &[u8], error: &dyn std::fmt::Display) -> Self {
        let text = match input {
            [20..=23, 3, ..] => "a TLS record instead of an answer: write https://".to_string(),
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
mod tests {
    use super::*;

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
        let expect = Expect { sha256: Some(crate::digest::tests::ABC), ..Expect::default() };
        for (pieces, right) in [(["a", "bc"], true), (["ab", "c"], true), (["ab", ""], false)] {
            let mut digest = expect.digest().unwrap();
            pieces.iter().for_each(|piece| digest.update(piece.as_bytes()));
            assert_eq!(expect.digest_is_right(Some(digest)), right, "{pieces:?}");
        }
        assert!(!expect.digest_is_right(None));
    }

    #[test]
    fn a_connection_without_a_port_is_told_what_to_do() {
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
        for (number, class) in ErrorClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, number);
            assert_eq!(ErrorClass::of_name(class.name()), Some(class));
        }
    }
}
