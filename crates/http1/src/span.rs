//! Positions in a buffer.

use std::ops::Range;

/// A range of bytes in the parsed buffer of a head.
///
/// Half the size of a `Range<usize>`: a head never reaches 4 GiB, and its fields occupy fewer cache lines.
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
    /// If `buf` is shorter than the parsed head, which is a bug in the caller.
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

    /// Offsets come from a window that [`crate::Limits`] caps below 4 GiB.
    #[inline]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }
}

/// The result of one step of a [`crate::BodyDecoder`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The number of input bytes consumed.
    pub consumed: usize,
    /// The body bytes within them; may be empty.
    pub data: Range<usize>,
}

/// The number of missing bytes that `input` contains.
pub(crate) fn within(missing: u64, input: &[u8]) -> usize {
    usize::try_from(missing).map_or(input.len(), |missing| missing.min(input.len()))
}
