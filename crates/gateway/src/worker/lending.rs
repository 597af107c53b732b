//! Servers with one connection limit for all workers: the workers hand idle connections to the one with waiting
//! requests.

use super::{Control, Worker};
use crate::deadlines::ServerWait;
use crate::keys::{ServerId, ServiceId, UpstreamId};
use crate::limits::{ConnectionLimiter, Descriptor, Descriptors, Memory};
use crate::upstream::{Life, Server, Slot, Slots, Upstream, Use};
use std::sync::Arc;
use std::time::Instant;
use weir_reactor::Net;
use weir_reactor::mailbox::Sender;
use weir_transport::Transport;

/// All workers of the process, and this worker's index.
#[derive(Debug)]
pub(crate) struct Peers<N: Net> {
    pub own: usize,
    pub all: Vec<Sender<Control<N>>>,
    /// The connections of each client, over all workers.
    pub limiter: Arc<ConnectionLimiter>,
    pub descriptors: Arc<Descriptors>,
    pub memory: Arc<Memory>,
}

/// An idle connection on its way to another worker.
#[derive(Debug)]
pub(crate) struct Handed<S> {
    transport: Transport<S>,
    slot: Slot,
    life: Life,
    descriptor: Option<Descriptor>,
    /// The deadline of the idle timeout, if the connection has been idle: the move does not extend the timeout.
    idle_until: Option<Instant>,
}

impl<N: Net> Peers<N> {
    /// The peers of the only worker of a process.
    pub(crate) fn none() -> Self {
        Self {
            own: 0,
            all: Vec::new(),
            limiter: Arc::default(),
            descriptors: Arc::default(),
            memory: Arc::default(),
        }
    }

    fn others(&self) -> impl Iterator<Item = &Sender<Control<N>>> {
        self.all.iter().enumerate().filter(|(index, _)| *index != self.own).map(|(_, worker)| worker)
    }

    #[cold]
    pub(super) fn tell(&self, message: impl Fn() -> Control<N>) {
        for worker in self.others() {
            worker.send(message());
        }
    }
}

impl<N: Net> Worker<N> {
    /// Asks the other workers for idle connections to the servers of this service, since this worker has requests
    /// waiting for it.
    #[cold]
    pub(super) fn want(&mut self, service: ServiceId) {
        if self.peers.all.len() < 2 {
            return;
        }
        // A reload may have removed the service.
        let Some(service) = self.services.get(service) else { return };
        for server in service.servers.iter().filter_map(|id| self.servers.get(*id)) {
            if let Some(slots) = server.slots.as_ref().filter(|_| server.is_open())
                && slots.want(self.peers.own)
            {
                for worker in self.peers.others() {
                    worker.send(Control::Lend { slots: Arc::clone(slots), to: self.peers.own });
                }
            }
        }
    }

    /// Withdraws the request that [`Self::want`] made, once no request to this service waits at this worker.
    #[cold]
    pub(super) fn want_no_more(&mut self, service: ServiceId) {
        let Some(service) = self.services.get(service).filter(|service| service.waiting.is_empty()) else {
            return;
        };
        for server in service.servers.iter().filter_map(|id| self.servers.get(*id)) {
            if let Some(slots) = &server.slots {
                slots.serve(self.peers.own);
            }
        }
    }

    /// Hands an idle connection to the worker that asked for one. If there is none, retires an HTTP/2 connection to
    /// free its slot.
    pub(super) fn lend(&mut self, slots: &Arc<Slots>, to: usize) {
        let Some(id) = self.server_with(slots) else { return };
        if let Some(idle) = self.take_idle(id) {
            slots.serve(to);
            self.hand_over(idle.id, to);
        } else if let Some(server) = self.servers.get(id) {
            // HTTP/2 connections stay with their worker. So an idle one closes immediately or, if there are several
            // busy ones, one of them closes after its last response.
            let idle = |id: &&UpstreamId| self.upstreams.get(**id).is_some_and(Upstream::is_idle);
            let spare = server.multiplexed.iter().find(idle).or(server.multiplexed.get(1)).copied();
            if let Some(spare) = spare {
                self.retire_multiplexed(spare);
            }
        }
    }

