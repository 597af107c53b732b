//! The active snapshot: a reload replaces it as a whole; new addresses of names and changes by an operator replace a part.

use crate::config::Snapshot;
use crate::health;
use crate::observe::journal::Journal;
use crate::worker::Control;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_reactor::mailbox::Sender;

/// The snapshot that all workers have, or will have with their next mail. Changes from different threads reach all workers in one
/// order.
#[derive(Debug)]
pub(crate) struct ActiveConfig {
    state: Mutex<State>,
    workers: Vec<Sender<Control>>,
    journal: Journal,
}

#[derive(Debug)]
struct State {
    snapshot: Arc<Snapshot>,
    /// The thread of health checks; `None`: no snapshot has had any so far.
    health: Option<Sender<Arc<Snapshot>>>,
}

impl ActiveConfig {
    /// The snapshot that the workers begin with. Starts its health checks. Errors: their thread cannot be started.
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

    /// Activates the snapshot that `change` makes of the current one; `None`: nothing changes.
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
