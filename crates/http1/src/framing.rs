//! Framing: the rule by which a recipient finds the end of a body, from `Content-Length` or `Transfer-Encoding`.

use crate::{HeadError, Version};
use weir_http::scan::{decimal, elements, is_token_byte};

/// The end of one message's body (RFC 9112, section 6.3), decided only once, from the head.
///
/// [`crate::framing_field`] writes a forwarded message's framing from this value. The received
/// `Content-Length` and `Transfer-Encoding` lines are not copied, since a folded `Content-Length: 5, 5` must
/// not be forwarded (RFC 9110, section 8.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    #[default]
    None,
    /// The body has this many bytes.
    Length(u64),
    /// The body consists of chunks and ends with an empty chunk.
    Chunked,
    /// The body ends with the connection; never in a request.
    UntilClose,
}

impl Framing {
    /// Whether there is no body, or an empty one.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }

    /// Adds a `Content-Length`. Elements in one line and in several lines are equivalent (RFC 9110, section 5.3), so
    /// `5, 5` is as valid as two lines with 5.
    pub(crate) fn note_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        for element in elements(value) {
            let length = decimal(element).ok_or(HeadError::BadContentLength)?;
            match self {
                Self::Chunked => return Err(HeadError::ContentLengthAndTransferEncoding),
                Self::Length(other) if *other != length => return Err(HeadError::DifferingContentLength),
                _ => *self = Self::Length(length),
            }
        }
        Ok(())
    }

    /// Adds a `Transfer-Encoding`. Ignores empty elements (RFC 9110, section 5.6.1.2), but rejects a field without any
    /// coding: recipients differ on whether such a field is present, and no honest sender writes one.
    pub(crate) fn note_codings(&mut self, value: &[u8], version: Version) -> Result<(), HeadError> {
        if version == Version::Http10 {
            return Err(HeadError::TransferEncodingInHttp10);
        }
        let mut codings = elements(value).filter(|coding| !coding.is_empty()).peekable();
        if codings.peek().is_none() {
            return Err(HeadError::BadTransferEncoding);
        }
        for coding in codings {
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            match self {
                _ if !coding.first().is_some_and(|&b| is_token_byte(b)) => {
                    return Err(HeadError::BadTransferEncoding);
                }
                Self::Length(_) => return Err(HeadError::ContentLengthAndTransferEncoding),
                Self::Chunked if chunked => return Err(HeadError::RepeatedChunked),
                Self::Chunked => return Err(HeadError::ChunkedNotFinal),
                _ if !chunked => return Err(HeadError::UnknownTransferCoding),
                _ => *self = Self::Chunked,
            }
        }
        Ok(())
    }
}
