//! The result of a step of a body decoder.

use std::ops::Range;

/// The result of one step of a [`crate::BodyDecoder`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The number of input bytes consumed.
    pub consumed: usize,
    /// The body bytes within them; may be empty.
    pub data: Range<usize>,
}

/// The length of `input`, or `missing` if that is less.
pub(crate) fn within(missing: u64, input: &[u8]) -> usize {
    usize::try_from(missing).map_or(input.len(), |missing| missing.min(input.len()))
}
