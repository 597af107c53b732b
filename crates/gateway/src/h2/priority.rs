//! Output in the order of the streams' priorities (RFC 9218, section 10).

use super::H2;
use crate::config::MAX_PENDING;
use weir_http::{Field, FieldName};
use weir_http2::{Priority, StreamNo};
use weir_reactor::Socket;
use weir_transport::{Transport, Wire};

/// The position of a priority in the order of output: by urgency, then non-incremental before incremental.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u8);

impl Rank {
    fn of(priority: Priority) -> Self {
        Self(2 * priority.urgency + u8::from(priority.incremental))
    }

    fn all() -> impl Iterator<Item = Self> {
        (0..16).map(Self)
    }

    fn is_incremental(self) -> bool {
        self.0 % 2 == 1
    }
}

/// A set of ranks, one bit for each.
#[derive(Default)]
struct Ranks(u16);

impl Ranks {
    fn insert(&mut self, rank: Rank) {
        self.0 |= 1 << rank.0;
    }

    fn contains(&self, rank: Rank) -> bool {
        self.0 & 1 << rank.0 != 0
    }
}

impl H2 {
    /// Applies the `priority` field of a response, if the listener obeys priorities.
    #[inline]
    pub(crate) fn update_priority(&mut self, no: StreamNo, bytes: &[u8], fields: &[Field]) {
        if !self.by_priority {
            return;
        }
        let fields = fields.iter().filter(|field| matches!(field.known, FieldName::Other));
        for field in fields.filter(|field| field.name.of(bytes).eq_ignore_ascii_case(b"priority")) {
            self.connection.update_priority(no, field.value.of(bytes));
        }
    }

    /// Whether the output of a stream waits for a more urgent stream's or, in a rank that is not incremental, for an
    /// earlier stream's.
    #[inline(never)]
    pub(crate) fn yields(&self, no: StreamNo) -> bool {
        let Some(stream) = self.get(no).filter(|stream| self.by_priority && stream.pending() > 0) else {
            return false;
        };
        self.streams.iter().filter(|other| other.pending() > 0).any(|other| match other.rank == stream.rank {
            true => !other.rank.is_incremental() && other.no < stream.no,
            false => other.rank < stream.rank,
        })
    }

    /// Sends stored output rank by rank: the streams of an incremental rank round-robin, others one after the other.
    /// Sending opens no window and produces no output, so a rank needs only one pass. Returns whether any stream has
    /// sent output.
    pub(super) fn flush_by_priority<S: Socket>(
        &mut self,
        transport: &mut Transport<S>,
        wire: &mut Wire,
    ) -> bool {
        let mut waiting = Ranks::default();
        for stream in self.streams.iter_mut().filter(|stream| stream.pending() > 0) {
            stream.rank = Rank::of(self.connection.priority(stream.no));
            waiting.insert(stream.rank);
        }
        let mut has_sent = false;
        for rank in Rank::all().filter(|rank| waiting.contains(*rank)) {
            has_sent |= match rank.is_incremental() {
                true => self.flush_ring(Some(rank), transport, wire),
                false => self.flush_in_order(rank, transport, wire),
            };
        }
        has_sent
    }

    /// Sends the output of the streams with a rank in the order of their IDs.
    fn flush_in_order<S: Socket>(
        &mut self,
        rank: Rank,
        transport: &mut Transport<S>,
        wire: &mut Wire,
    ) -> bool {
        let (mut has_sent, mut index) = (false, 0);
        while index < self.streams.len() && transport.pending() < MAX_PENDING {
            if self.streams[index].rank != rank {
                index += 1;
                continue;
            }
            let before = self.streams.len();
            let is_sending = self.take_turn(index, transport.stage(wire));
            has_sent |= is_sending;
            self.release_if_sent(index);
            // The stream after a released one moves to its index.
            index += usize::from(!is_sending && self.streams.len() == before);
        }
        has_sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::client_config;
    use weir_http1::Limits;
    use weir_http2::{Event, Head, PREFACE, frame, hpack::Encoder};

    /// A connection whose streams 1, 3, .. have stored output, with the priorities in these fields.
    fn waiting(priorities: &[&str]) -> (H2, Vec<StreamNo>) {
        let mut h2 = H2::of_client(&client_config(&Limits::default(), true).into());
        let mut input = PREFACE.to_vec();
        frame::write_settings([].into_iter(), &mut input);
        for (nth, value) in priorities.iter().enumerate() {
            let mut block = Vec::new();
            let mut encoder = Encoder::new(&mut block);
            encoder.request(b"GET", weir_http2::Scheme::Http, b"h", b"/");
            encoder.field(b"priority", value.as_bytes());
            let flags = frame::flag::END_HEADERS | frame::flag::END_STREAM;
            frame::write(frame::Kind::Headers, flags, 1 + 2 * nth as u32, &block, &mut input);
        }
        let (mut at, mut head, mut streams) = (0, Head::new(), Vec::new());
        loop {
            let step = h2.connection.feed(&mut input[at..], &mut head).unwrap();
            at += step.consumed;
            match step.event {
                Some(Event::Head { stream, .. }) => streams.push(stream),
                Some(_) => {}
                None => break,
            }
        }
        for no in &streams {
            h2.begin(*no, true, false);
            let rank = Rank::of(h2.connection.priority(*no));
            let stream = h2.get_mut(*no).unwrap();
            (stream.out, stream.rank) = (vec![0], rank);
        }
        (h2, streams)
    }

    #[test]
    fn a_stream_yields_to_more_urgent_ones() {
        let (mut h2, streams) = waiting(&["u=2, i", "u=1", "u=1", "u=2, i", "u=2"]);
        let yielding = |h2: &H2| streams.iter().map(|no| h2.yields(*no)).collect::<Vec<_>>();
        assert_eq!(yielding(&h2), [true, false, true, true, true]);
        for no in [streams[1], streams[2]] {
            h2.get_mut(no).unwrap().out.clear();
        }
        assert_eq!(yielding(&h2), [true, false, false, true, false]);
        h2.get_mut(streams[4]).unwrap().out.clear();
        assert_eq!(yielding(&h2), [false; 5]);
        h2.by_priority = false;
        h2.get_mut(streams[1]).unwrap().out.push(0);
        assert_eq!(yielding(&h2), [false; 5]);
    }
}
