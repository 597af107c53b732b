//! The history of each request, recorded for all checks.

use crate::Invariant;
use crate::message::{Ask, Failure, name};
use crate::setting::RETRIED;
use crate::world::World;
use std::net::SocketAddr;
use std::time::Duration;
use weir_gateway::document::Retry;

/// All requests by ID, violations, and the trace.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// One entry for each request that a client began to send.
    pub(crate) entries: Vec<Entry>,
    /// Arrivals at origins that the checks have not processed yet.
    pub(crate) arrived: Vec<(usize, Arrival)>,
    /// Violated invariants.
    pub(crate) violations: Vec<String>,
    /// All events, in order.
    pub(crate) trace: Vec<String>,
}

/// A request with its arrivals at origins and its outcome.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The request as the client sent it.
    pub(crate) ask: Ask,
    /// The client's link.
    pub(crate) link: usize,
    /// The time at which the client began to send the request.
    pub(crate) at: Duration,
    /// Offset of the request's first byte in the client's cleartext.
    pub(crate) from: usize,
    /// The oldest configuration that may forward the request.
    pub(crate) oldest: u32,
    /// The client address that the gateway must report; `None`: the gateway cannot know it.
    pub(crate) source: Option<SocketAddr>,
    /// The gateway passes the connection through without decrypting it.
    pub(crate) is_passed: bool,
    /// Arrivals of the head at origins.
    pub(crate) arrivals: Vec<Arrival>,
    /// The client has received the head of an origin's response.
    pub(crate) has_begun: bool,
    /// A GOAWAY has named a last stream that includes this request.
    pub(crate) is_accepted: bool,
    /// The way in which the gateway has reported the request to the client as not processed; `None` if it has not.
    pub(crate) unprocessed: Option<Unprocessed>,
    /// Number of mirrored copies.
    pub(crate) copies: u32,
    /// Whether an origin received all bytes after an upgrade; `None` unless its stream ended cleanly.
    pub(crate) is_passed_on: Option<bool>,
    /// The outcome for the client; `None` while the request is in progress.
    pub(crate) outcome: Option<Outcome>,
}

/// The arrival of a request at an origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The link of the arrival.
    pub(crate) link: usize,
    /// Whether the link carried an earlier request.
    pub(crate) is_reused: bool,
    /// Bytes from the origin that the gateway had read at the arrival; `None` over TLS, where handshake bytes would
    /// count.
    pub(crate) read: Option<usize>,
    /// Bytes from the gateway that the origin had read, including this head.
    pub(crate) got: usize,
    /// The configuration that forwarded the request.
    pub(crate) version: u32,
    /// The error response, if the origin sent one.
    pub(crate) error: Option<Failure>,
    /// The origin sent its response before the end of the request body.
    pub(crate) is_early: bool,
    /// The stream of the arrival; `None` in HTTP/1.
    pub(crate) stream: Option<OnStream>,
}

/// The state of a request on a stream, as its origin knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnStream {
    /// Received bytes of the body.
    pub(crate) body: usize,
    /// The offset after the first frame of the response, in the origin's cleartext; `None` before the response begins.
    pub(crate) answered_at: Option<usize>,
    /// The origin reported the request as not processed: with REFUSED_STREAM, or by a GOAWAY.
    pub(crate) is_unprocessed: bool,
}

/// The gateway's retry settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeats {
    /// The methods that the gateway may retry.
    pub(crate) retry: Retry,
    /// Whether the gateway also retries after some error responses.
    pub(crate) after_errors: bool,
}

/// The outcome of a request for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The client received its own response, complete.
    Answered,
    /// The gateway rejected the request with this status.
    Refused(u16),
    /// The connection ended before the response was complete.
    Lost,
    /// The client disconnected, or knew that the connection would close.
    Forgone,
}

/// The way in which a client learns that it may send a request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unprocessed {
    /// A GOAWAY names an earlier stream as the last one.
    GoAway,
    /// RST_STREAM with REFUSED_STREAM.
    Refused,
}

impl Ledger {
    /// Records a violation.
    pub(crate) fn violation(&mut self, invariant: Invariant, what: String) {
        let what = format!("{invariant}: {what}");
        self.note(|| format!("VIOLATION {what}"));
        self.violations.push(what);
    }

    /// Creates an entry for a request that a client is about to send.
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
            is_accepted: false,
            unprocessed: None,
            copies: 0,
            is_passed_on: None,
            outcome: None,
        }
    }

    /// Records the arrival of a request at an origin, and checks that a repetition is allowed: its method may be
    /// retried, its bytes fit into the retry buffer, and its client has received no response yet. A request may arrive
    /// again after a reused connection closed without a byte of a response, or at another server after an error
    /// response. Arrivals that the origin has not processed do not count.
    pub(crate) fn arrives(&mut self, id: usize, arrival: Arrival, repeats: Repeats, world: &World) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        self.arrived.push((id, arrival));
        entry.arrivals.push(arrival);
        let [before @ .., last] = &entry.arrivals[..] else { return };
        let is_processed = |arrival: &&Arrival| !arrival.stream.is_some_and(|stream| stream.is_unprocessed);
        let before: Vec<_> = before.iter().filter(is_processed).collect();
        let Some(lost) = before.last() else { return };
        let link = &world.links[lost.link];
        let may_be_repeated = match repeats.retry {
            Retry::Idempotent => entry.ask.method.is_idempotent(),
            Retry::Always => true,
            Retry::Never => false,
        };
        let is_long = match lost.stream {
            Some(stream) => stream.body > LONGEST_REPEATED,
            // Over TLS, `read` is `None`: the number of cleartext bytes is unknown.
            None => lost.read.is_some() && link.down.read - lost.got > LONGEST_REPEATED,
        };
        let is_answered = match lost.stream {
            Some(stream) => lost.read.is_some() && stream.answered_at.is_some_and(|at| link.up.read >= at),
            None => lost.read.is_some_and(|read| link.up.read != read),
        };
        let no_answer = match () {
            () if !lost.is_reused => "again, after a new connection",
            () if is_answered => "again, after bytes of an answer",
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
            Some(_) if before.iter().any(|before| is_at(before)) => "again at a server that has answered it",
            Some(_) if before.len() > 2 => "at a third other server",
            Some(_) => "",
        };
        if !wrong.is_empty() {
            let method = name(entry.ask.method);
            self.violation(Invariant::Once, format!("#{id} {method} arrived {wrong}"));
        }
    }

    /// An arrival of a request, counted from 0.
    pub(crate) fn arrival(&mut self, id: usize, attempt: usize) -> Option<&mut Arrival> {
        self.entries.get_mut(id)?.arrivals.get_mut(attempt)
    }

    /// Adds an event to the trace.
    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        self.trace.push(what());
    }

    /// Records a request's outcome; a second one is a violation.
    pub(crate) fn outcome(&mut self, id: usize, outcome: Outcome) {
        self.note(|| format!("#{id} {outcome:?}"));
        match self.entries.get_mut(id) {
            Some(entry) if entry.outcome.is_none() => entry.outcome = Some(outcome),
            Some(entry) => {
                let before = entry.outcome;
                self.violation(
                    Invariant::Outcome,
                    format!("#{id} has two outcomes: {before:?}, {outcome:?}"),
                );
            }
            None => self.violation(Invariant::Outcome, format!("#{id} was never asked")),
        }
    }
}

/// The maximum length of a request that the gateway keeps for a retry, in bytes.
const LONGEST_REPEATED: usize = 16 * 1024;
