//! The events that workers count, in plain integers. A report sums them over all workers.

use super::latency::Measured;
use super::metrics::Counters;
use super::values::Labels;
use crate::limits::{EXHAUSTED, Exhausted, Kind};
use crate::mirror::{FATES, Fate};
use crate::reason::{CODES, Reason};
use std::fmt;
use std::time::Duration;
use weir_http1::Rules;
use weir_http2::Connection;
use weir_reactor::Socket;
use weir_tls::{Facts, Group, HandshakeKind, TicketCounts};
use weir_transport::Transport;

/// The classes of a status, by its first digit; index 0 stands for requests without a response.
pub(super) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The peers of connections, in the order of [`Kind`].
pub(super) const SIDES: [&str; 2] = ["client", "server"];

/// The directions and forms of field blocks: see [`weir_http2::FieldBytes`].
pub(super) const DIRECTIONS: [&str; 2] = ["received", "sent"];
pub(super) const FORMS: [&str; 2] = ["encoded", "decoded"];

/// The rules that allow a retry, in the order of [`RetryRule`].
pub(super) const RULES: [&str; 5] =
    ["reused_connection", "before_sending", "status", "refused_stream", "go_away"];

/// A rule that allows a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryRule {
    /// The server closed a reused connection before it responded.
    ReusedConnection,
    /// The attempt failed before any byte of the request was sent.
    BeforeSending,
    /// The route retries this response status.
    Status,
    /// The server refused the stream.
    RefusedStream,
    /// The server closed the connection without processing the stream.
    GoAway,
}

/// The kinds of handshakes, in the order of [`HandshakeKind`].
pub(super) const KINDS: [&str; 4] = [
    HandshakeKind::Full.name(),
    HandshakeKind::Resume12Id.name(),
    HandshakeKind::Resume12Ticket.name(),
    HandshakeKind::Resume13Psk.name(),
];

/// Reasons for rejecting a client's ticket: its key has expired; its key is unknown, or belongs to other certificates;
/// it was modified; or the handshake asked for another version, suite or name.
pub(super) const REFUSALS: [&str; 4] = ["expired", "unknown_key", "damaged", "mismatched"];

impl Counters {
    /// Counts a finished handshake with a client.
    pub(crate) fn handshake(&mut self, facts: Option<&Facts>) {
        let Some(facts) = facts else { return };
        self.handshakes.0[facts.kind as usize] += 1;
        self.negotiate(Kind::Client, facts);
    }

    /// Counts a finished handshake with an upstream.
    pub(crate) fn upstream_handshake(&mut self, facts: Option<&Facts>) {
        let Some(facts) = facts else { return };
        self.upstream_handshakes.0[facts.kind as usize] += 1;
        self.negotiate(Kind::Upstream, facts);
    }

    fn negotiate(&mut self, with: Kind, facts: &Facts) {
        let negotiated = Negotiated {
            with: SIDES[with as usize],
            version: facts.version.name(),
            suite: facts.suite.name(),
            group: facts.group.map_or("none", Group::name),
        };
        *self.negotiated.entry(negotiated).or_default() += 1;
    }

    /// Counts a response and the duration of its request. Returns the measurement for the histograms of the service and
    /// the route.
    #[inline]
    pub(crate) fn response(&mut self, status: u16, took: Duration) -> Measured {
        let measured = Measured::new(status, took);
        self.responses.0[measured.class] += 1;
        self.took.record(measured);
        measured
    }

    /// Counts a copy of a request by its fate.
    pub(crate) fn mirror(&mut self, fate: Fate) {
        self.mirrors.0[fate as usize] += 1;
    }

    /// The numbers of mirrored requests by their fate.
    pub fn mirrors(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        FATES.into_iter().zip(self.mirrors.0)
    }

    /// Adds the bytes of a client connection.
    pub(crate) fn client_bytes(&mut self, bytes: Bytes) {
        self.bytes(Kind::Client, bytes);
    }

    /// Adds the bytes of a server connection.
    pub(crate) fn server_bytes(&mut self, bytes: Bytes) {
        self.bytes(Kind::Upstream, bytes);
    }

    fn bytes(&mut self, with: Kind, Bytes { received, sent }: Bytes) {
        self.received.0[with as usize] += received;
        self.sent.0[with as usize] += sent;
    }

    /// Counts a retry, in total and by the rule that allows it.
    pub(crate) fn retry(&mut self, rule: RetryRule) {
        self.retries += 1;
        self.retries_by_rule.0[rule as usize] += 1;
        let is_unprocessed = matches!(rule, RetryRule::RefusedStream | RetryRule::GoAway);
        self.unprocessed_retries += u64::from(is_unprocessed);
    }

    /// Adds the sizes of the field blocks that a connection has received and sent since the last call.
    #[inline]
    pub(crate) fn field_bytes(&mut self, with: Kind, connection: &mut Connection) {
        let (received, sent) = connection.take_field_bytes();
        let bytes = [received.encoded, received.decoded, sent.encoded, sent.decoded];
        for (sum, bytes) in self.http2_field_bytes.0[4 * with as usize..].iter_mut().zip(bytes) {
            *sum += bytes;
        }
    }

