//! Handshake scheduling. A step may cost as much as twenty requests on open connections, so a turn has a budget of
//! steps, and the other handshakes wait. Handshakes in progress come before new ones: the gateway has already paid for
//! their most expensive step, which would otherwise be wasted.

use super::Worker;
use crate::config::document::Limits;
use crate::downstream::{Client, Handshake};
use crate::keys::{ClientId, OfClient, Store, UpstreamId};
use crate::reason::Reason;
use std::collections::VecDeque;
use std::time::Instant;
use weir_reactor::{Net, Ready, Socket};

/// Unfinished handshakes with clients. The lists may contain stale entries, which are skipped when their turn comes.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    /// Clients to which the gateway has sent handshake bytes, and which are ready for their next step, in order of
    /// arrival. The poller does not report their input until the step is taken.
    begun: VecDeque<ClientId>,
    /// Clients to which the gateway has sent nothing, and which are ready for their first step, each with the time at
    /// which it joined the queue.
    fresh: VecDeque<(ClientId, Instant)>,
    /// The clients that must send next, the longest-awaited first. An entry is stale once its number differs from that
    /// in the client's [`Handshake::Awaited`].
    awaited: VecDeque<(ClientId, u32)>,
    /// The number of the next entry in `awaited`.
    next: u32,
    open: usize,
    /// The number of handshakes that wait for their turn.
    ready: usize,
}

/// The source of an event on a connection in its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventSource {
    /// The poller reported the event: the connection's step joins the queue.
    Poller,
    /// The queue has reached the connection's step.
    Queue,
}

impl Handshakes {
    pub(super) fn waiting(&self) -> usize {
        self.ready
    }

    pub(super) fn open(&self) -> usize {
        self.open
    }

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

    fn queue<S: Socket>(&mut self, id: ClientId, client: &mut Client<S>, now: Instant) {
        match client.handshake {
            Handshake::Over => self.open += 1,
            Handshake::Awaited(_) => {}
            Handshake::Ready => return,
        }
        client.handshake = Handshake::Ready;
        self.ready += 1;
        match client.has_sent() {
            true => self.begun.push_back(id),
            false => self.fresh.push_back((id, now)),
        }
    }

    /// Stops counting a handshake that is finished, or whose client was removed.
    pub(super) fn end<S>(&mut self, client: &mut Client<S>) {
        match std::mem::replace(&mut client.handshake, Handshake::Over) {
            Handshake::Over => return,
            Handshake::Awaited(_) => {}
            Handshake::Ready => self.ready -= 1,
        }
        self.open -= 1;
    }

    /// Takes the next client; for its first step, with the time at which it joined the queue.
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

    fn take_awaited<S: Socket>(&mut self, clients: &Store<OfClient, Client<S>>) -> Option<ClientId> {
        next(&mut self.awaited, |entry| is_awaited(*entry, clients)).map(|(id, _)| id)
    }

    /// Removes the lists' stale entries once they outnumber the current ones by more than [`SOME`].
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
    /// Queues the next step of a client's handshake or preface. The gateway does not read from the client before the
    /// client's turn.
    pub(super) fn queue_handshake(&mut self, id: ClientId) {
        let now = self.core.net.now();
        if let Some(client) = self.clients.get_mut(id) {
            self.handshakes.queue(id, client, now);
            self.touch_client(id);
        }
    }

    /// Takes handshake steps within the budget, alternately for servers and for clients. Servers that have to wait need
    /// no queue: the poller reports their events again. A turn that has already taken long continues for another
    /// quarter of its duration: there are few such turns per second, so the budget alone would let too few handshakes
    /// pass.
    pub(super) fn take_handshakes(&mut self) {
        let mut dialling = std::mem::take(&mut self.dialling);
        let before = self.core.wire.flights();
        let most = self.core.plan.snapshot.handshakes_per_turn;
        let looks = LOOKS_PER_STEP * most;
        let end = self.core.net.spent() * 5 / 4;
        let mut upstreams = dialling.iter();
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
                // Partial messages use up attempts but no budget. So new clients come first in the second half of the
                // attempts: otherwise clients that send such messages could starve them.
                None => match self.handshakes.take(nth % looks < looks / 2, &self.clients) {
                    Some((id, since)) => self.step(id, since),
                    None => break,
                },
            }
        }
        dialling.clear();
        self.dialling = dialling;
        self.handshakes.tidy(&self.clients);
    }

    /// Starts the handshake or preface of an accepted client; returns whether the client may continue. Beyond the
    /// maximum of unfinished handshakes, the gateway closes one client. If most handshakes wait for their turn, they
    /// arrive faster than the gateway can process them, so it closes the new client, whose handshake would delay the
    /// others. Otherwise it closes the client that has been silent longest, since that client is the least likely to
    /// continue.
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

    /// This worker's part of the maximum number of unfinished handshakes.
    fn most_handshakes(&self) -> usize {
        let clients = self.peers.descriptors.open().most_clients;
        let set = self.core.plan.snapshot.handshakes.map(|most| most as usize);
        set.unwrap_or(Limits::HANDSHAKES.min(clients / 2)).div_ceil(self.peers.all.len().max(1)).max(1)
    }

    /// Takes a client's next step. `since`: for a first step, the time since which it has waited. If it has waited for
    /// more than half of the handshake timeout, the gateway gives up: the remaining time may be too short for the
    /// handshake, and the work would be wasted.
    fn step(&mut self, id: ClientId, since: Option<Instant>) {
        let limit = self.core.plan.policy().timeouts.handshake;
        if since.is_some_and(|since| self.core.net.now().saturating_duration_since(since) > limit / 2) {
            return self.give_up_handshake(id, &Reason::TooManyHandshakes);
        }
        let Some(client) = self.clients.present_mut(id) else { return };
        self.handshakes.wait_for(id, client);
        let key = id.key();
        let ready = Ready { key, readable: true, writable: true, hangup: false };
        self.client_ready(id, ready, EventSource::Queue);
    }

    /// Closes a client with an unfinished handshake by a reset, since the client needs none of the sent bytes. A clean
    /// close would leave a socket in TIME-WAIT for a minute, and after a flood the kernel frees such sockets in bursts
    /// of hundreds.
    #[cold]
    pub(super) fn give_up_handshake(&mut self, id: ClientId, reason: &Reason) {
        self.note_end_of_client(id, reason);
        if let Some(client) = self.clients.get(id) {
            client.transport.reset();
        }
        self.drop_client(id);
    }
}

/// Takes the next current entry of a list, and drops the stale ones before it.
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

/// The maximum number of attempts per step in the budget: one for a server, one for a client. Without this limit, input
/// that completes no message would take time but use up no budget.
const LOOKS_PER_STEP: u32 = 2;

/// The number of stale entries to tolerate, so that short lists are not scanned.
const SOME: usize = 64;
