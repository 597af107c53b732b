//! Handshakes: each step may cost as much as twenty warm requests, so a turn has a budget for them, and the rest waits. What has
//! begun comes first: the step that costs most is behind it, and without the next one it was for nothing.

use super::Worker;
use crate::config::document::Limits;
use crate::downstream::{Client, Handshake};
use crate::keys::{ClientId, OfClient, Store, UpstreamId};
use crate::reason::Reason;
use std::collections::VecDeque;
use std::time::Instant;
use weir_reactor::{Net, Ready, Socket};

/// Handshakes with clients that are not finished. Clients that have left one of the lists stay in it until it is their turn.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    /// Something has come for these, which have had an answer, in this order. The poller does not tell of them meanwhile.
    begun: VecDeque<ClientId>,
    /// Likewise for these, which have had none, and when it came.
    fresh: VecDeque<(ClientId, Instant)>,
    /// The others, by the time for which their client is waited for. The number is that of [`Handshake::Awaited`].
    awaited: VecDeque<(ClientId, u32)>,
    /// The next such number.
    next: u32,
    /// How many are not finished.
    open: usize,
    /// How many of them wait for their turn.
    ready: usize,
}

/// The source of an event of a connection in its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventSource {
    /// The event joins the queue of handshake steps.
    Poller,
    /// It is the connection's turn.
    Queue,
}

impl Handshakes {
    /// How many wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.ready
    }

    /// How many are not finished.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// It is the client that is waited for now.
    fn wait_for<S>(&mut self, id: ClientId, client: &mut Client<S>) {
        match client.handshake {
            Handshake::Over => self.open += 1,
            Handshake::Awaited(_) => {}
            Handshake::Ready => self.ready -= 1,
        }
        client.handshake = Handshake::Awaited(self.next);
        self.awaited.push_back((id, self.next));
        self.next = self.next.wrapping_add(1);
    }

    /// The client waits for its turn now.
    fn queue<S: Socket>(&mut self, id: ClientId, client: &mut Client<S>, now: Instant) {
        match client.handshake {
            Handshake::Over => self.open += 1,
            Handshake::Awaited(_) => {}
            Handshake::Ready => return,
        }
        client.handshake = Handshake::Ready;
        self.ready += 1;
        match client.has_been_answered() {
            true => self.begun.push_back(id),
            false => self.fresh.push_back((id, now)),
        }
    }

    /// Counts a handshake no longer that is finished, or whose client is gone.
    pub(super) fn end<S>(&mut self, client: &mut Client<S>) {
        match std::mem::replace(&mut client.handshake, Handshake::Over) {
            Handshake::Over => return,
            Handshake::Awaited(_) => {}
            Handshake::Ready => self.ready -= 1,
        }
        self.open -= 1;
    }

    /// Takes the client whose turn it is, and since when it has waited for its first one.
    fn take<S>(
        &mut self,
        begun_first: bool,
        clients: &Store<OfClient, Client<S>>,
    ) -> Option<(ClientId, Option<Instant>)> {
        let mut begun = || Some((next(&mut self.begun, |id| is_ready(*id, clients))?, None));
        let mut fresh =
            || next(&mut self.fresh, |(id, _)| is_ready(*id, clients)).map(|(id, since)| (id, Some(since)));
        match begun_first {
            true => begun().or_else(fresh),
            false => fresh().or_else(begun),
        }
    }

    /// Takes the client that has been waited for longest.
    fn take_awaited<S: Socket>(&mut self, clients: &Store<OfClient, Client<S>>) -> Option<ClientId> {
        next(&mut self.awaited, |entry| is_awaited(*entry, clients)).map(|(id, _)| id)
    }

    /// Whoever has left stays behind those who have not; but not more of them than of those.
    fn tidy<S: Socket>(&mut self, clients: &Store<OfClient, Client<S>>) {
        if self.begun.len() + self.fresh.len() > 2 * self.ready + SOME {
            self.begun.retain(|id| is_ready(*id, clients));
            self.fresh.retain(|(id, _)| is_ready(*id, clients));
        }
        if self.awaited.len() > 2 * (self.open - self.ready) + SOME {
            self.awaited.retain(|entry| is_awaited(*entry, clients));
        }
    }
}

impl<N: Net> Worker<N> {
    /// A client's handshake, or what comes before it, has something to do. It is done when it is its turn; until then the client
    /// is not read.
    pub(super) fn queue_handshake(&mut self, id: ClientId) {
        let now = self.core.net.now();
        if let Some(client) = self.clients.get_mut(id) {
            self.handshakes.queue(id, client, now);
            self.touch_client(id);
        }
    }

