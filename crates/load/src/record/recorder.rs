//! The recorder of one worker, and merging recorders.

use crate::check::{ErrorClass, Wrong};
use crate::h2::tally::Tally;
use crate::record::monotonic::Monotonic;
use crate::record::seconds::{Coarse, Part};
use crate::record::times::Times;
use crate::result::{
    GrpcFigures, Handshakes, Http2Figures, Latency, NO_ALPN, Negotiated, Second, Tickets, Unsent,
};
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

/// The counters of all versions of HTTP.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) answered: u64,
    pub(crate) bytes_received: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) connections: u64,
    pub(crate) handshakes: u64,
    pub(crate) resumed: u64,
    /// Full handshakes made to get sessions.
    pub(crate) primed: u64,
    /// Connections that offered a session to resume.
    pub(crate) offered: u64,
    /// Those of them for which the server did a full handshake.
    pub(crate) declined: u64,
    /// Connections meant to resume, without a session to offer.
    pub(crate) had_nothing: u64,
    pub(crate) errors: [u64; ErrorClass::ALL.len()],
}

impl Counters {
    /// Errors over all completed requests.
    pub(crate) fn error_ratio(&self) -> f64 {
        let errors: u64 = self.errors.iter().sum();
        let ended = self.answered + errors;
        if ended == 0 { 0.0 } else { errors as f64 / ended as f64 }
    }

    /// Errors by class.
    pub(crate) fn errors_by_class(&self) -> BTreeMap<String, u64> {
        let errors = ErrorClass::ALL.into_iter().zip(self.errors).filter(|(_, count)| *count > 0);
        errors.map(|((_, name), count)| (name.to_string(), count)).collect()
    }
}

#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) counters: Counters,
    pub(crate) window: Option<Window>,
    /// Whether the first byte may be written later than planned: in an open loop, and on new connections.
    waits: bool,
    at_start: Counters,
    at_end: Counters,
    at_second: Counters,
    /// From the planned instant, for requests planned within the window.
    pub(crate) response: Times,
    /// From the first byte written; only if that differs from the planned instant.
    service: Times,
    /// From the first byte written to the first byte of the response.
    pub(crate) first_byte: Times,
    /// For connections opened within the window.
    pub(crate) connect: Times,
    /// By kind.
    handshake: BTreeMap<&'static str, Times>,
    /// Each step's end and the response times of its requests; empty unless the rate ramps.
    steps: Vec<(Instant, StepTimes)>,
    /// From the planned instant to when the worker handled it.
    pub(crate) lag: Times,
    /// From a poll to the end of its events.
    pub(crate) loop_lag: Times,
    /// Arrivals planned within the window.
    pub(crate) planned: u64,
    /// Those that were sent.
    pub(crate) sent: u64,
    unsent: Ages,
    /// Arrivals waiting when the window began.
    pub(crate) backlog: u64,
    second: Coarse,
    negotiated: Vec<(Facts, u64)>,
    /// By kind of handshake.
    tickets: BTreeMap<&'static str, Tickets>,
    examples: BTreeMap<&'static str, String>,
    /// The figures of HTTP/2; `None` with HTTP/1.1.
    h2: Option<Box<Tally>>,
}

#[derive(Default)]
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

/// The instants of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub(crate) planned: Instant,
    /// First byte of the request sent.
    pub(crate) written: Instant,
    /// First byte of the response; `None` for a handshake.
    pub(crate) first: Option<Instant>,
    pub(crate) end: Instant,
}

impl Recorder {
    pub(crate) fn new(waits: bool) -> Self {
        Self { waits, ..Self::default() }
    }

    /// For a ramp: also record response times per step, with these ends.
    pub(crate) fn by_step(&mut self, ends: impl Iterator<Item = Instant>) {
        self.steps = ends.map(|end| (end, StepTimes::default())).collect();
    }

    pub(crate) fn window_begins(&mut self) {
        self.at_start = self.counters;
        self.h2.iter_mut().for_each(|tally| tally.window_begins());
    }

    pub(crate) fn window_ends(&mut self) {
        self.at_end = self.counters;
        self.h2.iter_mut().for_each(|tally| tally.window_ends());
    }

    /// The figures of HTTP/2.
    pub(crate) fn h2(&mut self) -> &mut Tally {
        self.h2.get_or_insert_default()
    }

    /// The figures of HTTP/2, as reported.
    pub(crate) fn h2_figures(&self) -> Option<Http2Figures> {
        self.h2.as_ref().map(|tally| tally.figures())
    }

    /// The figures of gRPC calls in a window of this length.
    pub(crate) fn grpc_figures(&self, seconds: f64) -> GrpcFigures {
        self.h2.as_ref().map(|tally| tally.grpc_figures(seconds)).unwrap_or_default()
    }

