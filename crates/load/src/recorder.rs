//! What one worker saw, and how the workers' parts become one.

use crate::check::{ErrorClass, Wrong};
use crate::result::{Handshakes, Latency, Negotiated};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weir_tls::Facts;

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
    /// By the planned instant, of requests that were planned within the window.
    pub(crate) latency: Times,
    /// From the first byte written; only where that is not the planned instant.
    service: Times,
    /// From the planned instant to the worker's turn to it.
    pub(crate) lag: Times,
    /// Arrivals planned within the window.
    pub(crate) planned: u64,
    /// Those of them that were sent.
    pub(crate) sent: u64,
    negotiated: Vec<(Facts, u64)>,
    examples: BTreeMap<&'static str, String>,
}

/// An HDR histogram of nanoseconds with 3 digits.
pub(crate) struct Times(Histogram<u64>);

/// 1 hour; what is longer is counted as that. No time-out is longer.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

const DIGITS: u8 = 3;

impl Recorder {
    pub(crate) fn new(waits: bool) -> Self {
        Self {
            counters: Counters::default(),
            window: None,
            waits,
            at_start: Counters::default(),
            at_end: Counters::default(),
            latency: Times::new(),
            service: Times::new(),
            lag: Times::new(),
            planned: 0,
            sent: 0,
            negotiated: Vec::new(),
            examples: BTreeMap::new(),
        }
    }

    pub(crate) fn window_begins(&mut self) {
        self.at_start = self.counters;
    }

    pub(crate) fn window_ends(&mut self) {
        self.at_end = self.counters;
    }

    /// A right answer has ended.
    #[inline]
    pub(crate) fn answer(&mut self, planned: Instant, written: Instant, end: Instant) {
        self.counters.answered += 1;
        if self.window.is_some_and(|window| window.holds(planned)) {
            self.latency.record(end.saturating_duration_since(planned));
            if self.waits {
                self.service.record(end.saturating_duration_since(written));
            }
        }
    }

    /// Service times: where nothing waits, they are the latencies.
    pub(crate) fn service(&self) -> &Times {
        if self.waits { &self.service } else { &self.latency }
    }

    pub(crate) fn error(&mut self, wrong: &Wrong) {
        self.errors(wrong, 1);
    }

    pub(crate) fn errors(&mut self, wrong: &Wrong, count: u64) {
        self.counters.errors[wrong.class as usize] += count;
        self.examples.entry(wrong.class.name()).or_insert_with(|| wrong.detail.to_string());
    }

    pub(crate) fn handshake(&mut self, facts: &Facts) {
        self.counters.handshakes += 1;
        match self.negotiated.iter_mut().find(|(known, _)| known == facts) {
            Some((_, count)) => *count += 1,
            None => self.negotiated.push((facts.clone(), 1)),
        }
    }

    /// Adds another worker's part.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.at_start.add(&other.at_start);
        self.at_end.add(&other.at_end);
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.lag.add(&other.lag);
        self.planned += other.planned;
        self.sent += other.sent;
        for (facts, count) in &other.negotiated {
            match self.negotiated.iter_mut().find(|(known, _)| known == facts) {
                Some((_, known)) => *known += count,
                None => self.negotiated.push((facts.clone(), *count)),
            }
        }
        for (class, text) in &other.examples {
            self.examples.entry(class).or_insert_with(|| text.clone());
        }
    }

    /// What ended within the window. Errors also count when they ended behind it: the requests had begun within it.
    pub(crate) fn within(&self) -> Counters {
        let (from, to) = (&self.at_start, &self.at_end);
        Counters {
            answered: to.answered - from.answered,
            bytes_received: to.bytes_received - from.bytes_received,
            bytes_sent: to.bytes_sent - from.bytes_sent,
            connections: to.connections - from.connections,
            handshakes: to.handshakes - from.handshakes,
            errors: std::array::from_fn(|class| self.counters.errors[class] - from.errors[class]),
        }
    }

    /// All handshakes by what was negotiated.
    pub(crate) fn handshakes(&self, in_window: u64) -> Handshakes {
        let mut handshakes = Handshakes { in_window, ..Handshakes::default() };
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

    /// The first error of each class that occurred, in words.
    pub(crate) fn examples(&self) -> &BTreeMap<&'static str, String> {
        &self.examples
    }
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.answered += other.answered;
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
        self.connections += other.connections;
        self.handshakes += other.handshakes;
        for (mine, others) in self.errors.iter_mut().zip(other.errors) {
            *mine += others;
        }
    }
}

