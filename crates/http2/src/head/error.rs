//! Violations of the rules for heads and trailers, with one variant for each rule.

use thiserror::Error;

/// The reason why a message is malformed (RFC 9113, section 8.1.1): a stream error of type PROTOCOL_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeadError {
    /// The fields exceed [`Limits::head_bytes`](crate::Limits).
    #[error("the head is too long")]
    HeadTooLong,
    /// There are more fields than [`Limits::fields`](crate::Limits).
    #[error("the head has too many fields")]
    TooManyFields,
    /// A name that is empty, not a token, or not in lower case (RFC 9113, section 8.2.1).
    #[error("a field name is not a lower-case token")]
    BadFieldName,
    /// A control character in a value, or white space around it (RFC 9113, section 8.2.1).
    #[error("a field value has a control character or surrounding white space")]
    BadFieldValue,
    /// `connection`, `keep-alive`, `proxy-connection`, `transfer-encoding` or `upgrade` (RFC 9113, section 8.2.2).
    #[error("a field that is specific to a connection")]
    ConnectionField,
    /// `te` with a value other than `trailers` (RFC 9113, section 8.2.2).
    #[error("TE is not trailers")]
    BadTe,
    /// A pseudo-field that the section does not define (RFC 9113, section 8.3).
    #[error("an unknown pseudo-field")]
    UnknownPseudo,
    /// A pseudo-field that appears twice (RFC 9113, section 8.3).
    #[error("a pseudo-field appears twice")]
    DuplicatePseudo,
    /// A pseudo-field after a field (RFC 9113, section 8.3).
    #[error("a pseudo-field after a field")]
    LatePseudo,
    /// A required pseudo-field is missing, or a CONNECT without `:protocol` contains `:scheme` or `:path` (RFC 9113,
    /// sections 8.3 and 8.5).
    #[error("the set of pseudo-fields does not fit the method")]
    PseudoFields,
    /// The method is not a token (RFC 9113, section 8.3.1).
    #[error("the method is not a token")]
    BadMethod,
    /// The scheme is neither `http` nor `https`.
    #[error("the scheme is neither http nor https")]
    BadScheme,
    /// The path neither starts with `/` nor is `*` of OPTIONS, or contains an invalid character (RFC 9113, section
    /// 8.3.1).
    #[error("the path is malformed")]
    BadPath,
    /// `:authority` or `host` is not a host with an optional port (narrower than RFC 9113, section 8.3.1:
    /// [`weir_http::Authority`]), or CONNECT has no port (section 8.5).
    #[error("the authority is not a host with an optional port")]
    BadAuthority,
    /// Neither `:authority` nor `host` (RFC 9113, section 8.3.1).
    #[error("the authority is missing")]
    MissingAuthority,
    /// `host` appears twice.
    #[error("Host appears twice")]
    DuplicateHost,
    /// `:authority` and `host` differ (RFC 9113, section 8.3.1).
    #[error("the authority and Host differ")]
    DifferingHost,
    /// `:protocol` is not a token, or SETTINGS_ENABLE_CONNECT_PROTOCOL was not announced (RFC 8441, section 4).
    #[error("an invalid or unexpected protocol")]
    BadProtocol,
    /// The status is not a number from 100 to 999, or is 101 (RFC 9113, sections 8.3.2 and 8.6).
    #[error("the status is not a number from 100 to 999, or is 101")]
    BadStatus,
    /// `content-length` is not digits, or exceeds 64 bits (RFC 9110, section 8.6).
    #[error("Content-Length is not a number of bytes")]
    BadContentLength,
    /// Two values of `content-length` differ (RFC 9110, section 8.6).
    #[error("Content-Length values differ")]
    DifferingContentLength,
}

impl HeadError {
    /// A short stable name for logs and metrics. HTTP/1 uses the same name for the same rule.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::HeadTooLong => "head_too_long",
            Self::TooManyFields => "too_many_fields",
            Self::BadFieldName => "bad_field_name",
            Self::BadFieldValue => "bad_field_value",
            Self::ConnectionField => "connection_field",
            Self::BadTe => "bad_te",
            Self::UnknownPseudo => "unknown_pseudo_field",
            Self::DuplicatePseudo => "duplicate_pseudo_field",
            Self::LatePseudo => "late_pseudo_field",
            Self::PseudoFields => "bad_pseudo_fields",
            Self::BadMethod => "bad_method",
            Self::BadScheme => "bad_scheme",
            Self::BadPath => "bad_path",
            Self::BadAuthority => "bad_host",
            Self::MissingAuthority => "missing_host",
            Self::DuplicateHost => "duplicate_host",
            Self::DifferingHost => "differing_host",
            Self::BadProtocol => "bad_protocol",
            Self::BadStatus => "bad_status",
            Self::BadContentLength => "bad_content_length",
            Self::DifferingContentLength => "differing_content_length",
        }
    }
}
