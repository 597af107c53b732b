//! Handshakes: each step may cost as much as twenty warm requests, so a turn has a budget for them, and the rest waits in order.

use super::Worker;
use crate::downstream::Client;
use crate::keys::{ClientId, UpstreamId};
use crate::reason::Reason;
use std::collections::VecDeque;
use weir_reactor::{Net, Ready};

/// Handshakes with clients that are not finished.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    /// Something has come for these, in this order. The poller does not tell of them until it is their turn.
    ready: VecDeque<ClientId>,
    /// How many of them came in this turn.
    news: usize,
    /// All that are not finished, by their age, and some that are.
    young: VecDeque<ClientId>,
    /// How many are not finished.
    open: usize,
}

impl Handshakes {
    /// How many wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// How many are not finished.
    pub(super) fn open(&self) -> usize {
        self.open
    }
}

impl<N: Net> Worker<N> {
    /// A client's handshake, or what comes before it, has something to do. It is done when it is its turn.
    pub(super) fn queue_handshake(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id)
            && !client.queued
        {
            client.queued = true;
            self.handshakes.ready.push_back(id);
            self.handshakes.news += 1;
        }
    }

    /// Takes steps of handshakes within the budget, in turns with servers (`upstreams`, whom the poller reports again) and with
    /// clients. Those clients that must wait are not read meanwhile.
    pub(super) fn take_handshakes(&mut self, upstreams: &[Ready]) {
        let before = self.core.wire.flights();
        let most = u64::from(self.core.plan.snapshot.handshakes_per_turn);
        let mut upstreams = upstreams.iter();
        for nth in 0..LOOKS {
            if self.core.wire.flights() - before >= most {
                break;
            }
            let is_upstreams = nth % 2 == 0 || self.handshakes.ready.is_empty();
            match if is_upstreams { upstreams.next() } else { None } {
                Some(ready) => {
                    if let Some(id) = UpstreamId::of(ready.key) {
                        self.upstream_ready(id, *ready);
                    }
                }
                None => match self.handshakes.ready.pop_front() {
                    Some(id) => self.step(id),
                    None => break,
                },
            }
        }
        // Of those that came in this turn, these are left.
        let waiting = self.handshakes.ready.len();
        let news = std::mem::take(&mut self.handshakes.news).min(waiting);
        for at in waiting - news..waiting {
            self.touch_client(self.handshakes.ready[at]);
        }
    }

    /// A client was accepted whose handshake, or preface, begins. If there are more than there may be, the oldest is closed: most
    /// likely it has nothing more to say.
    pub(super) fn begin_handshake(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id).filter(|client| client.is_in_handshake()) else { return };
        client.half_open = true;
        self.handshakes.open += 1;
        self.handshakes.young.push_back(id);
        while self.handshakes.open > self.most_handshakes() {
            let Some(oldest) = self.handshakes.young.pop_front() else { break };
            if self.clients.get(oldest).is_some_and(|client| client.half_open && client.is_in_handshake()) {
                self.note_end_of(oldest, &Reason::TooManyHandshakes);
                self.cut(oldest);
            }
        }
        // What is over stays behind those that are not.
        if self.handshakes.young.len() > 2 * self.handshakes.open + SOME {
            let clients = &self.clients;
            self.handshakes.young.retain(|id| clients.get(*id).is_some_and(|client| client.half_open));
        }
    }

    /// Counts a handshake no longer that is finished, or whose client is gone.
    pub(super) fn end_handshake<S>(client: &mut Client<S>, handshakes: &mut Handshakes) {
        if std::mem::take(&mut client.half_open) {
            handshakes.open -= 1;
        }
    }

    /// How many there may be in this worker.
    fn most_handshakes(&self) -> usize {
        let clients = self.peers.descriptors.open().most_clients;
        let set = self.core.plan.snapshot.handshakes.map(|most| most as usize);
        set.unwrap_or(USUAL.min(clients / 2)).div_ceil(self.peers.all.len().max(1)).max(1)
    }

    fn step(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.queued = false;
        let key = id.key();
        self.client_ready(id, Ready { key, readable: true, writable: true, hangup: false });
    }
}

/// Steps of a turn that may cost next to nothing: bytes that complete no message.
const LOOKS: usize = 64;

/// Handshakes of the process at one time: 3 s of what a core can finish, and some 200 MiB.
const USUAL: usize = 32_768;

/// So that a few cost no search.
const SOME: usize = 64;
