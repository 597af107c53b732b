//! The figures of HTTP/2, recorded and merged.

use crate::record::monotonic::Monotonic;
use crate::record::times::Times;
use crate::result::{GrpcFigures, Http2Figures, PeerSettings, Second};
use std::collections::BTreeMap;
use weir_http2::grpc::{STATUSES, UNKNOWN};
use weir_http2::{ErrorCode, Settings};

/// The figures of one worker.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    at_start: Counts,
    at_end: Counts,
    at_second: Counts,
    /// See [`Http2Figures::stream_wait`].
    pub(crate) stream_wait: Times,
    /// See [`Http2Figures::window_wait`].
    pub(crate) window_wait: Times,
    /// See [`Http2Figures::wire_wait`].
    pub(crate) wire_wait: Times,
    /// The servers' first settings, with the number of connections.
    settings: Vec<(Settings, u64)>,
}

/// The counters of HTTP/2.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) responses: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Bytes of HEADERS and CONTINUATION frames received.
    pub(crate) block_bytes: u64,
    pub(crate) refused: u64,
    pub(crate) retried: u64,
    resets: [u64; CODES],
    goaways: [u64; CODES],
    pub(crate) messages_sent: u64,
    pub(crate) messages_received: u64,
    statuses: [u64; STATUSES.len()],
}

/// The codes of RFC 9113, section 7, and one for all others.
const CODES: usize = 15;

impl Counts {
    pub(crate) fn reset(&mut self, code: ErrorCode) {
        self.resets[index(code)] += 1;
    }

    pub(crate) fn goaway(&mut self, code: ErrorCode) {
        self.goaways[index(code)] += 1;
    }

    /// A call's status; `None` if it is no number.
    pub(crate) fn status(&mut self, number: Option<u32>) {
        let known = number.map(|number| number as usize).filter(|index| *index < STATUSES.len());
        self.statuses[known.unwrap_or(UNKNOWN.into())] += 1;
    }
}

impl Monotonic for Counts {
    fn counters(&mut self) -> impl Iterator<Item = &mut u64> {
        let Self { requests, responses, reads, writes, block_bytes, refused, retried, .. } = self;
        let single = [requests, responses, reads, writes, block_bytes, refused, retried];
        let messages = [&mut self.messages_sent, &mut self.messages_received];
        let by_code = self.resets.iter_mut().chain(&mut self.goaways).chain(&mut self.statuses);
        single.into_iter().chain(messages).chain(by_code)
    }
}

impl Tally {
    pub(crate) fn window_begins(&mut self) {
        self.at_start = self.counts;
    }

    pub(crate) fn window_ends(&mut self) {
        self.at_end = self.counts;
    }

    /// Adds the counts since the last second to this one.
    pub(crate) fn end_second(&mut self, second: &mut Second) {
        let since = self.counts.since(&self.at_second);
        self.at_second = self.counts;
        second.goaways += since.goaways.iter().sum::<u64>();
        second.resets += since.resets.iter().sum::<u64>();
        second.refused += since.refused;
        second.messages_sent += since.messages_sent;
        second.messages_received += since.messages_received;
    }

    /// A server's first settings on a connection.
    pub(crate) fn settings(&mut self, settings: &Settings, count: u64) {
        match self.settings.iter_mut().find(|(known, _)| known == settings) {
            Some((_, known)) => *known += count,
            None => self.settings.push((*settings, count)),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.at_start.add(&other.at_start);
        self.at_end.add(&other.at_end);
        self.stream_wait.add(&other.stream_wait);
        self.window_wait.add(&other.window_wait);
        self.wire_wait.add(&other.wire_wait);
        for (settings, count) in &other.settings {
            self.settings(settings, *count);
        }
    }

    /// The figures as reported.
    pub(crate) fn figures(&self) -> Http2Figures {
        let within = self.at_end.since(&self.at_start);
        let per = |count: u64, by: u64| if by == 0 { 0.0 } else { count as f64 / by as f64 };
        Http2Figures {
            requests_per_write: per(within.requests, within.writes),
            responses_per_read: per(within.responses, within.reads),
            header_bytes_per_response: per(within.block_bytes, within.responses),
            refused: within.refused,
            retried: within.retried,
            resets: by_name(&within.resets),
            goaways: by_name(&within.goaways),
            stream_wait: self.stream_wait.distribution(),
            window_wait: self.window_wait.distribution(),
            wire_wait: self.wire_wait.distribution(),
            settings: self.settings.iter().map(|(settings, count)| peer_settings(settings, *count)).collect(),
        }
    }

    /// The figures of gRPC calls in a window of this length.
    pub(crate) fn grpc_figures(&self, seconds: f64) -> GrpcFigures {
        let Counts { messages_sent, messages_received, statuses, .. } = self.at_end.since(&self.at_start);
        GrpcFigures {
            messages_sent,
            messages_sent_per_second: messages_sent as f64 / seconds,
            messages_received,
            messages_received_per_second: messages_received as f64 / seconds,
            statuses: named(STATUSES.into_iter().zip(statuses)),
        }
    }
}

fn named(counts: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counts.filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_string(), count)).collect()
}