    /// Takes steps of handshakes within the budget, in turns with servers (`upstreams`, whom the poller reports again) and with
    /// clients. A turn that has taken long already goes on with them for a quarter of that time: few steps in each of a hundred
    /// large answers' turns would be as good as none.
    pub(super) fn take_handshakes(&mut self, upstreams: &[Ready]) {
        if upstreams.is_empty() && self.handshakes.ready == 0 {
            return;
        }
        let before = self.core.wire.flights();
        let most = self.core.plan.snapshot.handshakes_per_turn;
        let looks = LOOKS_PER_STEP * most;
        let end = self.core.net.spent() * 5 / 4;
        let mut upstreams = upstreams.iter();
        for nth in 0.. {
            let is_used_up = nth >= looks || self.core.wire.flights() - before >= u64::from(most);
            if is_used_up && self.core.net.spent() >= end {
                break;
            }
            let is_upstreams = nth % 2 == 0 || self.handshakes.ready == 0;
            match if is_upstreams { upstreams.next() } else { None } {
                Some(ready) => {
                    if let Some(id) = UpstreamId::of(ready.key) {
                        self.upstream_ready(id, *ready, EventSource::Queue);
                    }
                }
                // Bytes that complete nothing use up no budget, and must not keep all others back.
                None => match self.handshakes.take(nth % looks < looks / 2, &self.clients) {
                    Some((id, since)) => self.step(id, since),
                    None => break,
                },
            }
        }
        self.handshakes.tidy(&self.clients);
    }

    /// A client was accepted whose handshake, or preface, begins; whether it may. If there are more than there may be, one is
    /// closed: if most wait for their turn, handshakes come faster than they can be done, and each that is begun now delays
    /// another. Otherwise the client that has been waited for longest has most likely nothing more to say.
    pub(super) fn begin_handshake(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.get_mut(id).filter(|client| client.is_in_handshake()) else {
            return true;
        };
        self.handshakes.wait_for(id, client);
        self.handshakes.tidy(&self.clients);
        while self.handshakes.open > self.most_handshakes() {
            let is_flooded = self.handshakes.ready > self.handshakes.open / 2;
            let longest = if is_flooded { None } else { self.handshakes.take_awaited(&self.clients) };
            let surplus = longest.unwrap_or(id);
            self.give_up_handshake(surplus, &Reason::TooManyHandshakes);
            if surplus == id {
                return false;
            }
        }
        true
    }

    /// How many there may be in this worker.
    fn most_handshakes(&self) -> usize {
        let clients = self.peers.descriptors.open().most_clients;
        let set = self.core.plan.snapshot.handshakes.map(|most| most as usize);
        set.unwrap_or(Limits::HANDSHAKES.min(clients / 2)).div_ceil(self.peers.all.len().max(1)).max(1)
    }

    /// Takes a step. `since`: it is the first one, and was waited for since then. Where half of its time has gone by, the rest
    /// may not do for what follows, and all of it would have been in vain.
    fn step(&mut self, id: ClientId, since: Option<Instant>) {
        let limit = self.core.plan.policy().timeouts.handshake;
        if since.is_some_and(|since| self.core.net.now().saturating_duration_since(since) > limit / 2) {
            return self.give_up_handshake(id, &Reason::TooManyHandshakes);
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        self.handshakes.wait_for(id, client);
        let key = id.key();
        let ready = Ready { key, readable: true, writable: true, hangup: false };
        self.client_ready(id, ready, EventSource::Queue);
    }

    /// Ends a client that is not through its handshake, with a reset: nothing that it was sent is of use to it. A clean close
    /// leaves a socket in TIME-WAIT for a minute, and in a flood the kernel ends some hundred of those at a time.
    #[cold]
    pub(super) fn give_up_handshake(&mut self, id: ClientId, reason: &Reason) {
        self.note_end_of_client(id, reason);
        if let Some(client) = self.clients.get(id) {
            client.transport.reset();
        }
        self.drop_client(id);
    }
}

/// The next one of a list that is still in it.
fn next<T>(list: &mut VecDeque<T>, is_in: impl Fn(&T) -> bool) -> Option<T> {
    loop {
        let entry = list.pop_front()?;
        if is_in(&entry) {
            return Some(entry);
        }
    }
}

fn is_ready<S>(id: ClientId, clients: &Store<OfClient, Client<S>>) -> bool {
    clients.get(id).is_some_and(|client| client.handshake == Handshake::Ready)
}

fn is_awaited<S: Socket>((id, number): (ClientId, u32), clients: &Store<OfClient, Client<S>>) -> bool {
    let client = clients.get(id);
    client.is_some_and(|client| client.handshake == Handshake::Awaited(number) && client.is_in_handshake())
}

/// Looks at what has come, for each step of a turn: one for each of the two that take turns. Bytes that complete no message cost
/// little, but are not free.
const LOOKS_PER_STEP: u32 = 2;

/// So that a few cost no search.
const SOME: usize = 64;
