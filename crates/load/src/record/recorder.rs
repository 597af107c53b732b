//! What one worker saw, and how the workers' parts become one.

mod kept;

use crate::check::{ErrorClass, Wrong};
use crate::record::seconds::{Coarse, Part};
use crate::record::times::Times;
use crate::result::Tickets;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weir_tls::{Facts, HandshakeKind};

/// The start and the end of the measured window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

impl Window {
    pub(crate) fn holds(&self, instant: Instant) -> bool {
        self.from <= instant && instant < self.to
    }
}

/// Numbers that only grow; the window's are the difference between its two edges.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) answered: u64,
    pub(crate) bytes_received: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) connections: u64,
    pub(crate) handshakes: u64,
    pub(crate) resumed: u64,
    /// Full handshakes made so that there are sessions.
    pub(crate) primed: u64,
    /// Connections that offered a session because they were to resume.
    pub(crate) offered: u64,
    /// Those of them that were answered by a full handshake.
    pub(crate) declined: u64,
    /// Connections that were to resume and had no session to offer.
    pub(crate) had_nothing: u64,
    pub(crate) errors: [u64; ErrorClass::ALL.len()],
}

/// What one worker saw.
pub(crate) struct Recorder {
    pub(crate) counters: Counters,
    pub(crate) window: Option<Window>,
    /// Whether the first byte is written later than planned: in an open loop, and where a connection is made first.
    waits: bool,
    at_start: Counters,
    at_end: Counters,
    at_second: Counters,
    /// By the planned instant, of requests that were planned within the window.
    pub(crate) response: Times,
    /// From the first byte written; only where that is not the planned instant.
    service: Times,
    /// From the first byte written to the first byte of the answer.
    pub(crate) first_byte: Times,
    /// Of connections that were begun within the window.
    pub(crate) connect: Times,
    handshake: Vec<(HandshakeKind, Times)>,
    /// Each step's end and the response times of what was planned in it; empty unless the rate ramps.
    steps: Vec<(Instant, StepTimes)>,
    /// From the planned instant to the worker's turn to it.
    pub(crate) lag: Times,
    /// From a poll to the end of the events that it told of.
    pub(crate) loop_lag: Times,
    /// Arrivals planned within the window.
    pub(crate) planned: u64,
    /// Those of them that were sent.
    pub(crate) sent: u64,
    unsent: Ages,
    /// Arrivals that waited when the window began.
    pub(crate) backlog: u64,
    second: Coarse,
    negotiated: Vec<(Facts, u64)>,
    /// By the name of the handshake's kind.
    tickets: BTreeMap<&'static str, Tickets>,
    examples: BTreeMap<&'static str, String>,
}

/// What was planned in a step.
pub(crate) struct StepTimes {
    pub(crate) planned: u64,
    pub(crate) response: Times,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ages {
    count: u64,
    total: Duration,
    oldest: Duration,
}

/// The instants of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) planned: Instant,
    /// First byte of the request.
    pub(crate) written: Instant,
    /// First byte of the answer; `None` for a handshake.
    pub(crate) first: Option<Instant>,
    pub(crate) end: Instant,
}

impl Recorder {
    pub(crate) fn new(waits: bool) -> Self {
        Self {
            counters: Counters::default(),
            window: None,
            waits,
            at_start: Counters::default(),
            at_end: Counters::default(),
            at_second: Counters::default(),
            response: Times::new(),
            service: Times::new(),
            first_byte: Times::new(),
            connect: Times::new(),
            handshake: Vec::new(),
            steps: Vec::new(),
            lag: Times::new(),
            loop_lag: Times::new(),
            planned: 0,
            sent: 0,
            unsent: Ages::default(),
            backlog: 0,
            second: Coarse::new(),
            negotiated: Vec::new(),
            tickets: BTreeMap::new(),
            examples: BTreeMap::new(),
        }
    }

    /// The rate ramps: response times are also wanted for each step, whose ends these are.
    pub(crate) fn by_step(&mut self, ends: impl Iterator<Item = Instant>) {
        self.steps = ends.map(|end| (end, StepTimes { planned: 0, response: Times::new() })).collect();
    }

    pub(crate) fn window_begins(&mut self) {
        self.at_start = self.counters;
    }

    pub(crate) fn window_ends(&mut self) {
        self.at_end = self.counters;
    }

    /// An arrival has come.
    pub(crate) fn arrival(&mut self, planned: Instant, now: Instant) {
        if self.within_window(planned) {
            self.planned += 1;
            self.lag.record(now.saturating_duration_since(planned));
            if let Some(step) = self.step(planned) {
                step.planned += 1;
            }
        }
    }

    /// A right answer has ended.
    #[inline]
    pub(crate) fn answer(&mut self, course: Course) {
        self.counters.answered += 1;
        let Course { planned, written, first, end } = course;
        let response = end.saturating_duration_since(planned);
        self.second.record(response);
        if self.within_window(planned) {
            if written != planned {
                self.tell_service_apart();
            }
            self.response.record(response);
            if self.waits {
                self.service.record(end.saturating_duration_since(written));
            }
            if let Some(first) = first {
                self.first_byte.record(first.saturating_duration_since(written));
            }
            if let Some(step) = self.step(planned) {
                step.response.record(response);
            }
        }
    }

