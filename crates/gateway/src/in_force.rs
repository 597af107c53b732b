//! The snapshot in force: replaced as a whole by a reload, and in part when names have moved.

use crate::config::Snapshot;
use crate::health;
use crate::observe::journal::Journal;
use crate::worker::Control;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_reactor::mailbox::Sender;

/// What all workers have, or will have with their next mail. Changes from different threads come to all of them in one order.
#[derive(Debug)]
pub(crate) struct InForce {
    state: Mutex<State>,
    workers: Vec<Sender<Control>>,
    journal: Journal,
}

#[derive(Debug)]
struct State {
    snapshot: Arc<Snapshot>,
    /// The health checks; `None`: there were none so far.
    health: Option<Sender<Arc<Snapshot>>>,
}

impl InForce {
    /// A snapshot that the workers begin with. Starts its health checks. Errors: those cannot be started.
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        workers: Vec<Sender<Control>>,
        journal: Journal,
    ) -> io::Result<Self> {
        let health = match health::is_wanted(&snapshot) {
            true => Some(health::start(&snapshot, workers.clone(), journal.clone())?),
            false => None,
        };
        Ok(Self { state: Mutex::new(State { snapshot, health }), workers, journal })
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state().snapshot)
    }

    /// Puts in force what `change` makes of it, if that is anything.
    pub(crate) fn change(&self, change: impl FnOnce(&Snapshot) -> Option<Snapshot>) {
        let mut state = self.state();
        let Some(next) = change(&state.snapshot).map(Arc::new) else { return };
        for worker in &self.workers {
            worker.send(Control::Adopt(Arc::clone(&next)));
        }
        match &state.health {
            Some(health) => health.send(Arc::clone(&next)),
            None if health::is_wanted(&next) => {
                match health::start(&next, self.workers.clone(), self.journal.clone()) {
                    Ok(health) => state.health = Some(health),
                    Err(error) => {
                        self.journal.line(format_args!("weir: health checks cannot be started: {error}"));
                    }
                }
            }
            None => {}
        }
        state.snapshot = next;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