fn index(code: ErrorCode) -> usize {
    (code.0 as usize).min(CODES - 1)
}

fn by_name(counts: &[u64; CODES]) -> BTreeMap<String, u64> {
    named((0..).map(|code| ErrorCode(code).name()).zip(counts.iter().copied()))
}

fn peer_settings(settings: &Settings, count: u64) -> PeerSettings {
    PeerSettings {
        max_concurrent_streams: settings.max_concurrent_streams,
        initial_window_size: settings.initial_window_size,
        max_frame_size: settings.max_frame_size,
        header_table_size: settings.header_table_size,
        max_header_list_size: settings.max_header_list_size,
        count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_figures_of_two_workers() {
        let mut tallies = [(); 2].map(|()| {
            let mut tally = Tally::default();
            tally.counts.reset(ErrorCode::CANCEL);
            tally.counts.requests = 5;
            tally.window_begins();
            let counts = &mut tally.counts;
            counts.requests += 40;
            counts.responses += 30;
            counts.writes += 4;
            counts.reads += 10;
            counts.block_bytes += 600;
            counts.refused += 2;
            counts.retried += 1;
            counts.reset(ErrorCode::REFUSED_STREAM);
            counts.reset(ErrorCode(99));
            counts.reset(ErrorCode(1 << 31));
            counts.goaway(ErrorCode::NO_ERROR);
            counts.messages_sent += 8;
            counts.messages_received += 9;
            for status in [Some(0), Some(0), Some(14), Some(17), None] {
                counts.status(status);
            }
            tally.window_ends();
            tally.counts.requests += 7;
            tally.settings(&Settings::default(), 3);
            tally
        });
        let [one, other] = &mut tallies;
        let (mut second, mut next) = (Second::default(), Second::default());
        one.end_second(&mut second);
        one.end_second(&mut next);
        assert_eq!((second.goaways, second.resets, second.refused), (1, 4, 2));
        assert_eq!((second.messages_sent, second.messages_received), (8, 9));
        assert_eq!(next, Second::default());
        one.merge(other);
        let figures = one.figures();
        assert_eq!((figures.requests_per_write, figures.responses_per_read), (10.0, 3.0));
        assert_eq!((figures.header_bytes_per_response, figures.refused, figures.retried), (20.0, 4, 2));
        assert_eq!(figures.resets, [("refused_stream".into(), 2), ("unknown".into(), 4)].into());
        assert_eq!(figures.goaways, [("no_error".into(), 2)].into());
        let grpc = one.grpc_figures(2.0);
        assert_eq!((grpc.messages_sent, grpc.messages_received), (16, 18));
        assert_eq!((grpc.messages_sent_per_second, grpc.messages_received_per_second), (8.0, 9.0));
        let statuses = [("OK".into(), 4), ("UNAVAILABLE".into(), 2), ("UNKNOWN".into(), 4)];
        assert_eq!(grpc.statuses, statuses.into());
        assert_eq!(figures.settings.len(), 1);
        assert_eq!((figures.settings[0].count, figures.settings[0].max_concurrent_streams), (6, None));
    }

    #[test]
    fn every_code_has_a_place() {
        assert_eq!(index(ErrorCode::HTTP_1_1_REQUIRED), CODES - 2);
        assert_eq!(ErrorCode((CODES - 1) as u32).name(), "unknown");
    }
}
