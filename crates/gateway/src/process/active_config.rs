//! The active snapshot: a reload replaces it as a whole; new addresses of names and changes by an operator replace a part.

use crate::config::Snapshot;
use crate::health::{self, Health};
use crate::limits::SharedLimits;
use crate::observe::journal::Journal;
use crate::worker::{Adoption, Control};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_reactor::mailbox::Sender;

/// The snapshot that all workers have, or will have with their next message. Changes from different threads reach all
/// workers in the same order.
#[derive(Debug)]
pub(crate) struct ActiveConfig {
    state: Mutex<State>,
    workers: Vec<Sender<Control>>,
    journal: Journal,
}

#[derive(Debug)]
struct State {
    snapshot: Arc<Snapshot>,
    limits: Arc<SharedLimits>,
    /// Snapshots that a worker or one of its exchanges may still have. The last owner frees the whole configuration, which
    /// takes a worker too long.
    retired: Vec<Retired>,
    /// The thread of health checks; `None`: no snapshot has had any so far.
    health: Option<Sender<Arc<Snapshot>>>,
}

/// A snapshot that is not active any more.
#[derive(Debug)]
struct Retired {
    snapshot: Arc<Snapshot>,
    /// The workers drop it with the snapshot.
    _limits: Arc<SharedLimits>,
}

impl ActiveConfig {
    /// The snapshot that the workers begin with. Starts its health checks. Errors: their thread cannot be started.
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        limits: Arc<SharedLimits>,
        workers: Vec<Sender<Control>>,
        journal: Journal,
    ) -> io::Result<Self> {
        let health = match health::is_wanted(&snapshot) {
            true => Some(start_health(&snapshot, workers.clone(), journal.clone())?),
            false => None,
        };
        Ok(Self {
            state: Mutex::new(State { snapshot, limits, retired: Vec::new(), health }),
            workers,
            journal,
        })
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.state().snapshot)
    }

    /// Activates the snapshot that `change` makes of the current one, with the same routes, services and servers; `None`: nothing
    /// changes. The state of limits stays.
    pub(crate) fn change(&self, change: impl FnOnce(&Snapshot) -> Option<Snapshot>) {
        let mut state = self.state();
        if let Some(next) = change(&state.snapshot) {
            let limits = Arc::clone(&state.limits);
            self.activate(&mut state, Arc::new(next), limits);
        }
    }

    /// Activates another configuration, made from the current one. It inherits the state of its servers' limits.
    pub(crate) fn replace(&self, make: impl FnOnce(&Snapshot) -> Arc<Snapshot>) {
        let mut state = self.state();
        let next = make(&state.snapshot);
        let limits = SharedLimits::after(&next, &state.snapshot, &state.limits);
        self.activate(&mut state, next, Arc::new(limits));
    }

    /// Frees the snapshots that no worker has any more. Returns whether some are left.
    pub(crate) fn free_retired(&self) -> bool {
        let mut state = self.state();
        let is_free = |retired: &mut Retired| Arc::strong_count(&retired.snapshot) == 1;
        let free: Vec<_> = state.retired.extract_if(.., is_free).collect();
        let are_left = !state.retired.is_empty();
        drop(state);
        drop(free);
        are_left
    }

    fn activate(&self, state: &mut State, next: Arc<Snapshot>, limits: Arc<SharedLimits>) {
        let adoption = Arc::new(Adoption::new(Arc::clone(&next), Arc::clone(&limits), Some(&state.snapshot)));
        for worker in &self.workers {
            worker.send(Control::Adopt(Arc::clone(&adoption)));
        }
        match &state.health {
            Some(health) => health.send(Arc::clone(&next)),
            None if health::is_wanted(&next) => {
                match start_health(&next, self.workers.clone(), self.journal.clone()) {
                    Ok(health) => state.health = Some(health),
                    Err(error) => {
                        self.journal.line(format_args!("weir: health checks cannot be started: {error}"));
                    }
                }
            }
            None => {}
        }
        let snapshot = std::mem::replace(&mut state.snapshot, next);
        let limits = std::mem::replace(&mut state.limits, limits);
        state.retired.retain(|retired| Arc::strong_count(&retired.snapshot) > 1);
        state.retired.push(Retired { snapshot, _limits: limits });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the health checks, which report to all workers.
fn start_health(
    snapshot: &Snapshot,
    workers: Vec<Sender<Control>>,
    journal: Journal,
) -> io::Result<Sender<Arc<Snapshot>>> {
    let report = move |health: Health| {
        for worker in &workers {
            worker.send(Control::Health(health.clone()));
        }
    };
    health::start(snapshot, Box::new(report), journal)
}
