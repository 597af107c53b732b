//! The decoder's dynamic table (RFC 7541, sections 2.3.2 and 4).

use crate::head::Verdict;
use std::collections::VecDeque;

/// Lines `name: value\r\n` in a ring of bytes, with their verdicts. The ring and the list of entries grow on demand,
/// since many connections store no entry, and most others only a few.
#[derive(Debug)]
pub(super) struct Table {
    /// Empty, or of a length that is a power of two and fits the lines of all entries.
    ring: Vec<u8>,
    /// In order of insertion: the newest entry is the last one.
    entries: VecDeque<Entry>,
    /// The size as RFC 7541, section 4.1 defines it: names, values, and 32 bytes for each entry.
    size: usize,
    max_size: usize,
    /// The ring position of the next line to insert.
    end: usize,
}

/// A line in the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    start: u32,
    length: u32,
    name: u32,
    pub(super) verdict: Verdict,
}

/// The bytes counted for an entry, and for a field in SETTINGS_MAX_HEADER_LIST_SIZE, in addition to name and value.
pub(crate) const OVERHEAD: usize = 32;

/// The maximum number of bytes that a line adds to name and value.
pub(crate) const SEPARATORS: usize = b": \r\n".len();

/// The minimum size of a ring with entries, in bytes.
const SMALLEST_RING: usize = 256;

impl Entry {
    /// The size of name and value with [`OVERHEAD`]. A line without a value has a separator one byte shorter.
    pub(super) fn size(&self) -> usize {
        let separators = SEPARATORS - usize::from(self.length == self.name + 3);
        self.length as usize - separators + OVERHEAD
    }

    pub(super) fn name_length(&self) -> usize {
        self.name as usize
    }
}

impl Table {
    /// A table that never exceeds `largest` bytes.
    pub(super) fn new(largest: usize) -> Self {
        Self { ring: Vec::new(), entries: VecDeque::new(), size: 0, max_size: 4096.min(largest), end: 0 }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn max_size(&self) -> usize {
        self.max_size
    }

    /// Changes the maximum size, up to the largest, and evicts entries that no longer fit (RFC 7541, section 4.3).
    pub(super) fn set_max_size(&mut self, max_size: usize) {
        self.max_size = max_size;
        self.evict_to(max_size);
    }

    /// The entry with this index; 0 is the newest.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<Entry> {
        self.entries.len().checked_sub(index + 1).map(|at| self.entries[at])
    }

    /// Appends an entry's line.
    #[inline]
    pub(super) fn copy_line(&self, entry: Entry, out: &mut Vec<u8>) {
        self.copy(entry.start as usize, entry.length as usize, out);
    }

    /// Appends an entry's name.
    #[inline]
    pub(super) fn copy_name(&self, entry: Entry, out: &mut Vec<u8>) {
        self.copy(entry.start as usize, entry.name as usize, out);
    }

    #[inline]
    fn copy(&self, start: usize, length: usize, out: &mut Vec<u8>) {
        let first = length.min(self.ring.len() - start);
        out.extend_from_slice(&self.ring[start..start + first]);
        out.extend_from_slice(&self.ring[..length - first]);
    }

    /// Adds a line whose name has `name` bytes. A line that is larger than the table evicts all entries and is not
    /// stored (RFC 7541, section 4.4).
    pub(super) fn insert(&mut self, line: &[u8], name: usize, verdict: Verdict) {
        let mut entry = Entry { start: 0, length: line.len() as u32, name: name as u32, verdict };
        let Some(room) = self.max_size.checked_sub(entry.size()) else {
            self.evict_to(0);
            return;
        };
        self.evict_to(room);
        // The ring contains lines: each takes at least this much less than its entry's size.
        let excess = (OVERHEAD - SEPARATORS) * self.entries.len();
        let needed = self.size - excess + line.len();
        if needed > self.ring.len() {
            self.grow(needed);
        }
        entry.start = self.end as u32;
        let first = line.len().min(self.ring.len() - self.end);
        let (before, after) = line.split_at(first);
        self.ring[self.end..self.end + first].copy_from_slice(before);
        self.ring[..after.len()].copy_from_slice(after);
        self.end = (self.end + line.len()) & (self.ring.len() - 1);
        self.size += entry.size();
        self.entries.push_back(entry);
    }

    /// Makes room for lines of this many bytes.
    #[cold]
    fn grow(&mut self, bytes: usize) {
        let size = bytes.next_power_of_two().max(SMALLEST_RING);
        let mut ring = Vec::with_capacity(size);
        let mut entries = std::mem::take(&mut self.entries);
        for entry in &mut entries {
            let start = ring.len() as u32;
            self.copy(entry.start as usize, entry.length as usize, &mut ring);
            entry.start = start;
        }
        self.entries = entries;
        self.end = ring.len();
        ring.resize(size, 0);
        self.ring = ring;
    }

    /// The heap memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.ring.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    fn evict_to(&mut self, size: usize) {
        while self.size > size {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.size -= oldest.size();
        }
    }
}
