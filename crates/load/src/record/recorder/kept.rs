//! What recorders have kept, together and in the form of a result.

use super::{Ages, Counters, Recorder, StepTimes};
use crate::record::times::Times;
use crate::result::{Handshakes, Latency, Negotiated, Unsent};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_tls::{Facts, HandshakeKind};

impl Recorder {
    /// Adds another worker's part.
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
            self.handshake_times(*kind).add(times);
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
            match self.negotiated.iter_mut().find(|(known, _)| known == facts) {
                Some((_, known)) => *known += count,
                None => self.negotiated.push((facts.clone(), *count)),
            }
        }
        for (kind, given) in &other.tickets {
            self.tickets(kind, *given);
        }
        for (class, text) in &other.examples {
            self.examples.entry(class).or_insert_with(|| text.clone());
        }
    }

    /// What ended within the window. Errors also count when they ended behind it: the requests had begun within it.
    pub(crate) fn within(&self) -> Counters {
        let errors = self.counters.since(&self.at_start).errors;
        Counters { errors, ..self.at_end.since(&self.at_start) }
    }

    /// Service times: where nothing waits, they are the response times.
    pub(crate) fn service(&self) -> Latency {
        if self.waits { self.service.distribution() } else { self.response.distribution() }
    }

    /// Handshake times by kind.
    pub(crate) fn handshake_distributions(&self) -> BTreeMap<String, Latency> {
        let row = |(kind, times): &(HandshakeKind, Times)| (kind.name().to_string(), times.distribution());
        self.handshake.iter().map(row).collect()
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

    /// All handshakes by what was negotiated.
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

    /// The first error of each class that occurred, in words.
    pub(crate) fn examples(&self) -> &BTreeMap<&'static str, String> {
        &self.examples
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
