//! Facts from the fields of a head: the declared framing, connection persistence and authentication, the idle timeout,
//! and the fields that `Connection` names.

use crate::{Framing, HeadError, Version};
use weir_http::scan::{decimal, elements, is_token_byte};
use weir_http::{Field, FieldName};

/// Facts gathered field by field, shared by requests and responses.
pub(crate) struct Facts {
    version: Version,
    /// The framing declared by `Content-Length` or `Transfer-Encoding`; [`Framing::None`] without either.
    pub(crate) declared: Framing,
    close: bool,
    keep_alive: bool,
    options: usize,
    nominates: bool,
    /// Whether `Connection` names `Upgrade`.
    pub(crate) names_upgrade: bool,
    /// Whether credentials or a challenge authenticate the connection: see [`authenticates_connection`].
    pub(crate) authenticates_connection: bool,
    /// The `timeout` of `Keep-Alive`, in seconds; `None` without a valid one.
    pub(crate) idle_timeout: Option<u32>,
}

/// The limit on connection options, since each is compared with all fields. Real messages contain one to three.
const MAX_OPTIONS: usize = 32;

impl Facts {
    pub(crate) fn new(version: Version) -> Self {
        Self {
            version,
            declared: Framing::None,
            close: false,
            keep_alive: false,
            options: 0,
            nominates: false,
            names_upgrade: false,
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
            FieldName::Connection => self.connection(value),
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

    /// Whether the fields let the connection persist after this message (RFC 9112, section 9.3).
    pub(crate) fn persistent(&self) -> bool {
        match self.version {
            Version::Http11 => !self.close,
            // To its clients a gateway is the origin server, so it honours HTTP/1.0 persistence.
            Version::Http10 => self.keep_alive && !self.close,
        }
    }

    /// Marks the fields that `Connection` names as hop by hop.
    #[inline]
    pub(crate) fn mark_nominated(&self, head: &[u8], fields: &mut [Field]) {
        if self.nominates {
            mark_nominated(head, fields);
        }
    }

    fn connection(&mut self, value: &[u8]) -> Result<(), HeadError> {
        for option in elements(value) {
            self.options += 1;
            if self.options > MAX_OPTIONS {
                return Err(HeadError::TooManyConnectionOptions);
            }
            if option.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if !option.iter().all(|&b| is_token_byte(b)) {
                return Err(HeadError::BadConnectionOption);
            } else if FieldName::of(option).is_relied_on() {
                return Err(HeadError::ConnectionNamesReliedOnField);
            } else {
                // Empty elements are allowed (RFC 9110, section 5.6.1.2) and name no field.
                self.nominates |= !option.is_empty();
                self.names_upgrade |= option.eq_ignore_ascii_case(b"upgrade");
            }
        }
        Ok(())
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

#[cold]
fn mark_nominated(head: &[u8], fields: &mut [Field]) {
    for at in 0..fields.len() {
        let Field { known: FieldName::Connection, value, .. } = fields[at] else { continue };
        for option in elements(value.of(head)) {
            for field in fields.iter_mut() {
                field.hop_by_hop |= field.name.of(head).eq_ignore_ascii_case(option);
            }
        }
    }
}
