//! Positions in a buffer.

use std::ops::Range;

/// A range of bytes in the buffer that a head was parsed from.
///
/// Half the size of a `Range<usize>`: a head never reaches 4 GiB, and the fields of a head fit in fewer cache lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of this span. `buf` must start where the parsed buffer started.
    ///
    /// # Panics
    /// When `buf` is shorter than the parsed head, which is a mistake of the caller.
    #[inline]
    #[must_use]
    pub fn of(self, buf: &[u8]) -> &[u8] {
        &buf[self.range()]
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it holds no byte.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// As an index range.
    #[inline]
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Offsets come from a window that [`crate::Limits`] caps below 4 GiB.
    #[inline]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }
}

/// The result of one step of a [`crate::BodyDecoder`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of input consumed.
    pub consumed: usize,
    /// The body bytes among them; may be empty.
    pub data: Range<usize>,
}

/// As many of the missing bytes as the input has.
pub(crate) fn within(missing: u64, input: &[u8]) -> usize {
    usize::try_from(missing).map_or(input.len(), |missing| missing.min(input.len()))
}
