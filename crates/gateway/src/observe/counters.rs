//! One worker's counters: plain integers, which are summed over all workers on request.

use crate::limits::{EXHAUSTED, Exhausted, Kind};
use crate::mirror::{FATES, Fate};
use crate::reason::{CODES, Reason};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use weir_http1::Rules;
use weir_reactor::Socket;
use weir_tls::{Facts, Group, HandshakeKind};
use weir_transport::Transport;

/// The upper bounds of the histogram of request durations, in microseconds. A further bucket counts longer durations.
pub(crate) const BOUNDS: [u64; 16] = {
    let mut bounds = [500; 16];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 2;
        at += 1;
    }
    bounds
};

/// The counters of one worker, or the sum for several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Connections from clients.
    pub connections: u64,
    /// Connections to upstreams.
    pub upstream_connections: u64,
    /// Connections to upstreams that were taken over from another worker.
    pub taken_over: u64,
    /// Requests that were forwarded, or to which the gateway responded itself.
    pub requests: u64,
    /// Request fields dropped for an underscore in their name.
    pub underscored: u64,
    /// Times that a request was sent again, to the same server or another one.
    pub retries: u64,
    /// Connections that became tunnels.
    pub tunnels: u64,
    /// Ejections of servers.
    pub ejections: u64,
    /// Responses by the first digit of their status; index 0 counts requests without a response.
    pub responses: [u64; 6],
    /// Requests by the time from their head to the end of their response; see `BOUNDS`.
    pub took: [u64; BOUNDS.len() + 1],
    /// The sum of these times.
    pub took_us: u64,
    /// Bytes of closed connections, with clients and with servers.
    bytes: [Bytes; 2],
    mirrors: [u64; FATES.len()],
    /// Rests of listeners by what was missing.
    rests: [u64; EXHAUSTED.len()],
    /// Idle connections of clients and to servers that were closed, by what was missing.
    evicted: [[u64; EXHAUSTED.len()]; 2],
    handshakes: [u64; KINDS.len()],
    upstream_handshakes: [u64; KINDS.len()],
    /// Handshakes with clients and with upstreams, by the negotiated parameters.
    negotiated: [BTreeMap<Negotiated, u64>; 2],
    /// Heads that broke a rule that the configuration relaxes.
    accepted: BTreeMap<Accepted, u64>,
    ended: [u64; CODES.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            connections: 0,
            upstream_connections: 0,
            taken_over: 0,
            requests: 0,
            underscored: 0,
            retries: 0,
            tunnels: 0,
            ejections: 0,
            responses: [0; 6],
            took: [0; BOUNDS.len() + 1],
            took_us: 0,
            bytes: Default::default(),
            mirrors: [0; FATES.len()],
            rests: [0; EXHAUSTED.len()],
            evicted: [[0; EXHAUSTED.len()]; 2],
            handshakes: [0; KINDS.len()],
            upstream_handshakes: [0; KINDS.len()],
            negotiated: Default::default(),
            accepted: BTreeMap::new(),
            ended: [0; CODES.len()],
        }
    }
}

impl Counters {
    /// Counts a finished handshake with a client.
    pub(crate) fn handshake(&mut self, facts: Option<&Facts>) {
        count(&mut self.handshakes, &mut self.negotiated[0], facts);
    }

    /// Counts a finished handshake with an upstream.
    pub(crate) fn upstream_handshake(&mut self, facts: Option<&Facts>) {
        count(&mut self.upstream_handshakes, &mut self.negotiated[1], facts);
    }

    /// Counts a response and the duration of its request.
    #[inline]
    pub(crate) fn response(&mut self, status: u16, took: Duration) {
        self.responses[usize::from(status / 100).min(5)] += 1;
        let us = took.as_secs() * 1_000_000 + u64::from(took.subsec_micros());
        self.took_us += us;
        // The bounds double, beginning with 500 us.
        let doublings = (us / BOUNDS[0]).checked_ilog2().map_or(0, |log| log as usize + 1);
        self.took[doublings.min(BOUNDS.len())] += 1;
    }

    /// Counts a mirrored request.
    pub(crate) fn mirror(&mut self, fate: Fate) {
        self.mirrors[fate as usize] += 1;
    }

