//! Where workers wait, complete, until all of them are and may begin.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Closed at first.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    is: Is,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Is {
    #[default]
    Closed,
    Open,
    /// Nobody begins.
    GivenUp,
}

impl Gate {
    /// Waits until it is open; false: it is given up.
    pub(crate) fn pass(&self) -> bool {
        let mut state = self.lock();
        state.waiting += 1;
        self.changed.notify_all();
        let state = self.changed.wait_while(state, |state| state.is == Is::Closed);
        state.unwrap_or_else(PoisonError::into_inner).is == Is::Open
    }

    /// Waits until so many wait; false: it is given up.
    pub(crate) fn await_all(&self, count: usize) -> bool {
        let waits = |state: &mut State| state.is == Is::Closed && state.waiting < count;
        let state = self.changed.wait_while(self.lock(), waits);
        state.unwrap_or_else(PoisonError::into_inner).is == Is::Closed
    }

    /// Lets all begin.
    pub(crate) fn open(&self) {
        self.set(Is::Open);
    }

    /// Lets nobody begin, unless they have.
    pub(crate) fn give_up(&self) {
        self.set(Is::GivenUp);
    }

    fn set(&self, is: Is) {
        let mut state = self.lock();
        if state.is == Is::Closed {
            state.is = is;
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
        let gate = Gate::default();
        thread::scope(|scope| {
            let workers = [(); 3].map(|()| scope.spawn(|| gate.pass()));
            assert!(gate.await_all(3));
            assert!(workers.iter().all(|worker| !worker.is_finished()));
            gate.open();
            assert!(workers.into_iter().all(|worker| worker.join().unwrap()));
        });
        gate.give_up();
        assert!(gate.pass(), "they have begun");
    }

    #[test]
    fn when_one_fails_nobody_begins() {
        let gate = Gate::default();
        thread::scope(|scope| {
            let worker = scope.spawn(|| gate.pass());
            let opener = scope.spawn(|| gate.await_all(2));
            gate.give_up();
            assert!(!worker.join().unwrap() && !opener.join().unwrap());
        });
    }
}
