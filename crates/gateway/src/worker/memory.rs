//! A periodic estimate of the memory of all connections. Exact accounting would slow down every request.

use super::Worker;
use crate::downstream::Client;
use crate::exchange::{Exchange, Stage};
use crate::limits::Exhausted;
use crate::upstream::Upstream;
use std::time::{Duration, Instant};
use weir_reactor::{Net, Socket};

/// A worker's latest estimate in bytes, and its time.
#[derive(Debug, Default)]
pub(super) struct MemoryMeter {
    weight: usize,
    at: Option<Instant>,
}

impl<N: Net> Worker<N> {
    /// Renews the estimate when it is due, if the configuration limits memory, or if memory was short at the last
    /// estimate: the shortage must end even if a reload has removed the limit.
    #[inline]
    pub(super) fn look_at_memory(&mut self) {
        if self.core.plan.snapshot.memory.is_some() || self.core.is_short {
            self.weigh_if_due();
        }
    }

    #[cold]
    fn weigh_if_due(&mut self) {
        let now = self.core.net.now();
        let every = if self.core.is_short { EVERY_IF_SHORT } else { EVERY };
        if self.memory.at.is_none_or(|at| now.saturating_duration_since(at) >= every) {
            self.weigh();
        }
    }

    /// Estimates the bytes that connections and exchanges of this worker hold. When memory becomes short, frees unused
    /// buffers and closes idle connections to servers.
    #[cold]
    pub(super) fn weigh(&mut self) -> usize {
        let clients = self.clients.ids().into_iter().filter_map(|id| self.clients.get(id)).map(of_client);
        let upstreams =
            self.upstreams.ids().into_iter().filter_map(|id| self.upstreams.get(id)).map(of_upstream);
        let exchanges =
            self.exchanges.ids().into_iter().filter_map(|id| self.exchanges.get(id)).map(of_exchange);
        let weight = clients.chain(upstreams).chain(exchanges).sum();
        let most = self.core.plan.snapshot.memory;
        let is_short = self.peers.memory.weigh(self.memory.weight, weight, most);
        self.memory = MemoryMeter { weight, at: Some(self.core.net.now()) };
        if is_short && !self.core.is_short {
            self.core.wire.shed();
            while self.evict_upstream(Exhausted::Memory) {}
        }
        self.core.is_short = is_short;
        weight
    }
}

fn of_client<S: Socket>(client: &Client<S>) -> usize {
    let own = size_of::<Client<S>>() + client.forwarded.len();
    let streams = client.h2.as_ref().map_or(0, |h2| h2.memory());
    own + client.transport.memory() + client.held.capacity() + streams
}

fn of_upstream<S: Socket>(upstream: &Upstream<S>) -> usize {
    let streams = upstream.h2.as_ref().map_or(0, |h2| h2.memory());
    size_of::<Upstream<S>>() + upstream.transport.memory() + upstream.held.capacity() + streams
}

fn of_exchange(exchange: &Exchange) -> usize {
    let copy = exchange.copy.as_ref().map_or(0, |copy| copy.head.capacity() + copy.body.capacity());
    let held = match &exchange.stage {
        Stage::Holding(held) => held.body.capacity(),
        Stage::Queued | Stage::Forwarding => 0,
    };
    let head = exchange.head.as_ref().map_or(0, |head| head.memory());
    let sent = exchange.sent_body.as_ref().map_or(0, |sent| sent.bytes.capacity());
    size_of::<Exchange>() + head + sent + copy + held
}

/// The interval between estimates. An estimate takes about 20 ns per connection.
const EVERY: Duration = Duration::from_secs(1);

/// The interval between estimates while memory is short, since clients may be waiting for memory.
const EVERY_IF_SHORT: Duration = Duration::from_millis(250);