    /// Mirrored requests by their fate.
    pub fn mirrors(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        FATES.into_iter().zip(self.mirrors)
    }

    /// Adds the bytes of a connection with a client.
    pub(crate) fn client_bytes(&mut self, bytes: Bytes) {
        self.bytes[0].add(bytes);
    }

    /// Adds the bytes of a connection with a server.
    pub(crate) fn server_bytes(&mut self, bytes: Bytes) {
        self.bytes[1].add(bytes);
    }

    /// Bytes on the wire, with clients and with servers.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = (&'static str, Bytes)> + '_ {
        ["client", "server"].into_iter().zip(self.bytes)
    }

    /// Counts a pause of a listener.
    pub(crate) fn rested(&mut self, scarce: Exhausted) {
        self.rests[scarce as usize] += 1;
    }

    /// Pauses of listeners, by the exhausted resource.
    pub(crate) fn rests(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        EXHAUSTED.into_iter().zip(self.rests)
    }

    /// Counts an idle connection that was closed to make room.
    pub(crate) fn evicted(&mut self, kind: Kind, scarce: Exhausted) {
        self.evicted[kind as usize][scarce as usize] += 1;
    }

    /// Idle connections that were closed to make room, by kind and exhausted resource.
    pub(crate) fn evictions(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let of = |(kind, counts): (&'static str, &[u64; EXHAUSTED.len()])| {
            EXHAUSTED.into_iter().zip(*counts).map(move |(scarce, count)| (kind, scarce, count))
        };
        ["client", "server"].into_iter().zip(&self.evicted).flat_map(of)
    }

    /// Counts an early end.
    pub(crate) fn end(&mut self, reason: &Reason) {
        self.ended[reason.code()] += 1;
    }

    /// Finished handshakes with clients by kind.
    pub fn handshakes(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        KINDS.map(HandshakeKind::name).into_iter().zip(self.handshakes)
    }

    /// Handshakes in which clients resumed with a ticket.
    pub(crate) fn redeemed(&self) -> u64 {
        let by_ticket = [HandshakeKind::Resume12Ticket, HandshakeKind::Resume13Psk];
        let resumed = KINDS.iter().zip(self.handshakes).filter(|(kind, _)| by_ticket.contains(kind));
        resumed.map(|(_, count)| count).sum()
    }

    /// Finished handshakes with servers by kind.
    pub fn upstream_handshakes(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        KINDS.map(HandshakeKind::name).into_iter().zip(self.upstream_handshakes)
    }

    /// Handshakes by the negotiated parameters, with clients (`false`) and with upstreams (`true`).
    pub(crate) fn negotiated(&self) -> impl Iterator<Item = (bool, Negotiated, u64)> + '_ {
        let [clients, upstreams] = &self.negotiated;
        let with = |upstream| move |(negotiated, count): (&Negotiated, &u64)| (upstream, *negotiated, *count);
        clients.iter().map(with(false)).chain(upstreams.iter().map(with(true)))
    }

    /// Counts a head that broke these relaxed rules.
    pub(crate) fn accept(&mut self, by: By, rules: Rules) {
        for rule in rules.iter() {
            *self.accepted.entry(Accepted { by: by.clone(), rule: rule.label() }).or_default() += 1;
        }
    }

    /// Heads that broke a rule that the configuration relaxes.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = (&Accepted, u64)> {
        self.accepted.iter().map(|(accepted, count)| (accepted, *count))
    }

    /// Early ends by reason, as named by [`Reason::as_str`]; reasons that did not occur are left out.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        CODES.into_iter().zip(self.ended).filter(|(_, count)| *count > 0)
    }

    /// Adds the counters of another worker.
    pub fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.upstream_connections += other.upstream_connections;
        self.taken_over += other.taken_over;
        self.requests += other.requests;
        self.underscored += other.underscored;
        self.retries += other.retries;
        self.tunnels += other.tunnels;
        self.ejections += other.ejections;
        add(&mut self.responses, &other.responses);
        add(&mut self.took, &other.took);
        self.took_us += other.took_us;
        for (mine, theirs) in self.bytes.iter_mut().zip(other.bytes) {
            mine.add(theirs);
        }
        add(&mut self.mirrors, &other.mirrors);
        add(&mut self.rests, &other.rests);
        for (mine, theirs) in self.evicted.iter_mut().zip(&other.evicted) {
            add(mine, theirs);
        }
        add(&mut self.handshakes, &other.handshakes);
        add(&mut self.upstream_handshakes, &other.upstream_handshakes);
        for (mine, theirs) in self.negotiated.iter_mut().zip(&other.negotiated) {
            for (negotiated, count) in theirs {
                *mine.entry(*negotiated).or_default() += count;
            }
        }
        for (accepted, count) in &other.accepted {
            *self.accepted.entry(accepted.clone()).or_default() += count;
        }
        add(&mut self.ended, &other.ended);
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = KINDS.map(HandshakeKind::name);
        write!(
            f,
            "served {} requests on {} connections (handshakes: {}), {} upstream connections (handshakes: {}); ",
            self.requests,
            self.connections,
            Listing(kinds.into_iter().zip(self.handshakes)),
            self.upstream_connections,
            Listing(kinds.into_iter().zip(self.upstream_handshakes)),
        )?;
        for (count, name) in
            [(self.retries, "retries"), (self.tunnels, "tunnels"), (self.ejections, "ejections")]
        {
            if count > 0 {
                write!(f, "{name}: {count}; ")?;
            }
        }
        let mut ended: Vec<_> = self.ended().collect();
        ended.sort_unstable();
        write!(f, "ended early: {}", Listing(ended.into_iter()))
    }
}

