//! Drains of clients whose listener a reload has removed or changed. `listeners.rs` drains the listeners themselves,
//! `control.rs` the whole worker.

use super::Worker;
use crate::config::ListenerId;
use crate::drain::ClientDrain;
use crate::keys::LISTENER_DRAINS;
use crate::plan::Plan;
use std::rc::{Rc, Weak};
use std::time::Instant;
use weir_reactor::{Key, Net, Wheel};

/// Plans that only draining clients use (`Frontend::last_plan`), each with the deadline at which the worker closes the
/// connections of its remaining clients.
#[derive(Debug, Default)]
pub(super) struct LastPlans {
    plans: Vec<(Instant, Weak<Plan>)>,
    /// The time to which the timer is set; `None`: no timer is set.
    armed: Option<Instant>,
}

impl LastPlans {
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
            wheel.arm(next, Key::fixed(LISTENER_DRAINS, 0));
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
    /// Drains the current clients of these listeners. The clients keep the plan `last`, and may continue for
    /// `timeouts.upgrade_drain`, as after an upgrade.
    pub(super) fn drain_clients_of(&mut self, left: &[ListenerId], last: &Rc<Plan>) {
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
        self.last_plans.add(until, last, self.core.net.wheel());
    }

    /// The drain state for a client that the listener with this index accepts now.
    pub(super) fn drain_of_new_client(&self, index: u32) -> ClientDrain {
        let of_listener = match self.frontends.is_draining(index) {
            true => ClientDrain::Leaving,
            false => ClientDrain::No,
        };
        of_listener.max(self.core.drain.of_client())
    }

    /// Ends the clients whose drain has reached its deadline.
    pub(super) fn end_overdue_drains(&mut self) {
        let now = self.core.net.now();
        let over = self.last_plans.take_over(now, self.core.net.wheel());
        for id in self.clients.ids() {
            let is_over = |plan: &Rc<Plan>| over.iter().any(|over| over.as_ptr() == Rc::as_ptr(plan));
            if self.clients.get(id).is_some_and(|client| client.frontend.last_plan.get().is_some_and(is_over))
            {
                self.end_drained(id);
            }
        }
    }
}
