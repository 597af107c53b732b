//! What has become of each request: the ground on which everything is judged.

use crate::message::Ask;

/// All requests by number, what went wrong, and what happened last.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// One entry for each request that a client has begun to send.
    pub(crate) entries: Vec<Entry>,
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
    /// How often an origin has seen its head.
    pub(crate) arrivals: u32,
    /// Whether an origin got all that followed a switch of protocol.
    pub(crate) is_passed_on: Option<bool>,
    /// What its client got.
    pub(crate) outcome: Option<Outcome>,
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