/// A list such as `3 full, 1 resume-1.3-psk`, or `none`.
struct Listing<I>(I);

impl<I: Iterator<Item = (&'static str, u64)> + Clone> fmt::Display for Listing<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (name, count) in self.0.clone().filter(|(_, count)| *count > 0) {
            write!(f, "{between}{count} {name}")?;
            between = ", ";
        }
        if between.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

/// Bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub received: u64,
    pub sent: u64,
}

impl Bytes {
    /// The bytes of a connection so far.
    pub(crate) fn of<S: Socket>(transport: &Transport<S>) -> Self {
        Self { received: transport.received(), sent: transport.taken() }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
    }
}

/// The parameters that a handshake negotiated, by their names in the TLS crate. The group is `none` for a resumption
/// without a key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Negotiated {
    pub version: &'static str,
    pub suite: &'static str,
    pub group: &'static str,
}

/// A relaxed rule that a head broke, by its name in metrics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Accepted {
    pub rule: &'static str,
    #[serde(flatten)]
    pub by: By,
}

/// The listener or service whose setting relaxes the rule, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    Listener(String),
    Service(String),
}

fn count(kinds: &mut [u64; KINDS.len()], negotiated: &mut BTreeMap<Negotiated, u64>, facts: Option<&Facts>) {
    let Some(facts) = facts else { return };
    if let Some(at) = KINDS.iter().position(|kind| *kind == facts.kind) {
        kinds[at] += 1;
    }
    let found = Negotiated {
        version: facts.version.name(),
        suite: facts.suite.name(),
        group: facts.group.map_or("none", Group::name),
    };
    *negotiated.entry(found).or_default() += 1;
}

fn add(mine: &mut [u64], theirs: &[u64]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine += theirs;
    }
}

const KINDS: [HandshakeKind; 4] = [
    HandshakeKind::Full,
    HandshakeKind::Resume12Id,
    HandshakeKind::Resume12Ticket,
    HandshakeKind::Resume13Psk,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_added_and_written_by_name() {
        let mut sum = Counters::default();
        assert_eq!(
            sum.to_string(),
            "served 0 requests on 0 connections (handshakes: none), 0 upstream connections (handshakes: none); \
             ended early: none"
        );
        for _ in 0..2 {
            let mut one = Counters { requests: 3, retries: 1, ..Counters::default() };
            one.end(&Reason::UpstreamClosed);
            one.end(&Reason::Internal("a test"));
            one.end(&Reason::BodyTooLarge);
            sum.add(&one);
        }
        assert!(
            sum.to_string()
                .ends_with("retries: 2; ended early: 2 body_too_large, 2 internal_error, 2 upstream_closed")
        );
    }
}
