//! The streams of a connection, by their ID.

use crate::stream::Stream;
use std::collections::VecDeque;

/// Streams in a slab. Each new ID is the greatest, so appending keeps the list of IDs sorted for a binary search. The
/// list is smaller than a map for the few hundred streams that a connection may open.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    /// IDs and slots, sorted by ID.
    ids: Vec<(u32, u32)>,
    /// Streams that we have reset, and that the owner has released or never knew: their late frames are ignored. At
    /// most [`IGNORED`] are stored; the oldest are dropped.
    ignored: VecDeque<u32>,
}

/// The maximum number of stored IDs of ignored streams.
const IGNORED: usize = 128;

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        let at = self.position(id)?;
        self.slots[self.ids[at].1 as usize].as_mut()
    }

    /// Adds a stream whose ID is greater than all others.
    pub(crate) fn insert(&mut self, id: u32, stream: Stream) {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(slot as usize) {
            Some(free) => *free = Some(stream),
            None => {
                reserve_first(&mut self.slots);
                self.slots.push(Some(stream));
            }
        }
        reserve_first(&mut self.ids);
        self.ids.push((id, slot));
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream> {
        let (_, slot) = self.ids.remove(self.position(id)?);
        self.free.push(slot);
        self.slots[slot as usize].take()
    }

    pub(crate) fn for_each(&mut self, mut visit: impl FnMut(u32, &mut Stream)) {
        for (id, slot) in &self.ids {
            if let Some(stream) = &mut self.slots[*slot as usize] {
                visit(*id, stream);
            }
        }
    }

    /// Stores a stream whose late frames are ignored.
    pub(crate) fn ignore(&mut self, id: u32) {
        if self.ignored.len() == IGNORED {
            self.ignored.pop_front();
        }
        self.ignored.push_back(id);
    }

    pub(crate) fn is_ignored(&self, id: u32) -> bool {
        self.ignored.contains(&id)
    }

    /// The heap memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Option<Stream>>()
            + self.ids.capacity() * size_of::<(u32, u32)>()
            + (self.free.capacity() + self.ignored.capacity()) * size_of::<u32>()
    }

    fn position(&self, id: u32) -> Option<usize> {
        self.ids.binary_search_by_key(&id, |(id, _)| *id).ok()
    }
}

/// Makes room for exactly one element: many connections never have more than one stream at a time, and an empty list
/// would otherwise grow to four slots.
fn reserve_first<T>(list: &mut Vec<T>) {
    if list.capacity() == 0 {
        list.reserve_exact(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Half;

    #[test]
    fn slots_are_used_again() {
        let mut streams = Streams::default();
        let stream = |missing| Stream { missing: Some(missing), ..Stream::new(Half::Body, 1, 1) };
        for id in [1, 3, 5] {
            streams.insert(id, stream(id.into()));
        }
        assert_eq!(streams.remove(3).and_then(|stream| stream.missing), Some(3));
        assert!(streams.remove(3).is_none() && streams.get(3).is_none());
        streams.insert(7, stream(7));
        assert_eq!((streams.len(), streams.slots.len()), (3, 3));
        for id in [1, 5, 7] {
            assert_eq!(streams.get(id).and_then(|stream| stream.missing), Some(id.into()));
        }
        let mut all = Vec::new();
        streams.for_each(|id, stream| all.push((id, stream.missing)));
        assert_eq!(all, [(1, Some(1)), (5, Some(5)), (7, Some(7))]);
    }

    #[test]
    fn the_oldest_reset_streams_are_forgotten() {
        let mut streams = Streams::default();
        (0..=IGNORED as u32).for_each(|id| streams.ignore(id));
        assert!(!streams.is_ignored(0) && streams.is_ignored(1) && streams.is_ignored(IGNORED as u32));
    }
}