    /// A request planned for `planned` waited this long for a stream.
    pub(crate) fn waited_for_stream(&mut self, planned: Instant, time: Duration) {
        if self.within_window(planned) {
            self.h2().stream_wait.record(time);
        }
    }

    /// The body of a request planned for `planned` waited this long for a window.
    pub(crate) fn waited_for_window(&mut self, planned: Instant, time: Duration) {
        if self.within_window(planned) {
            self.h2().window_wait.record(time);
        }
    }

    /// The body of a request planned for `planned` waited this long for the socket.
    pub(crate) fn waited_for_wire(&mut self, planned: Instant, time: Duration) {
        if self.within_window(planned) {
            self.h2().wire_wait.record(time);
        }
    }

    /// An arrival is due.
    pub(crate) fn arrival(&mut self, planned: Instant, now: Instant) {
        if self.within_window(planned) {
            self.planned += 1;
            self.lag.record(now.saturating_duration_since(planned));
            if let Some(step) = self.step(planned) {
                step.planned += 1;
            }
        }
    }

    /// A correct response is complete.
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

    /// A request was given up at `now`; `written` if it had been sent.
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

    /// The request was given up without a byte of a response.
    pub(crate) fn first_byte_given_up(&mut self, planned: Instant, written: Instant, now: Instant) {
        if self.within_window(planned) {
            self.first_byte.record_censored(now.saturating_duration_since(written));
        }
    }

    /// A connection was given up before it was established; `connected` if the handshake had started. Its kind is
    /// unknown: if it `offered` a session, it counts as a resumption of that.
    pub(crate) fn opening_given_up(
        &mut self,
        started: Instant,
        connected: Option<Instant>,
        offered: bool,
        now: Instant,
    ) {
        if !self.within_window(started) {
            return;
        }
        let Some(connected) = connected else {
            return self.connect.record_censored(now.saturating_duration_since(started));
        };
        let full = HandshakeKind::Full.name();
        let resumption = self.handshake.keys().copied().find(|kind| *kind != full);
        let kind = resumption.filter(|_| offered).unwrap_or(full);
        self.handshake.entry(kind).or_default().record_censored(now.saturating_duration_since(connected));
    }

    /// An arrival unsent at the window's end.
    pub(crate) fn unsent(&mut self, planned: Instant, end: Instant) {
        if self.within_window(planned) {
            let age = end.saturating_duration_since(planned);
            self.unsent.count += 1;
            self.unsent.total += age;
            self.unsent.oldest = self.unsent.oldest.max(age);
            self.given_up(planned, None, end);
        }
    }

    /// A connection was established.
    pub(crate) fn connected(&mut self, started: Instant, now: Instant) {
        if self.within_window(started) {
            self.connect.record(now.saturating_duration_since(started));
        }
    }

    pub(crate) fn handshake(&mut self, facts: &Facts, started: Instant, connected: Instant, now: Instant) {
        self.counters.handshakes += 1;
        self.counters.resumed += u64::from(facts.kind.is_resumption());
        self.negotiated(facts, 1);
        if self.within_window(started) {
            self.handshake
                .entry(facts.kind.name())
                .or_default()
                .record(now.saturating_duration_since(connected));
        }
    }

    fn negotiated(&mut self, facts: &Facts, count: u64) {
        match self.negotiated.iter_mut().find(|(known, _)| known == facts) {
            Some((_, known)) => *known += count,
            None => self.negotiated.push((facts.clone(), count)),
        }
    }

