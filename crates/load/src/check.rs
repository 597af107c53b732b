//! What an answer must be, and the classes of what goes wrong.

use std::io;
use weir_transport::Fault;

/// What every answer must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// Its status; `None` is any of 200 to 299.
    pub status: Option<u16>,
    /// Bytes of its body; `None` is whatever its framing says.
    pub length: Option<u64>,
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
}

/// Why a request has no right answer, or a connection could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Nobody listens there.
    ConnectRefused,
    /// The connection could not be made for another reason.
    Connect,
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
    /// Not HTTP, or bytes after the end of the answer.
    Malformed,
    /// A connection that did not stand when the warm-up was over.
    Missing,
}

impl ErrorClass {
    /// All classes, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::ConnectRefused,
        Self::Connect,
        Self::Reset,
        Self::Closed,
        Self::Socket,
        Self::Tls,
        Self::Timeout,
        Self::Status,
        Self::Length,
        Self::Malformed,
        Self::Missing,
    ];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connect_refused",
            Self::Connect => "connect",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Socket => "socket",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::Length => "length",
            Self::Malformed => "malformed",
            Self::Missing => "missing_connections",
        }
    }

    pub(crate) fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => Self::ConnectRefused,
            Fault::Connect(_) => Self::Connect,
            Fault::Socket(error) => match error.kind() {
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Reset,
                _ => Self::Socket,
            },
            Fault::Tls(_) => Self::Tls,
        }
    }
}

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
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Self {
        Self { class: ErrorClass::of(&fault), detail: Detail::Text(fault.to_string()) }
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
        let exact = Expect { status: Some(404), length: Some(0) };
        assert!(exact.status_is_right(404) && !exact.status_is_right(200));
        assert!(exact.length_is_right(0) && !exact.length_is_right(1));
    }

    #[test]
    fn classes_are_numbered_in_their_order() {
        for (number, class) in ErrorClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, number);
        }
    }
}
