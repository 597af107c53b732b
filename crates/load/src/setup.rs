//! The setup of a connection: TCP, then TLS.

use crate::check::Wrong;
use crate::connection::Context;
use crate::result::Tickets;
use crate::worker::Protocol;
use std::time::Instant;
use weir_tls::{Facts, HandshakeKind, Version};
use weir_transport::Transport;

/// The times of a connection's setup.
pub(crate) struct Setup {
    /// When connecting started.
    started: Instant,
    /// When the socket was connected; until then, when connecting started.
    pub(crate) connected: Instant,
    /// Whether it offers a session to resume.
    offers: bool,
}

impl Setup {
    pub(crate) fn new(offers: bool, now: Instant) -> Self {
        Self { started: now, connected: now, offers }
    }

    /// Advances the setup or the output of a writable transport, and reads the clock if there is either.
    pub(crate) fn advance<P: Protocol>(
        &mut self,
        transport: &mut Transport,
        context: &mut Context<'_, P>,
    ) -> Result<(), Wrong> {
        if transport.is_open() && transport.pending() == 0 {
            return Ok(());
        }
        let was_connecting = transport.is_connecting();
        if was_connecting {
            // Before the first bytes go out: on loopback the kernel runs the peer's receive path synchronously.
            self.connected = Instant::now();
        }
        let advanced = transport.advance(&mut context.wire);
        context.now = Instant::now();
        advanced?;
        if was_connecting {
            context.recorder.connected(self.started, self.connected);
        }
        Ok(())
    }

    /// Records a handshake that is complete.
    pub(crate) fn handshake_done<P: Protocol>(&self, facts: &Facts, context: &mut Context<'_, P>) {
        context.recorder.handshake(facts, self.started, self.connected, context.now);
        if self.offers {
            context.recorder.counters.offered += 1;
            context.recorder.counters.declined += u64::from(facts.kind == HandshakeKind::Full);
        }
    }

    /// Gives up the setup: its times are censored at now. Returns when the socket was connected.
    pub(crate) fn give_up<P: Protocol>(
        &self,
        transport: &Transport,
        context: &mut Context<'_, P>,
    ) -> Option<Instant> {
        let connected = (!transport.is_connecting()).then_some(self.connected);
        context.recorder.opening_given_up(self.started, connected, self.offers, context.now);
        connected
    }
}

/// Records the number of tickets at the first response: in TLS 1.3 they arrive before or with it.
pub(crate) fn count_tickets<P: Protocol>(transport: &Transport, context: &mut Context<'_, P>) {
    if let Some(facts) = transport.facts().filter(|facts| facts.version == Version::Tls13) {
        let number = transport.tickets_received();
        context.recorder.tickets(facts.kind.name(), Tickets { least: number, most: number });
    }
}
