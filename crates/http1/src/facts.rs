//! Facts from the fields of a head: the declared framing, the connection's options and authentication, the idle
//! timeout.

use crate::connection_options::ConnectionOptions;
use crate::{Framing, HeadError, Version};
use weir_http::FieldName;
use weir_http::scan::{decimal, elements};

/// Facts gathered field by field, shared by requests and responses.
pub(crate) struct Facts {
    version: Version,
    /// The framing declared by `Content-Length` or `Transfer-Encoding`; [`Framing::None`] without either.
    pub(crate) declared: Framing,
    /// The options of all `Connection` fields.
    pub(crate) connection: ConnectionOptions,
    /// Whether credentials or a challenge authenticate the connection: see [`authenticates_connection`].
    pub(crate) authenticates_connection: bool,
    /// The `timeout` of `Keep-Alive`, in seconds; `None` without a valid one.
    pub(crate) idle_timeout: Option<u32>,
}

impl Facts {
    pub(crate) fn new(version: Version) -> Self {
        Self {
            version,
            declared: Framing::None,
            connection: ConnectionOptions::default(),
            authenticates_connection: false,
            idle_timeout: None,
        }
    }

    /// Processes one field line. The error is the rule that the value violates.
    #[inline]
    pub(crate) fn note(&mut self, name: FieldName, value: &[u8]) -> Result<(), HeadError> {
        match name {
            FieldName::ContentLength => self.declared.note_length(value),
            FieldName::TransferEncoding => self.declared.note_codings(value, self.version),
            FieldName::Connection => self.connection.note(value),
            FieldName::KeepAlive => {
                self.idle_timeout = idle_timeout(value).or(self.idle_timeout);
                Ok(())
            }
            FieldName::Authorization
            | FieldName::ProxyAuthorization
            | FieldName::WwwAuthenticate
            | FieldName::ProxyAuthenticate => {
                self.authenticates_connection |= authenticates_connection(value);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Whether credentials or a challenge use a scheme that authenticates the connection rather than a message: NTLM and
/// Negotiate violate RFC 9110, section 3.3 in this way.
#[cold]
pub fn authenticates_connection(value: &[u8]) -> bool {
    elements(value).any(|element| {
        let scheme = element.split(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
        scheme.eq_ignore_ascii_case(b"NTLM") || scheme.eq_ignore_ascii_case(b"Negotiate")
    })
}

/// The `timeout` parameter of a `Keep-Alive` field. Ignores malformed parameters, since no message depends on them.
#[cold]
fn idle_timeout(value: &[u8]) -> Option<u32> {
    elements(value).find_map(|parameter| {
        let at = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, seconds) = (parameter[..at].trim_ascii(), parameter[at + 1..].trim_ascii());
        let seconds = decimal(seconds).filter(|_| name.eq_ignore_ascii_case(b"timeout"))?;
        Some(u32::try_from(seconds).unwrap_or(u32::MAX))
    })
}
