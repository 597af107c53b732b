//! The last step of a start: once all threads are ready, this process takes over from the old one, if there is one, and
//! serves.

use super::error::GatewayError;
use super::notify::Supervisor;
use super::start_barrier::StartBarrier;
use super::upgrade::{OldProcess, Upgrades};
use crate::observe::journal;
use std::sync::Arc;
use weir_transport::Place;

pub(crate) struct Startup {
    pub old: Option<OldProcess>,
    /// The numbers of the old process's sockets that this process does not need.
    pub left: Vec<usize>,
    pub upgrades: Arc<Upgrades>,
    /// The admin addresses, each with the name of its table.
    pub admin_places: Vec<(&'static str, String)>,
    pub places: Vec<Place>,
    pub supervisor: Supervisor,
}

impl Startup {
    /// Waits until this number of threads, including all workers, wait at the barrier, and opens it. Errors: the old
    /// process does not hand over, or listen(2) fails; then no thread begins.
    pub(crate) fn run(self, barrier: &StartBarrier, threads: usize) -> Result<(), GatewayError> {
        // A thread has failed: its error is the one to report.
        if !barrier.await_all(threads) {
            return Ok(());
        }
        let opened = self.open(barrier);
        barrier.give_up();
        opened
    }

    fn open(self, barrier: &StartBarrier) -> Result<(), GatewayError> {
        let Self { old, left, upgrades, admin_places, places, supervisor } = self;
        if let Some(old) = &old {
            old.take_turn(left)?;
        }
        if !upgrades.begin_listening(old.as_ref())? {
            return Ok(());
        }
        barrier.open();
        // Print these lines after the barrier opens, since a reader of them may stop the process immediately.
        for (name, place) in admin_places {
            journal::out(format_args!("{name} on {place}"));
        }
        for place in places {
            journal::out(format_args!("listening on {place}"));
        }
        // The supervisor accepts messages from this process only once the old one has named it.
        old.as_ref().inspect(|old| old.be_heard());
        supervisor.serving();
        Ok(())
    }
}