    /// Takes over a connection from another worker. Closes it if its server is no longer open, hands it to a third
    /// worker if one waits and no request here does, and otherwise pools it.
    pub(super) fn take_over(&mut self, handed: Handed<N::Socket>) {
        let Some(server) = self.server_with(handed.slot.slots()) else { return };
        let Handed { transport, slot, life, descriptor, idle_until } = handed;
        let mut upstream = Upstream::new(transport, server, life);
        upstream.slot = Some(slot);
        upstream.descriptor = descriptor;
        let id = self.upstreams.insert(upstream);
        if let Some(until) = idle_until
            && let Some(upstream) = self.upstreams.get_mut(id)
        {
            upstream.timer.set(until, ServerWait::Pooled, self.core.net.wheel(), id.key());
        }
        self.core.counters.taken_over += 1;
        if !self.servers.get(server).is_some_and(Server::is_open) {
            // The server went down or was drained meanwhile.
            return self.drop_upstream(id);
        }
        // The request that waited here may have ended. Then another waiting worker gets the connection, since it does
        // not ask again.
        if !self.waits_for(server) && self.is_wanted_elsewhere(id) {
            return;
        }
        self.put_into_pool(id);
    }

    /// Hands an idle connection that is not in the pool to the longest-waiting worker; returns `false` if this worker
    /// keeps the connection. After an even number of requests on the connection, this worker's own requests come first.
    pub(super) fn is_wanted_elsewhere(&mut self, id: UpstreamId) -> bool {
        let Some(upstream) = self.upstreams.present(id) else { return false };
        if upstream.life.requests % 2 == 0 && self.waits_for(upstream.server) {
            return false;
        }
        let server = self.servers.get(upstream.server);
        let Some(slots) = server.and_then(|server| server.slots.as_ref()) else { return false };
        let Some(worker) = slots.wanted(self.peers.own) else { return false };
        self.hand_over(id, worker);
        true
    }

    /// Notifies the longest-waiting worker of a free slot.
    pub(super) fn offer_room(&self, slots: &Slots) {
        let waiting = slots.wanted(self.peers.own);
        if let Some(worker) = waiting.and_then(|worker| self.peers.all.get(worker)) {
            worker.send(Control::Room);
        }
    }

    #[cold]
    fn hand_over(&mut self, id: UpstreamId, worker: usize) {
        self.assign(id, Use::Idle);
        let Some(mut upstream) = self.upstreams.take(id) else { return };
        let idle = upstream.timer.pending().filter(|(_, why)| *why == ServerWait::Pooled);
        let idle_until = idle.map(|(until, _)| until);
        upstream.timer.cancel(self.core.net.wheel());
        let (Some(worker), Some(slot)) = (self.peers.all.get(worker), upstream.slot) else { return };
        let mut transport = upstream.transport;
        let Upstream { life, descriptor, .. } = upstream;
        match transport.unwatch(&self.core.net) {
            Ok(()) => {
                worker.send(Control::Take(Box::new(Handed {
                    transport,
                    slot,
                    life,
                    descriptor,
                    idle_until,
                })));
            }
            Err(_) => {
                drop(slot);
                worker.send(Control::Room);
            }
        }
    }

    /// Whether requests wait here for a connection to this server.
    fn waits_for(&self, server: ServerId) -> bool {
        let services = || self.core.plan.services.iter().filter_map(|id| self.services.get(*id));
        self.waiting > 0
            && services().any(|service| !service.waiting.is_empty() && service.servers.contains(&server))
    }

    fn server_with(&self, slots: &Arc<Slots>) -> Option<ServerId> {
        let has = |id: &ServerId| {
            let known = self.servers.get(*id).and_then(|server| server.slots.as_ref());
            known.is_some_and(|known| Arc::ptr_eq(known, slots))
        };
        self.servers.ids().into_iter().find(has)
    }
}
