//! Requests that wait for a connection, because each server of their service has as many as it may have.

use super::Worker;
use crate::config::Route;
use crate::downstream::{Past, Phase, Waiting};
use crate::keys::{ClientId, ServiceId};
use crate::plan::Plan;
use crate::reason::Reason;
use crate::upstream::Server;
use std::rc::Rc;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Lets the request whose head was parsed from `buf` wait, or refuses it.
    pub(super) fn wait_for_server(
        &mut self,
        id: ClientId,
        buf: &[u8],
        (plan, route, found): (&Rc<Plan>, usize, &Route),
        service: ServiceId,
        past: Past,
    ) {
        let Some(wanted) = self.services.get_mut(service) else {
            return self.broken(id, "a request without its service");
        };
        let is_open = |id| self.servers.get(id).is_some_and(Server::is_open);
        if !wanted.servers.iter().copied().any(is_open) {
            return self.refuse(id, buf, Reason::NoServer, Some(found));
        }
        if wanted.waiting.len() >= wanted.config.max_waiting {
            return self.refuse(id, buf, Reason::QueueFull, Some(found));
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        match past.waits_since {
            Some(_) => wanted.waiting.push_front(id),
            None => wanted.waiting.push_back(id),
        }
        self.waiting += 1;
        let since = past.waits_since.unwrap_or_else(|| self.core.net.now());
        let past = Past { waits_since: Some(since), ..past };
        client.waiting =
            Some(Box::new(Waiting { head: buf.to_vec(), past, service, plan: Rc::clone(plan), route }));
        client.phase = Phase::Queued;
        self.touch_client(id);
        self.want(service);
    }

    /// Begins the exchanges for which connections have become free; returns how many.
    #[cold]
    pub(super) fn admit_waiting(&mut self) -> usize {
        let plan = Rc::clone(&self.core.plan);
        let mut admitted = 0;
        for id in &plan.services {
            while let Some(service) = self.services.get_mut(*id)
                && service.has_room(&self.servers)
                && let Some(client) = service.waiting.pop_front()
            {
                self.waiting -= 1;
                if !self.admit(client) {
                    break;
                }
                admitted += 1;
            }
            match self.services.get(*id).is_some_and(|service| !service.waiting.is_empty()) {
                true => self.want(*id),
                false => self.want_no_more(*id),
            }
        }
        admitted
    }

    /// Whether its request waits no longer.
    pub(super) fn admit(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.get_mut(id) else { return true };
        let Some(waiting) = client.waiting.take() else { return true };
        client.phase = Phase::Head { started: false };
        self.begin_held(id, &waiting.head, waiting.past);
        if self.clients.get(id).is_some_and(|client| client.phase == Phase::Queued) {
            return false;
        }
        self.resume_client(id);
        true
    }

    /// A client that waits is gone.
    pub(super) fn stop_waiting(&mut self, id: ClientId, from: ServiceId) {
        let Some(service) = self.services.get_mut(from) else { return };
        let before = service.waiting.len();
        service.waiting.retain(|waiting| *waiting != id);
        self.waiting -= before - service.waiting.len();
        self.want_no_more(from);
    }
}