    /// A request was given up at `now`; `written` where it had been sent.
    pub(crate) fn given_up(&mut self, planned: Instant, written: Option<Instant>, now: Instant) {
        if !self.within_window(planned) {
            return;
        }
        if written != Some(planned) {
            self.tell_service_apart();
        }
        let waited = now.saturating_duration_since(planned);
        self.response.record_censored(waited);
        if let Some(step) = self.step(planned) {
            step.response.record_censored(waited);
        }
        if let Some(written) = written.filter(|_| self.waits) {
            self.service.record_censored(now.saturating_duration_since(written));
        }
    }

    /// No byte of an answer had come when the request was given up.
    pub(crate) fn first_byte_given_up(&mut self, planned: Instant, written: Instant, now: Instant) {
        if self.within_window(planned) {
            self.first_byte.record_censored(now.saturating_duration_since(written));
        }
    }

    /// A connection was given up before it stood; `connected` where the handshake had begun, whose kind nobody knows: if it
    /// `offered` a session, it counts as the resumption that there was.
    pub(crate) fn opening_given_up(
        &mut self,
        begun: Instant,
        connected: Option<Instant>,
        offered: bool,
        now: Instant,
    ) {
        if !self.within_window(begun) {
            return;
        }
        let Some(connected) = connected else {
            return self.connect.record_censored(now.saturating_duration_since(begun));
        };
        let resumption = self.handshake.iter().map(|(kind, _)| *kind).find(|kind| kind.is_resumption());
        let kind = resumption.filter(|_| offered).unwrap_or(HandshakeKind::Full);
        self.handshake_times(kind).record_censored(now.saturating_duration_since(connected));
    }

    /// An arrival that the window's end found unsent.
    pub(crate) fn unsent(&mut self, planned: Instant, end: Instant) {
        if self.within_window(planned) {
            let age = end.saturating_duration_since(planned);
            self.unsent.count += 1;
            self.unsent.total += age;
            self.unsent.oldest = self.unsent.oldest.max(age);
            self.given_up(planned, None, end);
        }
    }

    /// A connection that was begun then stands.
    pub(crate) fn connected(&mut self, begun: Instant, now: Instant) {
        if self.within_window(begun) {
            self.connect.record(now.saturating_duration_since(begun));
        }
    }

    /// A handshake has ended.
    pub(crate) fn handshake(&mut self, facts: &Facts, begun: Instant, connected: Instant, now: Instant) {
        self.counters.handshakes += 1;
        self.counters.resumed += u64::from(facts.kind.is_resumption());
        match self.negotiated.iter_mut().find(|(known, _)| known == facts) {
            Some((_, count)) => *count += 1,
            None => self.negotiated.push((facts.clone(), 1)),
        }
        if self.within_window(begun) {
            self.handshake_times(facts.kind).record(now.saturating_duration_since(connected));
        }
    }

    /// Connections with such a handshake were given so many tickets.
    pub(crate) fn tickets(&mut self, kind: &'static str, given: Tickets) {
        let seen = self.tickets.entry(kind).or_insert(given);
        *seen = Tickets { least: seen.least.min(given.least), most: seen.most.max(given.most) };
    }

    pub(crate) fn error(&mut self, wrong: &Wrong) {
        self.errors(wrong, 1);
    }

    pub(crate) fn errors(&mut self, wrong: &Wrong, count: u64) {
        self.counters.errors[wrong.class as usize] += count;
        self.examples.entry(wrong.class.name()).or_insert_with(|| wrong.detail.to_string());
    }

    /// Ends a second.
    pub(crate) fn second(&mut self, number: i64, connections: u64, waiting: u64) -> Part {
        let since = self.counters.since(&self.at_second);
        self.at_second = self.counters;
        Part {
            number,
            requests: since.answered,
            errors: since.errors.iter().sum(),
            handshakes: since.handshakes,
            connections,
            waiting,
            response: self.second.take(),
        }
    }

    fn within_window(&self, instant: Instant) -> bool {
        self.window.is_some_and(|window| window.holds(instant))
    }

    /// From now on service times are not the response times.
    fn tell_service_apart(&mut self) {
        if !self.waits {
            self.service = self.response.clone();
            self.waits = true;
        }
    }

    fn step(&mut self, planned: Instant) -> Option<&mut StepTimes> {
        self.steps.iter_mut().find(|(end, _)| planned < *end).map(|(_, step)| step)
    }

    fn handshake_times(&mut self, kind: HandshakeKind) -> &mut Times {
        let at = self.handshake.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.handshake.push((kind, Times::new()));
            self.handshake.len() - 1
        });
        &mut self.handshake[at].1
    }
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.zip(other, |mine, others| mine + others);
    }

    fn since(&self, earlier: &Self) -> Self {
        let mut since = *self;
        since.zip(earlier, |now, then| now - then);
        since
    }

    fn zip(&mut self, other: &Self, of: impl Fn(u64, u64) -> u64) {
        for (mine, others) in [
            (&mut self.answered, other.answered),
            (&mut self.bytes_received, other.bytes_received),
            (&mut self.bytes_sent, other.bytes_sent),
            (&mut self.connections, other.connections),
            (&mut self.handshakes, other.handshakes),
            (&mut self.resumed, other.resumed),
            (&mut self.primed, other.primed),
            (&mut self.offered, other.offered),
            (&mut self.declined, other.declined),
            (&mut self.had_nothing, other.had_nothing),
        ] {
            *mine = of(*mine, others);
        }
        for (mine, others) in self.errors.iter_mut().zip(other.errors) {
            *mine = of(*mine, others);
        }
    }
}

#[cfg(test)]
mod tests;
