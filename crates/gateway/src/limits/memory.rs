//! The memory of all connections, as estimated by the workers, and whether it exceeds the limit.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Memory {
    used: AtomicUsize,
    is_short: AtomicBool,
}

impl Memory {
    /// Replaces a worker's earlier estimate `before` with `now`. Returns whether memory is short: from `most` bytes
    /// until use falls below seven eighths of `most`, so that the state does not flap.
    pub(crate) fn weigh(&self, before: usize, now: usize, most: Option<usize>) -> bool {
        let more = now.wrapping_sub(before);
        let used = self.used.fetch_add(more, Ordering::SeqCst).wrapping_add(more);
        let is_short = most.is_some_and(|most| match self.is_short.load(Ordering::SeqCst) {
            true => used >= most - most / 8,
            false => used >= most,
        });
        self.is_short.store(is_short, Ordering::SeqCst);
        is_short
    }

    /// The estimated bytes in use, over all workers.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_short_from_the_limit_until_there_is_an_eighth_less() {
        let memory = Memory::default();
        let most = Some(800);
        // One worker's estimate, then a second worker's in addition.
        assert!(!memory.weigh(0, 500, most) && !memory.weigh(0, 299, most));
        assert!(memory.weigh(299, 300, most));
        assert!(memory.weigh(500, 400, most), "700 is seven eighths");
        assert!(!memory.weigh(400, 399, most) && !memory.weigh(399, 499, most));
        assert!(memory.weigh(499, 500, most));
        assert!(!memory.weigh(500, 500, None));
        assert_eq!(memory.used(), 800);
    }
}
