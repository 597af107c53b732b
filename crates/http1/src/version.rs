//! The protocol version of a start line.

use crate::HeadError;

/// The version in a start line. The strict parser rejects all other versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// `HTTP/1.0`
    Http10,
    /// `HTTP/1.1`
    #[default]
    Http11,
}

impl Version {
    /// The length of a version such as `HTTP/1.1`, in bytes.
    pub(crate) const LEN: usize = 8;

    /// Parses the version at `at`; `None` if the bytes end within it.
    #[inline]
    pub(crate) fn read(buf: &[u8], at: usize) -> Result<Option<Self>, HeadError> {
        match buf[at..].first_chunk() {
            Some(b"HTTP/1.1") => Ok(Some(Self::Http11)),
            Some(b"HTTP/1.0") => Ok(Some(Self::Http10)),
            _ => Self::why_not(&buf[at..]),
        }
    }

    /// Distinguishes an unsupported version from a malformed one. `HTTP/2` is unsupported even without a minor digit,
    /// since newer clients omit it.
    #[cold]
    fn why_not(bytes: &[u8]) -> Result<Option<Self>, HeadError> {
        let name = bytes.len().min(5);
        if bytes[..name] != b"HTTP/"[..name] {
            return Err(HeadError::BadVersion);
        }
        match bytes[name..] {
            [major, ..] if !major.is_ascii_digit() => Err(HeadError::BadVersion),
            [major, ..] if major != b'1' => Err(HeadError::UnsupportedVersion),
            [_, dot, ..] if dot != b'.' => Err(HeadError::BadVersion),
            [_, _, minor, ..] if minor.is_ascii_digit() => Err(HeadError::UnsupportedVersion),
            [_, _, _, ..] => Err(HeadError::BadVersion),
            _ => Ok(None),
        }
    }
}
