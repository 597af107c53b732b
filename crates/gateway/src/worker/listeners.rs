//! Listeners of a worker: new and other settings, those that are gone, and their clients.

use super::Worker;
use super::adopt::Adoption;
use crate::config::ListenerId;
use crate::downstream::{Frontend, Phase};
use crate::drain::ClientDrain;
use crate::keys::{ClientId, FRONTEND, LEAVING};
use std::rc::Rc;
use std::time::Instant;
use weir_reactor::{Key, Net};

/// Listeners that are gone, each with the time at which the worker ends their last clients.
#[derive(Debug, Default)]
pub(super) struct Leaving(Vec<(Instant, ListenerId)>);

impl Leaving {
    /// Removes those whose time is over.
    fn take_over(&mut self, now: Instant) -> Vec<ListenerId> {
        self.0.extract_if(.., |(until, _)| *until <= now).map(|(_, id)| id).collect()
    }
}

impl<N: Net> Worker<N> {
    /// Gives each listener its settings in the adopted configuration, drains those that are gone, and accepts from
    /// `sockets`, those of new ones.
    pub(super) fn replace_listeners(&mut self, adoption: &Adoption, sockets: Vec<(ListenerId, N::Listener)>) {
        let plan = Rc::clone(&self.core.plan);
        let listener = |id: ListenerId| plan.snapshot.listeners.get(*adoption.listeners.get(&id)?);
        let mut gone = Vec::new();
        for index in self.frontends.indexes() {
            let Some(before) = self.frontends.of(index).map(Rc::clone) else { continue };
            let Some(listener) = listener(before.id) else {
                if self.drain_listener(index) {
                    gone.push(before.id);
                }
                continue;
            };
            let next = Frontend::new(listener, &plan.services, Some(&before));
            if let Some(acceptor) = &before.tls
                && !listener.tls.as_ref().is_some_and(|server| acceptor.is_of(server))
            {
                self.core.counters.tickets(acceptor.tickets());
            }
            self.frontends.replace(index, Rc::new(next));
        }
        for (id, socket) in sockets {
            let Some(listener) = listener(id) else {
                self.broken_listener("a socket without a listener");
                continue;
            };
            let frontend = Rc::new(Frontend::new(listener, &plan.services, None));
            let index = self.frontends.add(socket, frontend, &mut self.core.net);
            if self.core.drain.is_on() {
                self.drain_listener(index);
            }
        }
        self.drain_clients_of(gone);
    }

    /// Stops accepting from all listeners, for a drain of the worker. It leaves those in `taken` to another process at once,
    /// with their queues, and accepts the queued connections of the others before it closes them.
    pub(super) fn leave_listeners(&mut self, taken: &[ListenerId]) {
        for index in self.frontends.indexes() {
            match self.frontends.of(index) {
                Some(frontend) if taken.contains(&frontend.id) => self.close_listener(index),
                // One that drains already stays as it is.
                _ => drop(self.drain_listener(index)),
            }
        }
    }

    /// Handles a timer of listeners: resumes a paused one, ends a drain's wait for TCP handshakes in progress, or ends the
    /// last clients of listeners that are gone.
    pub(super) fn listener_due(&mut self, key: Key) {
        match key.tag() {
            FRONTEND => {
                let index = key.index();
                if self.frontends.due(index, &mut self.core.net) {
                    // Accept the queued connections, which closing the listener would reset.
                    self.accept(index, usize::MAX);
                    self.close_listener(index);
                }
            }
            _ => self.end_leaving(),
        }
    }

    /// Closes a listener, which keeps its counts.
    pub(super) fn close_listener(&mut self, index: u32) {
        let frontend = self.frontends.close(index, &self.core.net);
        self.count_tickets(frontend);
    }

    /// The drain of a client that the listener with this index accepts now.
    pub(super) fn drain_of_new_client(&self, index: u32) -> ClientDrain {
        let of_listener = match self.frontends.is_draining(index) {
            true => ClientDrain::Leaving,
            false => ClientDrain::No,
        };
        of_listener.max(self.core.drain.of_client())
    }

    /// Begins or continues the drain of a client's connection.
    pub(super) fn drain_client(&mut self, id: ClientId, drain: ClientDrain) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.drain = client.drain.max(drain);
        if client.is_idle() || matches!(client.phase, Phase::Tunnel(_) | Phase::Streams) {
            // The drain changes its timeout.
            client.timer.clear();
            self.touch_client(id);
        }
    }

    /// Starts to drain a listener. Returns false if it drains already.
    fn drain_listener(&mut self, index: u32) -> bool {
        let frontend = self.frontends.of(index).map(Rc::clone);
        let begins = self.frontends.drain(index, &mut self.core.net);
        if self.frontends.of(index).is_none() {
            // Its queue is for another process.
            self.count_tickets(frontend);
        }
        begins
    }

    /// Drains the clients of listeners that are gone. They have as much time as those of a process that an upgrade replaces.
    fn drain_clients_of(&mut self, gone: Vec<ListenerId>) {
        if gone.is_empty() {
            return;
        }
        for id in self.clients.ids() {
            if self.clients.get(id).is_some_and(|client| gone.contains(&client.frontend.id)) {
                self.drain_client(id, ClientDrain::Leaving);
            }
        }
        let until = self.core.net.now() + self.core.plan.policy().timeouts.upgrade_drain;
        self.core.net.wheel().arm(until, Key::fixed(LEAVING, 0));
        self.leaving.0.extend(gone.into_iter().map(|id| (until, id)));
    }

    /// Ends the clients of listeners whose time is over.
    fn end_leaving(&mut self) {
        let over = self.leaving.take_over(self.core.net.now());
        for id in self.clients.ids() {
            if self.clients.get(id).is_some_and(|client| over.contains(&client.frontend.id)) {
                self.end_drained(id);
            }
        }
    }

    fn count_tickets(&mut self, closed: Option<Rc<Frontend>>) {
        if let Some(acceptor) = closed.as_ref().and_then(|frontend| frontend.tls.as_ref()) {
            self.core.counters.tickets(acceptor.tickets());
        }
    }
}
