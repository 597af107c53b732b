//! Storage with generational keys: a stale key never matches a reused slot.

/// The key of one value in one [`Slab`], valid while that value lives.
///
/// A key travels through the poller and the timer wheel as one `u64`: generation, tag, index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// A key outside any slab, for an object that lives as long as the loop (a listener, a mailbox). `index`
    /// is at most `Key::MAX_INDEX`.
    pub const fn fixed(tag: u8, index: u32) -> Self {
        Self::new(0, tag, index)
    }

    /// The slab, or the kind of fixed object, that this key belongs to.
    pub const fn tag(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// The slot within the slab, or the index of a fixed key.
    pub const fn index(self) -> u32 {
        self.0 as u32 & Self::MAX_INDEX
    }

    /// The largest index: 16 million connections per core.
    pub const MAX_INDEX: u32 = (1 << 24) - 1;

    const fn new(generation: u32, tag: u8, index: u32) -> Self {
        assert!(index <= Self::MAX_INDEX);
        Self((generation as u64) << 32 | (tag as u64) << 24 | index as u64)
    }

    const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) const fn from_u64(raw: u64) -> Self {
        Self(raw)
    }

    pub(crate) const fn as_u64(self) -> u64 {
        self.0
    }
}

/// Values under generational keys. A slot is reused after its value is removed.
#[derive(Debug)]
pub struct Slab<T> {
    tag: u8,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    /// An empty slab whose keys carry `tag`.
    pub const fn new(tag: u8) -> Self {
        Self { tag, slots: Vec::new(), free: Vec::new() }
    }

    /// Stores `value`, and returns its key.
    #[inline]
    pub fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        Key::new(slot.generation, self.tag, index)
    }

    /// The value under `key`, unless it has been removed.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index() as usize)?;
        if slot.generation == key.generation() { slot.value.as_ref() } else { None }
    }

    /// The value under `key`, unless it has been removed.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index() as usize)?;
        if slot.generation == key.generation() { slot.value.as_mut() } else { None }
    }

    /// Removes the value; its key becomes stale.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index() as usize)?;
        if slot.generation != key.generation() {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index());
        Some(value)
    }

    /// Drops the value in place; its key becomes stale. Returns whether there was a value. For large values this is
    /// cheaper than [`Slab::remove`], which copies the value.
    pub fn discard(&mut self, key: Key) -> bool {
        let Some(slot) = self.slots.get_mut(key.index() as usize) else { return false };
        if slot.generation != key.generation() || slot.value.is_none() {
            return false;
        }
        slot.value = None;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index());
        true
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether the slab is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys of all values, in no particular order.
    pub fn keys(&self) -> Vec<Key> {
        let used = self.slots.iter().enumerate().filter(|(_, slot)| slot.value.is_some());
        used.map(|(index, slot)| Key::new(slot.generation, self.tag, index as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_never_reaches_the_value_that_took_its_slot() {
        let mut slab = Slab::new(3);
        let old = slab.insert("old");
        assert_eq!(slab.remove(old), Some("old"));
        let new = slab.insert("new");
        assert_eq!(old.index(), new.index(), "the slot is reused");
        assert_eq!(slab.get(old), None);
        assert_eq!(slab.get_mut(old), None);
        assert_eq!(slab.remove(old), None);
        assert!(!slab.discard(old));
        assert_eq!(slab.get(new), Some(&"new"));
        assert_eq!((slab.len(), new.tag()), (1, 3));
    }

    #[test]
    fn keys_lists_what_lives() {
        let mut slab = Slab::new(0);
        let keys: Vec<Key> = (0..5).map(|n| slab.insert(n)).collect();
        slab.remove(keys[1]);
        assert!(slab.discard(keys[4]) && !slab.discard(keys[4]));
        assert_eq!(slab.keys(), [keys[0], keys[2], keys[3]]);
    }
}
