//! The reasons for rejecting a message: one variant per rule or limit that the sender violated.

use thiserror::Error;

/// A rule that requests and responses share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeadError {
    /// The head is longer than [`crate::Limits::head_bytes`].
    #[error("the head is too long")]
    HeadTooLong,
    /// There are more field lines than [`crate::Limits::fields`].
    #[error("the head has too many fields")]
    TooManyFields,
    /// A field line is longer than [`crate::Limits::line_bytes`].
    #[error("a field line is too long")]
    FieldLineTooLong,
    /// The version is malformed (RFC 9112, section 2.3).
    #[error("the version is malformed")]
    BadVersion,
    /// A version other than HTTP/1.0 and HTTP/1.1.
    #[error("the version is not supported")]
    UnsupportedVersion,
    /// A LF without a CR before it (RFC 9112, section 2.2).
    #[error("a line ends with a bare LF")]
    BareLf,
    /// A CR without a LF after it (RFC 9112, section 2.2).
    #[error("a bare CR")]
    BareCr,
    /// A control character other than HTAB (RFC 9110, section 5.5).
    #[error("a control character in the head")]
    ControlCharacter,
    /// A field line that starts with white space (RFC 9112, sections 2.2 and 5.2).
    #[error("a field line starts with white space")]
    ObsFold,
    /// A field name that is empty or not a token (RFC 9110, section 5.1).
    #[error("a field name is not a token")]
    BadFieldName,
    /// White space between a field name and its colon (RFC 9112, section 5.1).
    #[error("white space between a field name and its colon")]
    WhitespaceBeforeColon,
    /// A field line without a colon (RFC 9112, section 5).
    #[error("a field line has no colon")]
    MissingColon,
    /// A `Content-Length` that is not digits, or exceeds 64 bits (RFC 9110, section 8.6).
    #[error("Content-Length is not a number of bytes")]
    BadContentLength,
    /// Two `Content-Length` values that differ (RFC 9112, section 6.3).
    #[error("Content-Length values differ")]
    DifferingContentLength,
    /// Both `Content-Length` and `Transfer-Encoding` (RFC 9112, section 6.1).
    #[error("both Content-Length and Transfer-Encoding")]
    ContentLengthAndTransferEncoding,
    /// `Transfer-Encoding` in an HTTP/1.0 message (RFC 9112, section 6.1).
    #[error("Transfer-Encoding in an HTTP/1.0 message")]
    TransferEncodingInHttp10,
    /// A `Transfer-Encoding` that is not a list of transfer codings (RFC 9112, section 6.1).
    #[error("Transfer-Encoding is malformed")]
    BadTransferEncoding,
    /// A transfer coding other than `chunked` (RFC 9112, section 7).
    #[error("a transfer coding other than chunked")]
    UnknownTransferCoding,
    /// `chunked` more than once (RFC 9112, section 6.1).
    #[error("chunked is applied twice")]
    RepeatedChunked,
    /// Another transfer coding after `chunked` (RFC 9112, section 6.3).
    #[error("chunked is not the final transfer coding")]
    ChunkedNotFinal,
    /// A connection option that is not a token (RFC 9110, section 7.6.1).
    #[error("a connection option is not a token")]
    BadConnectionOption,
    /// `Connection` names a field that is intended for all recipients (RFC 9110, section 7.6.1) and that Weir relies
    /// on.
    #[error("Connection names a field that is not for one connection")]
    ConnectionNamesReliedOnField,
    /// More connection options than real messages contain. The limit bounds the work of comparing each option with each
    /// field.
    #[error("too many connection options")]
    TooManyConnectionOptions,
}

impl HeadError {
    /// A short name for logs and metrics, which does not change between versions.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::HeadTooLong => "head_too_long",
            Self::TooManyFields => "too_many_fields",
            Self::FieldLineTooLong => "field_line_too_long",
            Self::BadVersion => "bad_version",
            Self::UnsupportedVersion => "unsupported_version",
            Self::BareLf => "bare_lf",
            Self::BareCr => "bare_cr",
            Self::ControlCharacter => "control_character",
            Self::ObsFold => "obs_fold",
            Self::BadFieldName => "bad_field_name",
            Self::WhitespaceBeforeColon => "whitespace_before_colon",
            Self::MissingColon => "missing_colon",
            Self::BadContentLength => "bad_content_length",
            Self::DifferingContentLength => "differing_content_length",
            Self::ContentLengthAndTransferEncoding => "content_length_and_transfer_encoding",
            Self::TransferEncodingInHttp10 => "transfer_encoding_in_http10",
            Self::BadTransferEncoding => "bad_transfer_encoding",
            Self::UnknownTransferCoding => "unknown_transfer_coding",
            Self::RepeatedChunked => "repeated_chunked",
            Self::ChunkedNotFinal => "chunked_not_final",
            Self::BadConnectionOption => "bad_connection_option",
            Self::ConnectionNamesReliedOnField => "connection_names_relied_on_field",
            Self::TooManyConnectionOptions => "too_many_connection_options",
        }
    }
}

