//! Typed keys, so that the key of a client cannot index upstream connections.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use weir_reactor::{Key, Slab};

/// A kind of value in a [`Store`]. Each kind is one of the empty types below, and has its own type of keys, [`Id`].
pub(crate) trait Kind {
    /// The tag that marks keys of this kind in the poller and the timers.
    const TAG: u8;
    /// The internal error for a value that must exist, but is missing.
    const MISSING: &str;
}

#[derive(Debug)]
pub(crate) enum OfClient {}
#[derive(Debug)]
pub(crate) enum OfUpstream {}
#[derive(Debug)]
pub(crate) enum OfExchange {}
#[derive(Debug)]
pub(crate) enum OfTunnel {}
#[derive(Debug)]
pub(crate) enum OfMirror {}
#[derive(Debug)]
pub(crate) enum OfService {}
#[derive(Debug)]
pub(crate) enum OfServer {}

impl Kind for OfClient {
    const TAG: u8 = 1;
    const MISSING: &str = "a missing client connection";
}
impl Kind for OfUpstream {
    const TAG: u8 = 2;
    const MISSING: &str = "a missing server connection";
}
impl Kind for OfExchange {
    const TAG: u8 = 3;
    const MISSING: &str = "a missing exchange";
}
impl Kind for OfTunnel {
    const TAG: u8 = 4;
    const MISSING: &str = "a missing tunnel";
}
impl Kind for OfMirror {
    const TAG: u8 = 8;
    const MISSING: &str = "a missing mirrored request";
}
impl Kind for OfService {
    const TAG: u8 = 6;
    const MISSING: &str = "a missing service";
}
impl Kind for OfServer {
    const TAG: u8 = 7;
    const MISSING: &str = "a missing server";
}

/// The tag of listeners, which are in no [`Store`].
pub(crate) const FRONTEND: u8 = 5;
/// The tag of the timers for clients of removed and changed listeners.
pub(crate) const LISTENER_DRAINS: u8 = 9;

pub(crate) type ClientId = Id<OfClient>;
pub(crate) type UpstreamId = Id<OfUpstream>;
pub(crate) type ExchangeId = Id<OfExchange>;
pub(crate) type TunnelId = Id<OfTunnel>;
pub(crate) type MirrorId = Id<OfMirror>;
pub(crate) type ServiceId = Id<OfService>;
pub(crate) type ServerId = Id<OfServer>;

/// A key for the [`Store`] of kind `K`; the compiler rejects it for stores of other kinds.
pub(crate) struct Id<K>(Key, PhantomData<fn() -> K>);

impl<K: Kind> Id<K> {
    /// The ID for `key` from the poller or the timers, if it is of this kind.
    #[inline]
    pub(crate) fn of(key: Key) -> Option<Self> {
        (key.tag() == K::TAG).then_some(Self(key, PhantomData))
    }

    /// The untyped key, for the poller and the timers.
    #[inline]
    pub(crate) fn key(self) -> Key {
        self.0
    }
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Id<K> {}

impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K> Eq for Id<K> {}

impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

thread_local! {
    static LOOK_UPS: Cell<u64> = const { Cell::new(0) };
    static MISSING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Takes the latest internal error that [`note_missing`] recorded in this thread, if any.
#[inline]
pub(crate) fn take_missing() -> Option<&'static str> {
    MISSING.take()
}

/// Records that a value that must exist is missing; the worker reports it at the end of the turn.
#[cold]
pub(crate) fn note_missing(what: &'static str) {
    debug_assert!(false, "{what}");
    MISSING.set(Some(what));
}

/// Lookups by this thread in all stores; 0 in release builds.
pub(crate) fn look_ups() -> u64 {
    LOOK_UPS.get()
}

#[inline]
fn count_look_up() {
    if cfg!(debug_assertions) {
        LOOK_UPS.set(LOOK_UPS.get() + 1);
    }
}

#[derive(Debug)]
pub(crate) struct Store<K, T>(Slab<T>, PhantomData<fn() -> K>);

impl<K: Kind, T> Store<K, T> {
    pub(crate) const fn new() -> Self {
        Self(Slab::new(K::TAG), PhantomData)
    }

    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Id<K> {
        Id(self.0.insert(value), PhantomData)
    }

    #[inline]
    pub(crate) fn get(&self, id: Id<K>) -> Option<&T> {
        count_look_up();
        self.0.get(id.0)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: Id<K>) -> Option<&mut T> {
        count_look_up();
        self.0.get_mut(id.0)
    }

    /// As [`Self::get`], for a value that must exist: the worker reports its absence at the end of the turn.
    #[inline]
    pub(crate) fn present(&self, id: Id<K>) -> Option<&T> {
        let found = self.get(id);
        if found.is_none() {
            note_missing(K::MISSING);
        }
        found
    }

    /// As [`Self::present`], but mutable.
    #[inline]
    pub(crate) fn present_mut(&mut self, id: Id<K>) -> Option<&mut T> {
        let found = self.get_mut(id);
        if found.is_none() {
            note_missing(K::MISSING);
        }
        found
    }

    pub(crate) fn remove(&mut self, id: Id<K>) -> Option<T> {
        self.0.remove(id.0)
    }

    /// As [`Self::remove`], for a value that must exist: the worker reports its absence at the end of the turn.
    pub(crate) fn take(&mut self, id: Id<K>) -> Option<T> {
        let taken = self.remove(id);
        if taken.is_none() {
            note_missing(K::MISSING);
        }
        taken
    }

    /// Removes and drops a value in place. [`Self::remove`] would copy the value, which takes time if it is large.
    pub(crate) fn discard(&mut self, id: Id<K>) {
        self.0.discard(id.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The IDs of all values, in no particular order.
    pub(crate) fn ids(&self) -> Vec<Id<K>> {
        self.0.keys().into_iter().map(|key| Id(key, PhantomData)).collect()
    }
}
