//! Holds the prepared threads until all of them are ready, so that they begin together or not at all.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A barrier: closed at first, then either open or given up permanently.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Closed,
    Open,
    /// No thread begins.
    GivenUp,
}

impl StartBarrier {
    /// Waits until the barrier opens; returns false if the barrier is given up.
    pub(crate) fn pass(&self) -> bool {
        let mut state = self.lock();
        state.waiting += 1;
        self.changed.notify_all();
        let state = self.changed.wait_while(state, |state| state.phase == Phase::Closed);
        state.unwrap_or_else(PoisonError::into_inner).phase == Phase::Open
    }

    /// Waits until `count` threads wait at the barrier; returns false if the barrier is given up.
    pub(crate) fn await_all(&self, count: usize) -> bool {
        let waits = |state: &mut State| state.phase == Phase::Closed && state.waiting < count;
        let state = self.changed.wait_while(self.lock(), waits);
        state.unwrap_or_else(PoisonError::into_inner).phase == Phase::Closed
    }

    pub(crate) fn open(&self) {
        self.set(Phase::Open);
    }

    /// Stops all threads from beginning. No effect once the barrier is open.
    pub(crate) fn give_up(&self) {
        self.set(Phase::GivenUp);
    }

    fn set(&self, phase: Phase) {
        let mut state = self.lock();
        if state.phase == Phase::Closed {
            state.phase = phase;
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn all_begin_together() {
        let barrier = StartBarrier::default();
        thread::scope(|scope| {
            let workers = [(); 3].map(|()| scope.spawn(|| barrier.pass()));
            assert!(barrier.await_all(3));
            assert!(workers.iter().all(|worker| !worker.is_finished()));
            barrier.open();
            assert!(workers.into_iter().all(|worker| worker.join().unwrap()));
        });
        barrier.give_up();
        assert!(barrier.pass(), "they have begun");
    }

    #[test]
    fn when_one_fails_none_begins() {
        let barrier = StartBarrier::default();
        thread::scope(|scope| {
            let worker = scope.spawn(|| barrier.pass());
            let opener = scope.spawn(|| barrier.await_all(2));
            barrier.give_up();
            assert!(!worker.join().unwrap() && !opener.join().unwrap());
        });
    }
}