/// The reason for rejecting a request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The first bytes are a TLS record: a TLS client on a cleartext port.
    #[error("a TLS handshake on a cleartext listener")]
    TlsOnCleartext,
    /// The request line is longer than [`crate::Limits::line_bytes`], or fills the head.
    #[error("the request line is too long")]
    RequestLineTooLong,
    /// The method is empty or not a token (RFC 9110, section 9.1).
    #[error("the method is not a token")]
    BadMethod,
    /// Not `method SP target SP version` (RFC 9112, section 3).
    #[error("the request line is malformed")]
    BadRequestLine,
    /// A byte that is not allowed in a target: not visible ASCII, or `#` (RFC 9112, section 3.2).
    #[error("invalid character in the request target")]
    BadTargetCharacter,
    /// The target has none of the four forms, or one that the method does not allow (RFC 9112, section 3.2).
    #[error("invalid form of request target")]
    BadTargetForm,
    /// An HTTP/1.1 request without `Host` (RFC 9112, section 3.2).
    #[error("Host is missing")]
    MissingHost,
    /// More than one `Host` (RFC 9112, section 3.2).
    #[error("Host appears twice")]
    DuplicateHost,
    /// `Host` is not a host with an optional port (RFC 9112, section 3.2; narrower: [`weir_http::Authority`]).
    #[error("Host is not a host with an optional port")]
    BadHost,
    /// A rule shared with responses.
    #[error(transparent)]
    Head(#[from] HeadError),
}

impl RequestError {
    /// The status to respond with: 400, 414, 431, 501 or 505. The connection must be closed after the
    /// response.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::RequestLineTooLong => 414,
            Self::Head(HeadError::HeadTooLong | HeadError::TooManyFields | HeadError::FieldLineTooLong) => {
                431
            }
            Self::Head(HeadError::UnknownTransferCoding) => 501,
            Self::Head(HeadError::UnsupportedVersion) => 505,
            _ => 400,
        }
    }

    /// A short name for logs and metrics, which does not change between versions.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::TlsOnCleartext => "tls_on_cleartext",
            Self::RequestLineTooLong => "request_line_too_long",
            Self::BadMethod => "bad_method",
            Self::BadRequestLine => "bad_request_line",
            Self::BadTargetCharacter => "bad_target_character",
            Self::BadTargetForm => "bad_target_form",
            Self::MissingHost => "missing_host",
            Self::DuplicateHost => "duplicate_host",
            Self::BadHost => "bad_host",
            Self::Head(error) => error.reason(),
        }
    }
}

/// The reason for rejecting a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResponseError {
    /// Not `version SP status [SP reason]` (RFC 9112, section 4).
    #[error("the status line is malformed")]
    BadStatusLine,
    /// The status line is longer than [`crate::Limits::line_bytes`], or fills the head.
    #[error("the status line is too long")]
    StatusLineTooLong,
    /// The status is not three digits, or below 100 (RFC 9110, section 15).
    #[error("the status is not a number from 100 to 999")]
    BadStatus,
    /// A rule shared with requests.
    #[error(transparent)]
    Head(#[from] HeadError),
}

impl ResponseError {
    /// The status to send instead of the response: always 502.
    #[must_use]
    pub fn status(self) -> u16 {
        502
    }

    /// A short name for logs and metrics, which does not change between versions.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::BadStatusLine => "bad_status_line",
            Self::StatusLineTooLong => "status_line_too_long",
            Self::BadStatus => "bad_status",
            Self::Head(error) => error.reason(),
        }
    }
}

/// The reason for rejecting a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The connection ended before the body was complete (RFC 9112, section 8).
    #[error("the connection ended before the body")]
    Truncated,
    /// A chunk size that is missing, not hexadecimal, or of more than 16 digits (RFC 9112, section 7.1).
    #[error("a chunk size is malformed or too large")]
    BadChunkSize,
    /// A chunk extension that is malformed (RFC 9112, section 7.1.1).
    #[error("a chunk extension is malformed")]
    BadChunkExtension,
    /// The extensions of one chunk are longer than [`crate::Limits::extension_bytes`].
    #[error("a chunk extension is too long")]
    ChunkExtensionTooLong,
    /// Chunk data that is not followed by CRLF (RFC 9112, section 7.1).
    #[error("chunk data is not followed by CRLF")]
    BadChunkEnd,
    /// A LF without a CR before it, in a chunk-size line or a trailer.
    #[error("a line ends with a bare LF")]
    BareLf,
    /// A CR without a LF after it, in a chunk-size line or a trailer.
    #[error("a bare CR")]
    BareCr,
    /// A trailer line that is not a field line (RFC 9112, section 7.1.2).
    #[error("a trailer is malformed")]
    BadTrailer,
    /// The trailer section exceeds one of [`crate::Limits`].
    #[error("the trailer section is too large")]
    TrailerTooLarge,
}

impl BodyError {
    /// The status to respond with for a request body: 400 or 431. For a response body, send 502.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::TrailerTooLarge => 431,
            _ => 400,
        }
    }

    /// A short name for logs and metrics, which does not change between versions.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "truncated_body",
            Self::BadChunkSize => "bad_chunk_size",
            Self::BadChunkExtension => "bad_chunk_extension",
            Self::ChunkExtensionTooLong => "chunk_extension_too_long",
            Self::BadChunkEnd => "bad_chunk_end",
            Self::BareLf => "bare_lf",
            Self::BareCr => "bare_cr",
            Self::BadTrailer => "bad_trailer",
            Self::TrailerTooLarge => "trailer_too_large",
        }
    }
}