    /// The number of tickets on a connection with this kind of handshake.
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
        let mut second = Second {
            requests: since.answered,
            errors: since.errors.iter().sum(),
            handshakes: since.handshakes,
            connections,
            waiting,
            ..Second::default()
        };
        self.h2.iter_mut().for_each(|tally| tally.end_second(&mut second));
        Part { number, second, response: self.second.take() }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.at_start.add(&other.at_start);
        self.at_end.add(&other.at_end);
        if other.waits {
            self.tell_service_apart();
        }
        let service = if self.waits && !other.waits { &other.response } else { &other.service };
        for (mine, others) in [
            (&mut self.response, &other.response),
            (&mut self.service, service),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.connect, &other.connect),
            (&mut self.lag, &other.lag),
            (&mut self.loop_lag, &other.loop_lag),
        ] {
            mine.add(others);
        }
        for (kind, times) in &other.handshake {
            self.handshake.entry(kind).or_default().add(times);
        }
        for ((_, mine), (_, others)) in self.steps.iter_mut().zip(&other.steps) {
            mine.planned += others.planned;
            mine.response.add(&others.response);
        }
        self.planned += other.planned;
        self.sent += other.sent;
        self.unsent.count += other.unsent.count;
        self.unsent.total += other.unsent.total;
        self.unsent.oldest = self.unsent.oldest.max(other.unsent.oldest);
        self.backlog += other.backlog;
        for (facts, count) in &other.negotiated {
            self.negotiated(facts, *count);
        }
        for (kind, given) in &other.tickets {
            self.tickets(kind, *given);
        }
        if let Some(others) = &other.h2 {
            self.h2().merge(others);
        }
        for (class, text) in &other.examples {
            self.examples.entry(class).or_insert_with(|| text.clone());
        }
    }

    /// What ended within the window. Errors after it also count if the request started within it.
    pub(crate) fn within(&self) -> Counters {
        let errors = self.counters.since(&self.at_start).errors;
        Counters { errors, ..self.at_end.since(&self.at_start) }
    }

    /// Service times: the same as response times if nothing waits.
    pub(crate) fn service(&self) -> Latency {
        if self.waits { self.service.distribution() } else { self.response.distribution() }
    }

    pub(crate) fn handshake_distributions(&self) -> BTreeMap<String, Latency> {
        self.handshake.iter().map(|(kind, times)| ((*kind).to_string(), times.distribution())).collect()
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &StepTimes> {
        self.steps.iter().map(|(_, step)| step)
    }

    pub(crate) fn unsent_in_all(&self) -> Unsent {
        let Ages { count, total, oldest } = self.unsent;
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let mean_us = if count == 0 { 0.0 } else { us(total) / count as f64 };
        Unsent { count, oldest_us: us(oldest), mean_us }
    }

    /// All handshakes by negotiated parameters.
    pub(crate) fn handshakes(&self, window: Duration) -> Handshakes {
        let (all, within) = (&self.counters, self.within());
        let mut handshakes = Handshakes {
            primed: all.primed,
            offered: all.offered,
            declined: all.declined,
            had_nothing: all.had_nothing,
            in_window: within.handshakes,
            resumed_in_window: within.resumed,
            per_second: within.handshakes as f64 / window.as_secs_f64(),
            tickets: self.tickets.iter().map(|(kind, given)| ((*kind).to_string(), *given)).collect(),
            ..Handshakes::default()
        };
        for (facts, count) in &self.negotiated {
            if facts.kind.is_resumption() {
                *handshakes.resumed.entry(facts.kind.name().to_string()).or_default() += count;
            } else {
                handshakes.full += count;
            }
            handshakes.hello_retry += if facts.hello_retry { *count } else { 0 };
            handshakes.negotiated.push(negotiated(facts, *count));
        }
        handshakes
    }

    /// All handshakes by the application protocol agreed on.
    pub(crate) fn alpn(&self) -> BTreeMap<String, u64> {
        let mut by_name = BTreeMap::new();
        for (facts, count) in &self.negotiated {
            let name =
                facts.alpn.as_ref().map_or(NO_ALPN.to_string(), |alpn| alpn.escape_ascii().to_string());
            *by_name.entry(name).or_default() += count;
        }
        by_name
    }

    /// The message of the first error of each class.
    pub(crate) fn examples(&self) -> &BTreeMap<&'static str, String> {
        &self.examples
    }

    fn within_window(&self, instant: Instant) -> bool {
        self.window.is_some_and(|window| window.holds(instant))
    }

    /// From now on service times differ from response times.
    fn tell_service_apart(&mut self) {
        if !self.waits {
            self.service = self.response.clone();
            self.waits = true;
        }
    }

    fn step(&mut self, planned: Instant) -> Option<&mut StepTimes> {
        self.steps.iter_mut().find(|(end, _)| planned < *end).map(|(_, step)| step)
    }
}

impl Monotonic for Counters {
    fn counters(&mut self) -> impl Iterator<Item = &mut u64> {
        let Self {
            answered,
            bytes_received,
            bytes_sent,
            connections,
            handshakes,
            resumed,
            primed,
            offered,
            declined,
            had_nothing,
            errors,
        } = self;
        let single = [
            answered,
            bytes_received,
            bytes_sent,
            connections,
            handshakes,
            resumed,
            primed,
            offered,
            declined,
            had_nothing,
        ];
        single.into_iter().chain(errors)
    }
}

fn negotiated(facts: &Facts, count: u64) -> Negotiated {
    Negotiated {
        version: facts.version.to_string(),
        suite: facts.suite.to_string(),
        group: facts.group.map(|group| group.to_string()),
        signature: facts.signature.map(|signature| signature.to_string()),
        kind: facts.kind.name().to_string(),
        hello_retry: facts.hello_retry,
        alpn: facts.alpn.as_ref().map(|alpn| alpn.escape_ascii().to_string()),
        chain_certificates: facts.chain.map(|chain| u32::from(chain.certificates)),
        chain_bytes: facts.chain.map(|chain| chain.bytes),
        count,
    }
}

#[cfg(test)]
mod tests;
