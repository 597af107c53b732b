//! Ranges of bytes in a buffer.

use std::ops::Range;

/// A range of bytes in the parsed buffer of a head.
///
/// Half the size of a `Range<usize>`, so that fields occupy fewer cache lines. A head never reaches 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of this span. `buf` must start where the parsed buffer started.
    ///
    /// # Panics
    /// If the span ends beyond `buf`, which is a bug in the caller.
    #[inline]
    #[must_use]
    pub fn of(self, buf: &[u8]) -> &[u8] {
        &buf[self.range()]
    }

    /// The length in bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the span is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The span as an index range.
    #[inline]
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Creates a span from offsets below 4 GiB.
    #[inline]
    #[must_use]
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }
}
