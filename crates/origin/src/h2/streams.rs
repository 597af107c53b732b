//! A connection's streams without a complete response.

use super::stream::Stream;
use weir_http2::StreamNo;

/// Streams sorted by number. Numbers only grow, so nearly every stream is appended.
#[derive(Default)]
pub(super) struct Streams(Vec<Stream>);

impl Streams {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&mut self, no: StreamNo) -> Option<&mut Stream> {
        let at = self.position(no).ok()?;
        self.0.get_mut(at)
    }

    pub(super) fn insert(&mut self, stream: Stream) {
        let at = self.position(stream.no).unwrap_or_else(|at| at);
        self.0.insert(at, stream);
    }

    pub(super) fn remove(&mut self, no: StreamNo) -> Option<Stream> {
        let at = self.position(no).ok()?;
        Some(self.0.remove(at))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.0.iter_mut()
    }

    /// The stream's place, or the place for it.
    fn position(&self, no: StreamNo) -> Result<usize, usize> {
        match self.0.last() {
            Some(last) if last.no < no => Err(self.0.len()),
            _ => self.0.binary_search_by_key(&no, |stream| stream.no),
        }
    }
}
