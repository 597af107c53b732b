//! Service queues: requests that wait because every server already uses its maximum number of connections.

use super::Worker;
use crate::downstream::Phase;
use crate::exchange::{Exchange, HeldHead, Stage};
use crate::keys::{ExchangeId, ServiceId};
use crate::reason::Reason;
use crate::upstream::Server;
use std::rc::Rc;
use weir_reactor::Net;

impl<N: Net> Worker<N> {
    /// Queues an exchange, or ends it if no server is open or the queue is full. `has_waited`: the exchange was the
    /// first in the queue.
    #[cold]
    pub(super) fn queue(&mut self, id: ExchangeId, has_waited: bool) {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return self.broken(id, "a client without its exchange");
        };
        let (leg, service) = (exchange.leg(), exchange.service);
        let Some(wanted) = self.services.get_mut(service) else {
            return self.broken(id, "a request without its service");
        };
        let is_open = |id| self.servers.get(id).is_some_and(Server::is_open);
        if !wanted.servers.iter().copied().any(is_open) {
            return self.end_exchange(id, Reason::NoServer);
        }
        if wanted.waiting.len() >= wanted.config.max_waiting {
            return self.end_exchange(id, Reason::QueueFull);
        }
        exchange.stage = Stage::Queued;
        match has_waited {
            true => wanted.waiting.push_front(id),
            false => wanted.waiting.push_back(id),
        }
        self.waiting += 1;
        self.touch_leg(leg);
        self.want(service);
    }

    /// Sends queued requests as connections become free; returns their number.
    #[cold]
    pub(super) fn admit_waiting(&mut self) -> usize {
        let plan = Rc::clone(&self.core.plan);
        let mut admitted = 0;
        for id in &plan.services {
            while let Some(service) = self.services.get_mut(*id)
                && service.has_room(&self.servers)
                && let Some(exchange) = service.waiting.pop_front()
            {
                self.waiting -= 1;
                if !self.admit(exchange) {
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

    /// Continues an exchange that was taken from its queue. Returns `false` if it is queued again.
    pub(super) fn admit(&mut self, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            self.broken(id, "a queue with an exchange that has ended");
            return true;
        };
        let leg = exchange.leg();
        exchange.stage = Stage::Forwarding;
        self.start_delayed(id, true);
        let is_queued = |exchange: &Exchange| matches!(exchange.stage, Stage::Queued);
        let exchange = self.exchange_of(leg);
        if exchange.and_then(|id| self.exchanges.get(id)).is_some_and(is_queued) {
            return false;
        }
        self.resume_leg(leg);
        true
    }

    /// Starts a request that has waited in a queue, or for its body.
    pub(super) fn start_delayed(&mut self, id: ExchangeId, has_waited: bool) {
        let Some(exchange) = self.exchanges.get(id) else {
            return self.broken(id, "a delayed request without its exchange");
        };
        match self.services.get(exchange.service) {
            Some(_) => self.start(id, has_waited),
            // A reload removed the service, so the request needs another route.
            None => self.begin_again(id),
        }
    }

    /// Routes a queued or buffered request again, after a reload removed its service.
    fn begin_again(&mut self, id: ExchangeId) {
        if self.exchanges.get(id).is_some_and(|exchange| exchange.sent_body.is_some()) {
            // An HTTP/2 server has refused the request after part of its body was decoded and sent. A new exchange
            // would take the rest of the body for its start.
            return self.end_exchange(id, Reason::NoServer);
        }
        let Some(mut exchange) = self.exchanges.remove(id) else {
            return self.broken(id, "a queue with an exchange that has ended");
        };
        if let Some(timer) = &mut exchange.timer {
            timer.timer.cancel(self.core.net.wheel());
        }
        let leg = exchange.leg();
        if let Some(client) = self.clients.get_mut(leg.client)
            && leg.stream.is_none()
        {
            client.phase = Phase::Head { started: false };
        }
        let Some(head) = exchange.head.take() else {
            return self.broken_client(leg.client, "a request in a queue without its head");
        };
        let HeldHead { bytes, request } = *head;
        self.core.request = request;
        self.begin(leg, &bytes, Some(&mut exchange));
    }

    pub(super) fn stop_waiting(&mut self, id: ExchangeId, from: ServiceId) {
        // A reload may have removed the service.
        let Some(service) = self.services.get_mut(from) else { return };
        let before = service.waiting.len();
        service.waiting.retain(|waiting| *waiting != id);
        self.waiting -= before - service.waiting.len();
        self.want_no_more(from);
    }
}
