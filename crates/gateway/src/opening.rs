//! The moment in which a process begins to serve: all of it is prepared, and the one before, if there is one, has stopped.

use crate::admin::{self, Admin, Door};
use crate::gate::Gate;
use crate::notify::Supervisor;
use crate::observe::journal;
use crate::serve::GatewayError;
use crate::upgrade::{Before, Upgrades};
use std::sync::Arc;
use weir_reactor::Listener;
use weir_transport::Place;

/// What is done then.
pub(crate) struct Opening {
    /// The process that this one is to replace.
    pub before: Option<Before>,
    /// The numbers of sockets of that process that this one does not need.
    pub left: Vec<usize>,
    pub upgrades: Arc<Upgrades>,
    pub admin: Option<(Listener, Admin)>,
    pub door: Arc<Door>,
    pub places: Vec<Place>,
    pub supervisor: Supervisor,
}

impl Opening {
    /// Waits until all workers are at the gate, and opens it. Errors: the process before does not hand over, or the system
    /// refuses to listen; then nobody passes.
    pub(crate) fn run(self, gate: &Gate, workers: usize) -> Result<(), GatewayError> {
        // If one of them has failed, its error is the one to tell.
        if !gate.await_all(workers) {
            return Ok(());
        }
        let opened = self.open(gate);
        gate.give_up();
        opened
    }

    fn open(self, gate: &Gate) -> Result<(), GatewayError> {
        let Self { before, left, upgrades, admin, door, places, supervisor } = self;
        if let Some(before) = before {
            before.take_turn(left)?;
        }
        upgrades.begin_listening()?;
        if let Some((listener, admin)) = admin {
            journal::out(format_args!("admin on {}", admin::place(&listener)));
            admin::start(listener, &door, admin)?;
        }
        gate.open();
        // The reader may stop the process at once.
        for place in places {
            journal::out(format_args!("listening on {place}"));
        }
        supervisor.ready("serving");
        Ok(())
    }
}
