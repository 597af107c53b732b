//! Listeners of a worker: new listeners, changed settings, removed listeners, and their clients.

use super::Worker;
use super::adopt_config::Adoption;
use crate::config::ListenerId;
use crate::downstream::{Frontend, Phase};
use crate::drain::ClientDrain;
use crate::keys::{ClientId, FRONTEND, LEAVING};
use crate::plan::Plan;
use std::rc::{Rc, Weak};
use std::time::Instant;
use weir_reactor::{Key, Net, Wheel};

/// Plans that only draining clients use ([`Frontend::last_plan`]), each with the deadline at which the worker closes
/// the connections of its remaining clients.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    plans: Vec<(Instant, Weak<Plan>)>,
    /// The time to which the timer is set; `None`: no timer is set.
    armed: Option<Instant>,
}

impl Leaving {
    /// Adds a plan, and removes the plans without clients.
    fn add(&mut self, until: Instant, plan: &Rc<Plan>, wheel: &mut Wheel) {
        self.plans.retain(|(_, plan)| plan.strong_count() > 0);
        self.plans.push((until, Rc::downgrade(plan)));
        self.arm(wheel);
    }

    /// Sets the timer to the nearest deadline, unless it is already set to an earlier one.
    fn arm(&mut self, wheel: &mut Wheel) {
        if let Some(next) = self.plans.iter().map(|(until, _)| *until).min()
            && self.armed.is_none_or(|armed| next < armed)
        {
            wheel.arm(next, Key::fixed(LEAVING, 0));
            self.armed = Some(next);
        }
    }

    /// Removes and returns the plans whose deadline has passed.
    fn take_over(&mut self, now: Instant, wheel: &mut Wheel) -> Vec<Weak<Plan>> {
        let over = self.plans.extract_if(.., |(until, _)| *until <= now).map(|(_, plan)| plan).collect();
        self.armed = None;
        self.arm(wheel);
        over
    }
}

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
            _ => self.end_leaving(),
        }
    }

    /// Closes a listener. The worker's counters keep the listener's counts of TLS tickets.
    pub(super) fn close_listener(&mut self, index: u32) {
        let frontend = self.frontends.close(index, &self.core.net);
        self.count_tickets(frontend);
    }

    /// The drain state for a client that the listener with this index accepts now.
    pub(super) fn drain_of_new_client(&self, index: u32) -> ClientDrain {
        let of_listener = match self.frontends.is_draining(index) {
            true => ClientDrain::Leaving,
            false => ClientDrain::No,
        };
        of_listener.max(self.core.drain.of_client())
    }

    /// Begins or continues the drain of a client's connection, with the timeouts of [`ClientDrain`].
    pub(super) fn drain_client(&mut self, id: ClientId, drain: ClientDrain) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.drain = client.drain.max(drain);
        if client.is_idle() || matches!(client.phase, Phase::Tunnel(_) | Phase::Streams) {
            // The drain changes the client's timeout.
            client.timer.clear();
            self.touch_client(id);
        }
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

    /// Drains the current clients of these listeners. The clients keep the plan `last`, and may continue for
    /// `timeouts.upgrade_drain`, as after an upgrade.
    fn drain_clients_of(&mut self, left: &[ListenerId], last: &Rc<Plan>) {
        if left.is_empty() {
            return;
        }
        for id in self.clients.ids() {
            let Some(client) = self.clients.get(id).filter(|client| left.contains(&client.frontend.id))
            else {
                continue;
            };
            client.frontend.last_plan.get_or_init(|| Rc::clone(last));
            self.drain_client(id, ClientDrain::Leaving);
        }
        let until = self.core.net.now() + self.core.plan.policy().timeouts.upgrade_drain;
        self.leaving.add(until, last, self.core.net.wheel());
    }

    fn end_leaving(&mut self) {
        let now = self.core.net.now();
        let over = self.leaving.take_over(now, self.core.net.wheel());
        for id in self.clients.ids() {
            let is_over = |plan: &Rc<Plan>| over.iter().any(|over| over.as_ptr() == Rc::as_ptr(plan));
            if self.clients.get(id).is_some_and(|client| client.frontend.last_plan.get().is_some_and(is_over))
            {
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