    /// Adds the time in which streams waited for windows.
    #[inline]
    pub(crate) fn window_wait(&mut self, with: Kind, waited: Duration) {
        self.http2_window_seconds.0[with as usize] += waited.as_micros() as u64;
    }

    /// Counts a pause of a listener for lack of the resource `scarce`.
    pub(crate) fn rested(&mut self, scarce: Exhausted) {
        self.rests.0[scarce as usize] += 1;
    }

    /// Counts an idle connection that the gateway closed to make room.
    pub(crate) fn evicted(&mut self, kind: Kind, scarce: Exhausted) {
        self.evicted.0[kind as usize * EXHAUSTED.len() + scarce as usize] += 1;
    }

    /// Counts an early end of an exchange or a connection by its reason.
    pub(crate) fn end(&mut self, reason: &Reason) {
        self.ended.0[reason.code()] += 1;
    }

    /// Adds the ticket counts of a TLS acceptor. Call [`Counters::redeem`] after the last acceptor.
    pub(crate) fn tickets(&mut self, counts: TicketCounts) {
        let TicketCounts { issued, opened, expired, unknown_key, damaged } = counts;
        self.tickets_issued += issued;
        for (mine, theirs) in self.tickets_refused.0.iter_mut().zip([expired, unknown_key, damaged, opened]) {
            *mine += theirs;
        }
    }

    /// Divides the decrypted tickets into redeemed ones, by the number of resumptions, and mismatched ones.
    pub(crate) fn redeem(&mut self) {
        let by_ticket = [HandshakeKind::Resume12Ticket, HandshakeKind::Resume13Psk];
        self.tickets_redeemed = by_ticket.map(|kind| self.handshakes.0[kind as usize]).iter().sum();
        let [.., mismatched] = &mut self.tickets_refused.0;
        *mismatched = mismatched.saturating_sub(self.tickets_redeemed);
    }

    /// Counts a repaired head, once for each of the `rules` that it violated.
    pub(crate) fn accept(&mut self, by: By, rules: Rules) {
        for rule in rules.iter() {
            *self.accepted.entry(Accepted { by: by.clone(), rule: rule.label() }).or_default() += 1;
        }
    }

    /// The numbers of early ends by reason, as named by [`Reason::as_str`], without reasons that did not occur.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        CODES.into_iter().zip(self.ended.0).filter(|(_, count)| *count > 0)
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "served {} requests on {} connections (handshakes: {}), {} upstream connections (handshakes: {}); ",
            self.requests,
            self.connections,
            Listing(KINDS.into_iter().zip(self.handshakes.0)),
            self.upstream_connections,
            Listing(KINDS.into_iter().zip(self.upstream_handshakes.0)),
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

/// Bytes on the wire, including those of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub received: u64,
    pub sent: u64,
}

impl Bytes {
    /// The bytes that a connection has transferred so far.
    pub(crate) fn of<S: Socket>(transport: &Transport<S>) -> Self {
        Self { received: transport.received(), sent: transport.taken() }
    }
}

/// The parameters that a handshake negotiated, by their names in the TLS crate. The group is `none` for a resumption
/// without a key exchange.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Negotiated {
    /// The peer: one of [`SIDES`].
    pub with: &'static str,
    pub version: &'static str,
    pub suite: &'static str,
    pub group: &'static str,
}

/// A relaxed rule that a head violated, by its name in metrics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Accepted {
    pub rule: &'static str,
    pub by: By,
}

/// The listener or service that relaxes the rule, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    Listener(String),
    Service(String),
}

impl Labels for Negotiated {
    fn labels(&self) -> Vec<(&'static str, &str)> {
        let Self { with, version, suite, group } = self;
        vec![("with", with), ("version", version), ("suite", suite), ("group", group)]
    }
}

impl Labels for Accepted {
    fn labels(&self) -> Vec<(&'static str, &str)> {
        let by = match &self.by {
            By::Listener(name) => ("listener", name.as_str()),
            By::Service(name) => ("service", name.as_str()),
        };
        vec![("rule", self.rule), by]
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::Counts;
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

    /// TLS counts decrypted tickets, but the handshake may still be a full one.
    #[test]
    fn a_ticket_is_redeemed_or_mismatched() {
        let mut counters = Counters { handshakes: Counts([9, 9, 2, 3]), ..Counters::default() };
        let of_acceptor = TicketCounts { issued: 20, opened: 4, expired: 1, unknown_key: 2, damaged: 3 };
        counters.tickets(of_acceptor);
        counters.tickets(of_acceptor);
        counters.redeem();
        assert_eq!((counters.tickets_issued, counters.tickets_redeemed), (40, 5));
        assert_eq!(counters.tickets_refused, Counts([2, 4, 6, 3]));
    }
}