impl Times {
    fn new() -> Self {
        let longest = LONGEST.as_nanos() as u64;
        let histogram = Histogram::new_with_bounds(1, longest, DIGITS);
        // Only bounds that contradict each other are refused.
        Self(histogram.unwrap_or_else(|_| unreachable!("1 ns to 1 h with 3 digits is a valid histogram")))
    }

    #[inline]
    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(time.as_nanos() as u64);
    }

    fn add(&mut self, other: &Self) {
        // Histograms of the same bounds always fit.
        let _ = self.0.add(&other.0);
    }

    /// The `quantile` (0 to 1), if ten times the samples stand behind it that it needs to exist at all.
    pub(crate) fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let needed = (10.0 / (1.0 - quantile)).round() as u64;
        (self.0.len() >= needed).then(|| us(self.0.value_at_quantile(quantile)))
    }

    pub(crate) fn max_us(&self) -> f64 {
        us(self.0.max())
    }

    /// As it stands in results.
    pub(crate) fn distribution(&self) -> Latency {
        let mut bytes = Vec::new();
        // Writing into memory cannot fail.
        let _ = V2Serializer::new().serialize(&self.0, &mut bytes);
        let empty = self.0.is_empty();
        Latency {
            count: self.0.len(),
            mean_us: if empty { 0.0 } else { self.0.mean() / 1e3 },
            sd_us: if empty { 0.0 } else { self.0.stdev() / 1e3 },
            p50_us: self.quantile_us(0.5),
            p90_us: self.quantile_us(0.9),
            p99_us: self.quantile_us(0.99),
            p999_us: self.quantile_us(0.999),
            max_us: self.max_us(),
            censored: 0,
            censored_from_us: None,
            hdr_v2: BASE64_STANDARD.encode(bytes),
        }
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
        chain_certificates: None,
        chain_bytes: None,
        count,
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    fn times(us: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times::new();
        us.into_iter().for_each(|us| times.record(Duration::from_micros(us)));
        times
    }

    #[test]
    fn percentiles_need_ten_times_their_samples() {
        let have = |count| {
            let d = times(1..=count).distribution();
            [d.p50_us, d.p90_us, d.p99_us, d.p999_us].map(|p| p.is_some())
        };
        assert_eq!(have(19), [false; 4]);
        assert_eq!(have(20), [true, false, false, false]);
        assert_eq!(have(100), [true, true, false, false]);
        assert_eq!(have(999), [true, true, false, false]);
        assert_eq!(have(1000), [true, true, true, false]);
        assert_eq!(have(10_000), [true; 4]);
    }

    #[test]
    fn a_distribution_is_right_to_three_digits() {
        let d = times(1..=10_000).distribution();
        let near =
            |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 0.002, "{value} {expected}");
        near(d.mean_us, 5000.5);
        near(d.sd_us, 2886.8);
        near(d.p50_us.unwrap(), 5000.0);
        near(d.p90_us.unwrap(), 9000.0);
        near(d.p99_us.unwrap(), 9900.0);
        near(d.p999_us.unwrap(), 9990.0);
        near(d.max_us, 10_000.0);
    }

    #[test]
    fn the_stored_form_can_be_read_and_merged_by_others() {
        let d = times([100, 200, 300_000]).distribution();
        let bytes = BASE64_STANDARD.decode(d.hdr_v2).unwrap();
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(histogram.len(), 3);
        assert_eq!(histogram.count_between(99_000, 201_000), 2);
    }

    #[test]
    fn an_empty_distribution_has_no_numbers_that_are_none() {
        let d = Times::new().distribution();
        assert_eq!((d.count, d.mean_us, d.sd_us, d.max_us, d.p50_us), (0, 0.0, 0.0, 0.0, None));
    }

    #[test]
    fn the_window_is_what_lies_between_its_edges_and_errors_run_on() {
        let mut recorders = [Recorder::new(false), Recorder::new(false)];
        for recorder in &mut recorders {
            recorder.counters.answered = 5;
            recorder.error(&Wrong::fixed(ErrorClass::Reset, "in the warm-up"));
            recorder.window_begins();
            recorder.counters.answered += 7;
            recorder.window_ends();
            recorder.counters.answered += 1;
            recorder.error(&Wrong::fixed(ErrorClass::Timeout, "in the drain"));
        }
        let [mut all, other] = recorders;
        all.merge(&other);
        let within = all.within();
        assert_eq!((within.answered, all.counters.answered), (14, 26));
        assert_eq!(within.errors[ErrorClass::Reset as usize], 0);
        assert_eq!(within.errors[ErrorClass::Timeout as usize], 2);
        assert_eq!(all.examples()["reset"], "in the warm-up");
    }
}
