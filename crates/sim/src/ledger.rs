//! What has become of each request: the ground on which everything is judged.

use crate::message::{Ask, Failure, name};
use crate::setting::RETRIED;
use crate::world::World;
use std::net::SocketAddr;
use std::time::Duration;
use weir_gateway::document::Retry;

/// All requests by number, what went wrong, and what happened last.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// One entry for each request that a client has begun to send.
    pub(crate) entries: Vec<Entry>,
    /// Requests that have come to origins and were not judged.
    pub(crate) arrived: Vec<(usize, Arrival)>,
    /// Rules that were broken.
    pub(crate) violations: Vec<String>,
    /// What happened, in order.
    pub(crate) trace: Vec<String>,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What was asked.
    pub(crate) ask: Ask,
    /// The link of its client.
    pub(crate) link: usize,
    /// When it was asked.
    pub(crate) at: Duration,
    /// Where its first byte is in what its client says, where that is no TLS.
    pub(crate) from: usize,
    /// The oldest configuration by which it may be passed on.
    pub(crate) oldest: u32,
    /// Whose request the gateway must say it is; `None`: it cannot know.
    pub(crate) source: Option<SocketAddr>,
    /// Its connection is passed on without being decrypted.
    pub(crate) is_passed: bool,
    /// Where origins have seen its head.
    pub(crate) arrivals: Vec<Arrival>,
    /// Its client has the head of an origin's response.
    pub(crate) has_begun: bool,
    /// How often a mirror has seen it.
    pub(crate) copies: u32,
    /// Whether an origin got all that followed a switch of protocol.
    pub(crate) is_passed_on: Option<bool>,
    /// What its client got.
    pub(crate) outcome: Option<Outcome>,
}

/// A request has come to an origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The link on which it came.
    pub(crate) link: usize,
    /// Whether another request had come on it before.
    pub(crate) is_reused: bool,
    /// How much of what the origin has said there the gateway had read; `None`: over TLS there is more than answers.
    pub(crate) read: Option<usize>,
    /// How much of what the gateway has said there the origin had read with its head.
    pub(crate) got: usize,
    /// The configuration by which it was passed on.
    pub(crate) version: u32,
    /// The error in its response, if it was one.
    pub(crate) error: Option<Failure>,
    /// The error came before the end of the body.
    pub(crate) is_early: bool,
}

/// Which requests may come again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeats {
    /// Of which methods.
    pub(crate) retry: Retry,
    /// After some errors, too.
    pub(crate) after_errors: bool,
}

/// What a client got for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The answer, complete and its own.
    Answered,
    /// A refusal with this status.
    Refused(u16),
    /// The connection ended first.
    Lost,
    /// The client went away itself, or had been told that the connection closes.
    Forgone,
}

impl Ledger {
    /// Notes that a rule is broken.
    pub(crate) fn violation(&mut self, what: String) {
        self.note(|| format!("VIOLATION {what}"));
        self.violations.push(what);
    }

    /// A request that a client is about to send, with nothing known of it but what is asked.
    pub(crate) fn entry(ask: Ask, link: usize, at: Duration) -> Entry {
        Entry {
            ask,
            link,
            at,
            from: 0,
            oldest: 0,
            source: None,
            is_passed: false,
            arrivals: Vec::new(),
            has_begun: false,
            copies: 0,
            is_passed_on: None,
            outcome: None,
        }
    }

    /// Notes that a request has come to an origin, and whether it may. Again only what may be done twice and is not long, while
    /// its client has no response: once on another connection after a reused one closed without a byte of a response, or at
    /// another server after an error.
    pub(crate) fn arrives(&mut self, id: usize, arrival: Arrival, repeats: Repeats, world: &World) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        self.arrived.push((id, arrival));
        entry.arrivals.push(arrival);
        let [before @ .., last] = &entry.arrivals[..] else { return };
        let Some(lost) = before.last() else { return };
        let link = &world.links[lost.link];
        let may_be_repeated = match repeats.retry {
            Retry::Idempotent => entry.ask.method.is_idempotent(),
            Retry::Always => true,
            Retry::Never => false,
        };
        // With TLS it is not known how much of it.
        let is_long = lost.read.is_some() && link.down.read - lost.got > LONGEST_REPEATED;
        let no_answer = match () {
            () if !lost.is_reused => "again, after a new connection",
            () if lost.read.is_some_and(|read| link.up.read != read) => "again, after bytes of an answer",
            () if !link.peer_gone && !link.up.is_ended() => "again, and its connection was not closed",
            () => "",
        };
        let error = lost.error.filter(|_| repeats.after_errors && !no_answer.is_empty());
        let is_at = |arrival: &Arrival| world.links[arrival.link].to == world.links[last.link].to;
        let wrong = match error {
            _ if entry.has_begun => "again, after its client got an answer",
            _ if !may_be_repeated => "again, and must not be repeated",
            _ if is_long => "again, and much had come",
            None if before.len() > 1 => "a third time",
            None => no_answer,
            Some(error) if !RETRIED.contains(&error.status) => "again, after an error that is its answer",
            Some(_) if before.iter().any(is_at) => "again at a server that has answered it",
            Some(_) if before.len() > 2 => "at a third other server",
            Some(_) => "",
        };
        if !wrong.is_empty() {
            let method = name(entry.ask.method);
            self.violation(format!("#{id} {method} arrived {wrong}"));
        }
    }

    /// Notes an event.
    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        self.trace.push(what());
    }

    /// Notes what a client got. Each request has one outcome.
    pub(crate) fn outcome(&mut self, id: usize, outcome: Outcome) {
        self.note(|| format!("#{id} {outcome:?}"));
        match self.entries.get_mut(id) {
            Some(entry) if entry.outcome.is_none() => entry.outcome = Some(outcome),
            Some(entry) => {
                let before = entry.outcome;
                self.violation(format!("#{id} has two outcomes: {before:?}, {outcome:?}"));
            }
            None => self.violation(format!("#{id} was never asked")),
        }
    }
}

/// What is longer is not kept, as far as it has left.
const LONGEST_REPEATED: usize = 16 * 1024;
