//! The moment in which a process begins to serve: all of it is prepared, and the one before, if there is one, hands over.

use crate::gate::Gate;
use crate::notify::Supervisor;
use crate::observe::journal;
use crate::serve::GatewayError;
use crate::upgrade::{Before, Upgrades};
use std::sync::Arc;
use weir_transport::Place;

/// What is done then.
pub(crate) struct Opening {
    /// The process that this one is to replace.
    pub before: Option<Before>,
    /// The numbers of sockets of that process that this one does not need.
    pub left: Vec<usize>,
    pub upgrades: Arc<Upgrades>,
    /// Where state is served, with the name of each place.
    pub watched: Vec<(&'static str, String)>,
    pub places: Vec<Place>,
    pub supervisor: Supervisor,
}

impl Opening {
    /// Waits until so many threads are at the gate, all workers among them, and opens it. Errors: the process before does not
    /// hand over, or the system refuses to listen; then nobody passes.
    pub(crate) fn run(self, gate: &Gate, threads: usize) -> Result<(), GatewayError> {
        // If one of them has failed, its error is the one to tell.
        if !gate.await_all(threads) {
            return Ok(());
        }
        let opened = self.open(gate);
        gate.give_up();
        opened
    }

    fn open(self, gate: &Gate) -> Result<(), GatewayError> {
        let Self { before, left, upgrades, watched, places, supervisor } = self;
        if let Some(before) = &before {
            before.take_turn(left)?;
        }
        if !upgrades.begin_listening(before.as_ref())? {
            return Ok(());
        }
        gate.open();
        // The reader may stop the process at once.
        for (name, place) in watched {
            journal::out(format_args!("{name} on {place}"));
        }
        for place in places {
            journal::out(format_args!("listening on {place}"));
        }
        // A supervisor hears this process once the one before has named it.
        before.as_ref().inspect(|before| before.be_heard());
        supervisor.serving();
        Ok(())
    }
}
