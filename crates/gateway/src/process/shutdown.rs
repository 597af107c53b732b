//! Stops the workers together: a drained worker continues to report its counters until the last one has drained.

use crate::worker::Control;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_reactor::mailbox::Sender;

/// The number of drained workers.
#[derive(Debug, Default)]
pub(crate) struct Shutdown(AtomicUsize);

/// One worker's part in the shutdown. A worker that fails counts as drained.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    shutdown: &'a Shutdown,
    all: Vec<Sender<Control>>,
    is_drained: bool,
}

impl Shutdown {
    pub(crate) fn part(&self, all: Vec<Sender<Control>>) -> Part<'_> {
        Part { shutdown: self, all, is_drained: false }
    }
}

impl Part<'_> {
    /// Whether all workers have drained. `is_drained` returns whether this worker has drained; it is not called again
    /// once it has returned true.
    pub(crate) fn is_over(&mut self, is_drained: impl FnOnce() -> bool) -> bool {
        if !self.is_drained && is_drained() {
            self.count();
        }
        self.is_drained && self.shutdown.0.load(Ordering::Acquire) >= self.all.len()
    }

    fn count(&mut self) {
        self.is_drained = true;
        if self.shutdown.0.fetch_add(1, Ordering::AcqRel) + 1 == self.all.len() {
            for worker in &self.all {
                worker.send(Control::Room);
            }
        }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.is_drained {
            self.count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_reactor::mailbox::mailbox;

    #[test]
    fn the_last_one_wakes_the_others() {
        let (mailboxes, all): (Vec<_>, Vec<_>) = (0..3).map(|_| mailbox().unwrap()).unzip();
        let shutdown = Shutdown::default();
        let [mut first, failing, mut last] = [(); 3].map(|()| shutdown.part(all.clone()));
        assert!(!first.is_over(|| false) && !first.is_over(|| true));
        assert!(!first.is_over(|| panic!("it has drained")));
        drop(failing);
        assert!(!first.is_over(|| true) && !last.is_over(|| false));
        assert!(mailboxes.iter().all(|mailbox| mailbox.take().is_empty()));
        assert!(last.is_over(|| true) && first.is_over(|| true));
        assert!(mailboxes.iter().all(|mailbox| mailbox.take().len() == 1), "once");
        drop((first, last));
        assert!(mailboxes.iter().all(|mailbox| mailbox.take().is_empty()));
    }
}
