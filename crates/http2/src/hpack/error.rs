//! Violations of the rules of HPACK, with one variant for each rule. All are connection errors, since both sides'
//! dynamic tables differ afterwards.

use crate::ErrorCode;
use thiserror::Error;

/// The rule that a field block violates (RFC 9113, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HpackError {
    /// The block ends within a field.
    #[error("a field block ends within a field")]
    Truncated,
    /// An integer of more than 28 bits or 4 continuation bytes (RFC 7541, section 5.1 leaves the limit to the decoder).
    #[error("an integer is too large")]
    IntegerTooLarge,
    /// An index of 0, or beyond the dynamic table (RFC 7541, sections 2.3.3 and 6.1).
    #[error("an index without an entry")]
    BadIndex,
    /// Padding of more than 7 bits, or of another value than the start of EOS; or EOS itself (RFC 7541, section 5.2).
    #[error("a Huffman-coded string is malformed")]
    BadHuffman,
    /// A dynamic table size update after a field (RFC 7541, section 4.2).
    #[error("a table size update after a field")]
    LateSizeUpdate,
    /// A dynamic table size above SETTINGS_HEADER_TABLE_SIZE (RFC 7541, sections 4.2 and 6.3).
    #[error("the dynamic table exceeds SETTINGS_HEADER_TABLE_SIZE")]
    TableTooLarge,
    /// The fields exceed four times the [`Limits::head_bytes`](crate::Limits). Up to this size the decoder continues,
    /// to keep its table in sync.
    #[error("a field block decompresses to far more than the limit")]
    Bomb,
}

impl HpackError {
    /// The code with which GOAWAY reports this error.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Bomb => ErrorCode::ENHANCE_YOUR_CALM,
            _ => ErrorCode::COMPRESSION_ERROR,
        }
    }
}
