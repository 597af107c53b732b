//! The output of a runner: parses and sums up its lines. `docs/ENGINES.md` has the protocol.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
enum Line {
    Facts(Facts),
    Negotiated(Negotiated),
    Samples {
        #[serde(rename = "thread")]
        _thread: u32,
        side: Side,
        ns: Vec<u64>,
    },
    Span(Span),
    Moved {
        #[serde(rename = "thread")]
        _thread: u32,
        side: Side,
        bytes: u64,
    },
    Thread(Thread),
    Lock(Lock),
    Memory(Memory),
    Error {
        fault: String,
        message: String,
    },
    Done {},
}

/// The side of a connection, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Client,
    Server,
    /// A primitive has no sides.
    Operation,
}

/// The facts that the libraries report at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    pub stack: String,
    /// The TLS library with its version.
    pub tls: String,
    /// The crypto backend with its version.
    pub crypto: String,
    pub compiler: String,
    /// The memory allocator.
    pub allocator: String,
    /// `release` or `debug`.
    pub build: String,
    /// Processor features that the library uses; empty if unknown.
    #[serde(default)]
    pub features: Vec<String>,
}

/// An outcome of handshakes on one side, with their number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Negotiated {
    pub side: Side,
    pub version: String,
    /// `full`, `full-with-hello-retry`, `resumed`.
    pub kind: String,
    pub suite: String,
    /// The group; null if the library does not expose it.
    pub group: Option<String>,
    /// The scheme of the server's signature; null if the library does not expose it, and when resumed.
    pub signature: Option<String>,
    pub count: u64,
}

/// A part of the samples' time, with the number of its occurrences, summed over all threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    pub side: Side,
    pub name: String,
    pub ns: u64,
    pub count: u64,
}

/// A thread of the measurement, with the number of units it measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    pub thread: u32,
    pub units: u64,
    /// Nanoseconds from the start of its first unit to the end of its last.
    pub wall_ns: u64,
    pub cpu_ns: u64,
    /// Voluntary context switches: the number of waits.
    #[serde(default)]
    pub voluntary_switches: Option<u64>,
}

/// The operations inside a lock and its hold time, summed over all threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// `ticket-keys`, `session-store`.
    pub name: String,
    pub operations: u64,
    pub held_ns: u64,
}

/// Resident memory before the first session, and with all sessions open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Sides open at the same time.
    pub sessions: u64,
    pub before_kib: u64,
    pub after_kib: u64,
}

/// The times of one side's units: their number, sum and percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub units: u64,
    pub total_ns: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    /// 99th percentile; null below 1000 units.
    pub p99_ns: Option<u64>,
}

/// The whole output of a runner, without the single samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub facts: Option<Facts>,
    pub negotiated: Vec<Negotiated>,
    pub times: BTreeMap<Side, Times>,
    pub spans: Vec<Span>,
    pub moved: BTreeMap<Side, u64>,
    pub threads: Vec<Thread>,
    pub locks: Vec<Lock>,
    pub memory: Option<Memory>,
    /// Errors, each with the party at fault.
    pub errors: Vec<String>,
    pub is_done: bool,
}

/// Minimum number of samples for a 99th percentile.
const SAMPLES_FOR_P99: usize = 1000;

impl Seen {
    /// Parses the output of a runner.
    /// Errors: the first line that violates the protocol, with its number.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut seen = Self::default();
        let mut samples: BTreeMap<Side, Vec<u64>> = BTreeMap::new();
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            if seen.is_done {
                return Err(format!("line {number}: after `done`"));
            }
            let read: Line = serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
            match read {
                Line::Facts(facts) => seen.facts = Some(facts),
                Line::Negotiated(outcome) => seen.negotiated.push(outcome),
                Line::Samples { side, ns, .. } => samples.entry(side).or_default().extend(ns),
                Line::Span(span) => seen.spans.push(span),
                Line::Moved { side, bytes, .. } => *seen.moved.entry(side).or_default() += bytes,
                Line::Thread(thread) => seen.threads.push(thread),
                Line::Lock(lock) => seen.locks.push(lock),
                Line::Memory(memory) => seen.memory = Some(memory),
                Line::Error { fault, message } => seen.errors.push(format!("{fault}: {message}")),
                Line::Done {} => seen.is_done = true,
            }
        }
        seen.times = samples.into_iter().map(|(side, ns)| (side, Times::of(ns))).collect();
        Ok(seen)
    }

    /// The number of units that one side timed.
    pub(super) fn units(&self, side: Side) -> u64 {
        self.times.get(&side).map_or(0, |times| times.units)
    }

    /// Mean nanoseconds of a unit on one side.
    pub(super) fn mean_ns(&self, side: Side) -> Option<f64> {
        let times = self.times.get(&side).filter(|times| times.units > 0)?;
        Some(times.total_ns as f64 / times.units as f64)
    }
}

impl Times {
    fn of(mut ns: Vec<u64>) -> Self {
        ns.sort_unstable();
        let at = |share: f64| {
            let rank = (share * ns.len() as f64).ceil() as usize;
            ns.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Self {
            units: ns.len() as u64,
            total_ns: ns.iter().sum(),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: (ns.len() >= SAMPLES_FOR_P99).then(|| at(0.99)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_summed_up() {
        let seen = Seen::read(
            r#"{"type":"facts","stack":"a","tls":"a 1","crypto":"c 1","compiler":"gcc","allocator":"system","build":"release"}
{"type":"samples","thread":0,"side":"server","ns":[30,10]}
{"type":"samples","thread":1,"side":"server","ns":[20]}
{"type":"negotiated","side":"client","version":"1.3","kind":"full","suite":"s","group":null,"signature":null,"count":3}
{"type":"moved","thread":0,"side":"client","bytes":5}
{"type":"moved","thread":1,"side":"client","bytes":6}
{"type":"done"}
"#,
        )
        .expect("is read");
        let times = seen.times[&Side::Server];
        assert_eq!((times.units, times.total_ns, times.p50_ns, times.p99_ns), (3, 60, 20, None));
        assert_eq!(seen.mean_ns(Side::Server), Some(20.0));
        assert_eq!((seen.moved[&Side::Client], seen.negotiated.len(), seen.is_done), (11, 1, true));
    }

    #[test]
    fn a_violation_of_the_protocol_is_reported_with_its_line() {
        for (text, why) in [
            ("{\"type\":\"done\"}\nhello\n", "line 2: after `done`"),
            ("hello\n", "line 1: "),
            ("{\"type\":\"colour\"}\n", "unknown variant `colour`"),
            ("{\"type\":\"samples\",\"thread\":0,\"side\":\"left\",\"ns\":[]}\n", "unknown variant `left`"),
        ] {
            let error = Seen::read(text).expect_err("is refused");
            assert!(error.contains(why), "{error}");
        }
    }
}
