//! Checks field names. Each verdict is computed once and stored with a table's entry.

use super::HeadError;
use weir_http::FieldName;
use weir_http::scan::is_token_byte;

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    Pseudo(Pseudo),
    /// A cookie crumb: all crumbs of a head are joined (RFC 9113, section 8.2.3).
    Cookie,
    Field(FieldName),
}

/// A pseudo-field (RFC 9113, section 8.3; RFC 8441, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pseudo {
    Method,
    Scheme,
    Authority,
    Path,
    Protocol,
    Status,
}

/// A field name: its kind, and the rule that it violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) kind: NameKind,
    pub(crate) underscore: bool,
    pub(crate) error: Option<HeadError>,
}

impl Name {
    /// Classifies any name.
    pub(crate) fn of(name: &[u8]) -> Self {
        match name {
            [b':', pseudo @ ..] => match Pseudo::of(pseudo) {
                Some(pseudo) => Self::of_kind(NameKind::Pseudo(pseudo)),
                None => Self::bad(HeadError::UnknownPseudo),
            },
            [] => Self::bad(HeadError::BadFieldName),
            b"cookie" => Self::of_kind(NameKind::Cookie),
            _ => {
                let (mut valid, mut underscore) = (true, false);
                for byte in name {
                    valid &= is_token_byte(*byte) & !byte.is_ascii_uppercase();
                    underscore |= *byte == b'_';
                }
                match valid {
                    true => Self { underscore, ..Self::of_kind(NameKind::Field(FieldName::of(name))) },
                    false => Self::bad(HeadError::BadFieldName),
                }
            }
        }
    }

    /// Classifies a valid name, and marks the connection-specific fields as errors.
    #[inline]
    pub(crate) fn of_kind(kind: NameKind) -> Self {
        use FieldName::{Connection, KeepAlive, ProxyConnection, TransferEncoding, Upgrade};
        let is_of_connection = matches!(
            kind,
            NameKind::Field(Connection | KeepAlive | ProxyConnection | TransferEncoding | Upgrade)
        );
        Self { kind, underscore: false, error: is_of_connection.then_some(HeadError::ConnectionField) }
    }

    fn bad(error: HeadError) -> Self {
        Self { kind: NameKind::Field(FieldName::Other), underscore: false, error: Some(error) }
    }
}

impl Pseudo {
    /// The pseudo-field with this name, without its colon.
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"method" => Self::Method,
            b"scheme" => Self::Scheme,
            b"authority" => Self::Authority,
            b"path" => Self::Path,
            b"protocol" => Self::Protocol,
            b"status" => Self::Status,
            _ => return None,
        })
    }

    /// The pseudo-field's bit in a set.
    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        use HeadError::{BadFieldName, ConnectionField, UnknownPseudo};
        let field = NameKind::Field(FieldName::Other);
        for (name, kind, error) in [
            (":path", NameKind::Pseudo(Pseudo::Path), None),
            (":protocol", NameKind::Pseudo(Pseudo::Protocol), None),
            (":Path", field, Some(UnknownPseudo)),
            (":", field, Some(UnknownPseudo)),
            ("cookie", NameKind::Cookie, None),
            ("Cookie", field, Some(BadFieldName)),
            ("x-a", field, None),
            ("x-A", field, Some(BadFieldName)),
            ("x a", field, Some(BadFieldName)),
            ("x:", field, Some(BadFieldName)),
            ("x\r", field, Some(BadFieldName)),
            ("x\0", field, Some(BadFieldName)),
            ("\u{e4}", field, Some(BadFieldName)),
            ("", field, Some(BadFieldName)),
            ("te", NameKind::Field(FieldName::Te), None),
            ("connection", NameKind::Field(FieldName::Connection), Some(ConnectionField)),
            ("keep-alive", NameKind::Field(FieldName::KeepAlive), Some(ConnectionField)),
            ("proxy-connection", NameKind::Field(FieldName::ProxyConnection), Some(ConnectionField)),
            ("transfer-encoding", NameKind::Field(FieldName::TransferEncoding), Some(ConnectionField)),
            ("upgrade", NameKind::Field(FieldName::Upgrade), Some(ConnectionField)),
        ] {
            assert_eq!(Name::of(name.as_bytes()), Name { kind, underscore: false, error }, "{name}");
        }
        assert!(Name::of(b"x_a").underscore);
    }
}
