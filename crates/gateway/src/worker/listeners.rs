//! Listeners of a worker: new listeners, changed settings, removed listeners. `process/sockets/rebinding.rs` decides
//! which sockets a reload keeps, and `leaving_clients.rs` drains the clients of removed and changed listeners.

use super::Worker;
use super::adopt_config::Adoption;
use crate::config::ListenerId;
use crate::downstream::Frontend;
use crate::keys::FRONTEND;
use crate::plan::Plan;
use std::rc::Rc;
use weir_reactor::{Key, Net};

impl<N: Net> Worker<N> {
    /// Gives each listener its settings in the adopted configuration, drains the removed listeners, and accepts from
    /// `sockets`, the sockets of the new listeners. `last`: the previous plan.
    pub(super) fn replace_listeners(
        &mut self,
        adoption: &Adoption,
        sockets: Vec<(ListenerId, N::Listener)>,
        last: &Rc<Plan>,
    ) {
        let plan = Rc::clone(&self.core.plan);
        let listener = |id: ListenerId| plan.snapshot.listeners.get(*adoption.listeners.get(&id)?);
        let mut left = Vec::new();
        for index in self.frontends.indexes() {
            let Some(before) = self.frontends.of(index).map(Rc::clone) else { continue };
            let Some(listener) = listener(before.id) else {
                if self.drain_listener(index) {
                    // The draining listener may still accept clients.
                    before.last_plan.get_or_init(|| Rc::clone(last));
                    left.push(before.id);
                }
                continue;
            };
            if !before.admits_as(listener) {
                left.push(before.id);
            }
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
        self.drain_clients_of(&left, last);
    }

    /// Closes the listeners in `taken` immediately, since another process already accepts from their queues, and starts
    /// to drain the others. [`Self::listener_due`] closes those after accepting their queued connections.
    pub(super) fn leave_listeners(&mut self, taken: &[ListenerId]) {
        for index in self.frontends.indexes() {
            match self.frontends.of(index) {
                Some(frontend) if taken.contains(&frontend.id) => self.close_listener(index),
                // A listener that is already draining continues.
                _ => drop(self.drain_listener(index)),
            }
        }
    }

    /// Handles a timer of listeners: resumes a paused listener, ends a drain's wait for TCP handshakes in progress, or
    /// ends the last clients of removed listeners.
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
            _ => self.end_overdue_drains(),
        }
    }

    /// Closes a listener. The worker's counters keep the listener's counts of TLS tickets.
    pub(super) fn close_listener(&mut self, index: u32) {
        let frontend = self.frontends.close(index, &self.core.net);
        self.count_tickets(frontend);
    }

    /// Starts to drain a listener. Returns `false` if it is draining already.
    fn drain_listener(&mut self, index: u32) -> bool {
        let frontend = self.frontends.of(index).map(Rc::clone);
        let begins = self.frontends.drain(index, &mut self.core.net);
        if self.frontends.of(index).is_none() {
            // The listener is closed, since another process accepts from its queue.
            self.count_tickets(frontend);
        }
        begins
    }

    fn count_tickets(&mut self, closed: Option<Rc<Frontend>>) {
        if let Some(acceptor) = closed.as_ref().and_then(|frontend| frontend.tls.as_ref()) {
            self.core.counters.tickets(acceptor.tickets());
        }
    }
}
