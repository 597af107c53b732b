//! The limit of connections to one server, across all workers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limit of one server, which all workers share. Its state changes when a connection opens or closes, or a request
/// waits for one, but not when a request takes an idle connection.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    open: AtomicUsize,
    /// Whether `wanted_by` has an entry.
    is_wanted: AtomicBool,
    /// Workers with waiting requests, in their order of arrival.
    wanted_by: Mutex<Vec<usize>>,
}

/// The right to one connection, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Slots>);

// A worker that frees a slot checks `wanted_by` afterwards; a worker that needs one adds itself there before it checks
// for a free slot. With sequential consistency, at least one of the two workers observes the other's update.
impl Slots {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            open: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
            wanted_by: Mutex::default(),
        }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(crate) fn has_room(&self) -> bool {
        self.open() < self.most
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Takes a slot; `None` if no slot is free.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Slot> {
        let more = |open: usize| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Slot(Arc::clone(self)))
    }

    /// Adds a worker whose requests wait; returns whether the worker was not waiting yet.
    pub(crate) fn want(&self, worker: usize) -> bool {
        let mut wanted_by = self.wanted_by();
        let is_news = !wanted_by.contains(&worker);
        if is_news {
            wanted_by.push(worker);
            self.is_wanted.store(true, Ordering::SeqCst);
        }
        is_news
    }

    /// Removes and returns the worker other than `own` that has waited longest.
    #[inline]
    pub(crate) fn wanted(&self, own: usize) -> Option<usize> {
        if !self.is_wanted.load(Ordering::SeqCst) {
            return None;
        }
        self.next(|worker| worker != own)
    }

    pub(crate) fn is_wanted_by_others(&self, own: usize) -> bool {
        self.is_wanted.load(Ordering::SeqCst) && self.wanted_by().iter().any(|worker| *worker != own)
    }

    /// Removes a worker: its requests no longer wait, or another worker is sending it a connection.
    pub(crate) fn serve(&self, worker: usize) {
        if self.is_wanted.load(Ordering::SeqCst) {
            self.next(|waiting| waiting == worker);
        }
    }

    #[cold]
    fn next(&self, is_meant: impl Fn(usize) -> bool) -> Option<usize> {
        let mut wanted_by = self.wanted_by();
        let at = wanted_by.iter().position(|worker| is_meant(*worker))?;
        let worker = wanted_by.remove(at);
        self.is_wanted.store(!wanted_by.is_empty(), Ordering::SeqCst);
        Some(worker)
    }

    fn wanted_by(&self) -> MutexGuard<'_, Vec<usize>> {
        self.wanted_by.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    pub(crate) fn slots(&self) -> &Arc<Slots> {
        &self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_and_given_back() {
        let slots = Arc::new(Slots::new(2));
        let (first, second) = (slots.take(), slots.take());
        assert!(first.is_some() && second.is_some() && slots.take().is_none() && !slots.has_room());
        drop(first);
        assert!(slots.has_room() && slots.take().is_some());
    }

    #[test]
    fn who_waited_first_is_served_first_and_once() {
        let slots = Slots::new(1);
        assert_eq!(slots.wanted(0), None);
        assert!(slots.want(3) && slots.want(1) && !slots.want(3) && slots.want(2));
        slots.serve(1);
        // A worker does not serve itself, and does not block others.
        assert_eq!([3, 3, 0, 0].map(|own| slots.wanted(own)), [Some(2), None, Some(3), None]);
    }

    /// Threads take and free slots at the same time: afterwards, all slots must be free.
    #[test]
    fn no_slot_is_lost() {
        let slots = Arc::new(Slots::new(3));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        drop(slots.take());
                    }
                });
            }
        });
        assert_eq!(slots.open.load(Ordering::SeqCst), 0);
    }
}
