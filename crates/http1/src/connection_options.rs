//! The options of `Connection`: persistence, an upgrade, and the names of fields that are for this connection only (RFC
//! 9110, section 7.6.1).

use crate::{HeadError, Version};
use weir_http::scan::{elements, is_token_byte};
use weir_http::{Field, FieldName};

#[derive(Default)]
pub(crate) struct ConnectionOptions {
    close: bool,
    keep_alive: bool,
    count: usize,
    nominates: bool,
    /// Whether an option is `Upgrade`.
    pub(crate) names_upgrade: bool,
}

/// The limit on connection options, since each is compared with all fields. Real messages contain one to three.
const MOST: usize = 32;

impl ConnectionOptions {
    /// Processes the value of one field line. The error is the rule that the value violates.
    pub(crate) fn note(&mut self, value: &[u8]) -> Result<(), HeadError> {
        for option in elements(value) {
            self.count += 1;
            if self.count > MOST {
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

    /// Whether the options let the connection persist after a message of this version (RFC 9112, section 9.3).
    pub(crate) fn persistent(&self, version: Version) -> bool {
        match version {
            Version::Http11 => !self.close,
            // To its clients a gateway is the origin server, so it honours HTTP/1.0 persistence.
            Version::Http10 => self.keep_alive && !self.close,
        }
    }

    /// Marks the fields that the options name as hop by hop.
    #[inline]
    pub(crate) fn mark_nominated(&self, head: &[u8], fields: &mut [Field]) {
        if self.nominates {
            mark_nominated(head, fields);
        }
    }
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
