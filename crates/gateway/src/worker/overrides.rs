//! Servers that an operator drains, or whose weight an operator sets, at run time.

use super::Worker;
use crate::keys::{ExchangeId, ServiceId};
use std::rc::Rc;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Applies the run-time overrides of the current configuration to these services. Closes the idle connections to
    /// servers that are not open. Returns the queued exchanges whose services have no open server left.
    pub(super) fn apply_overrides(&mut self, services: &[ServiceId]) -> Vec<ExchangeId> {
        let (plan, now) = (Rc::clone(&self.core.plan), self.core.net.now());
        let mut stranded = Vec::new();
        for id in services {
            let Some(service) = self.services.get(*id) else { continue };
            let (name, mut is_open) = (service.config.name.clone(), false);
            for id in service.servers.clone() {
                let Some(server) = self.servers.get_mut(id) else { continue };
                server.apply_override(plan.snapshot.overrides.of(&name, server.config.id), now);
                match server.is_open() {
                    true => is_open = true,
                    false => self.close_idle(id),
                }
            }
            if !is_open && let Some(service) = self.services.get_mut(*id) {
                stranded.extend(service.waiting.drain(..));
            }
        }
        stranded
    }
}
