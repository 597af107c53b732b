//! The connections that all workers together may have to one server.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limit of one server, shared by all workers. Touched when a connection begins or ends, and while requests wait: never for
/// one that gets a connection at once.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    open: AtomicUsize,
    /// Whether anything is in `wanted_by`.
    is_wanted: AtomicBool,
    /// Workers whose requests wait, the first one first.
    wanted_by: Mutex<Vec<usize>>,
}

/// The right to one connection, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Slots>);

// The order of all these operations matters: who frees a slot looks for wishes after that, and who has a wish looks for a slot
// after it is known. So one of them sees the other.
impl Slots {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            open: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
            wanted_by: Mutex::default(),
        }
    }

    /// Whether another connection may begin.
    pub(crate) fn has_room(&self) -> bool {
        self.open() < self.most
    }

    /// Connections that there are.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// The right to another connection, unless there are as many as there may be.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Slot> {
        let more = |open: usize| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Slot(Arc::clone(self)))
    }

    /// A worker's requests wait; returns whether that is news.
    pub(crate) fn want(&self, worker: usize) -> bool {
        let mut wanted_by = self.wanted_by();
        let is_news = !wanted_by.contains(&worker);
        if is_news {
            wanted_by.push(worker);
            self.is_wanted.store(true, Ordering::SeqCst);
        }
        is_news
    }

    /// The worker other than `own` that has waited longest; it is no longer known to wait.
    #[inline]
    pub(crate) fn wanted(&self, own: usize) -> Option<usize> {
        if !self.is_wanted.load(Ordering::SeqCst) {
            return None;
        }
        self.next(|worker| worker != own)
    }

    /// A worker's requests wait no longer, or a connection is on its way to it.
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

impl PartialEq for Slots {
    /// By the limit: how many are open is no setting.
    fn eq(&self, other: &Self) -> bool {
        self.most == other.most
    }
}

impl Eq for Slots {}

impl Slot {
    /// Those that it is one of.
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
        // A worker does not give to itself, and is not in the way of others.
        assert_eq!([3, 3, 0, 0].map(|own| slots.wanted(own)), [Some(2), None, Some(3), None]);
    }

    /// No worker waits for a slot that is free: on many threads, each of which takes, frees and wants.
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
