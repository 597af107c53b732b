//! Output: heads, bodies within the limits of the windows and the connection, and the ring of waiting streams.

use super::H2;
use super::priority::Rank;
use super::stream::End;
use crate::config::MAX_PENDING;
use crate::heads::writer::{FieldBlock, encode_lines};
use weir_http2::{Part, StreamNo};
use weir_reactor::Socket;
use weir_transport::{Transport, Wire};

/// Bytes that a stream sends before the next stream's turn.
const TURN: usize = 16 * 1024;

impl H2 {
    /// Writes a head to `out`. `lines`: a buffer for the writer.
    pub(crate) fn head(
        &mut self,
        no: StreamNo,
        part: Part,
        write: impl FnOnce(&mut FieldBlock<'_, '_>),
        lines: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let written =
            self.connection.head(no, part, |encoder| write(&mut FieldBlock { encoder, lines }), out);
        // The peer may have reset the stream.
        if written.is_ok()
            && part == (Part::Head { end: true })
            && let Some(stream) = self.get_mut(no)
        {
            stream.end = End::Sent;
        }
    }

    /// Sends a part of a body, and stores the bytes that exceed the windows or the connection's buffer. `end`: this is
    /// the last part.
    pub(crate) fn push<S: Socket>(
        &mut self,
        no: StreamNo,
        data: &[u8],
        end: bool,
        transport: &mut Transport<S>,
        wire: &mut Wire,
    ) {
        let Some(index) = self.index(no) else { return };
        let stream = &mut self.streams[index];
        let mut taken = 0;
        // With priorities, this stream must not overtake a more urgent one whose output waits.
        let has_turn = transport.pending() < MAX_PENDING && !(self.by_priority && self.waiting > 0);
        // Send an end without data at once: it needs no room, and `flush` skips streams without stored output.
        if stream.out.is_empty() && (has_turn || data.is_empty()) {
            // A stream that the peer has reset accepts nothing, so its output is lost.
            taken = match self.connection.data(no, data, end, transport.stage(wire)) {
                Ok(taken) => taken,
                Err(_) => return stream.end = End::Sent,
            };
            stream.sent += taken as u64;
            self.window_waits += u64::from(taken < data.len());
            self.blocked.set(&mut stream.is_blocked, taken < data.len());
        }
        if taken < data.len() {
            self.waiting += usize::from(stream.out.is_empty());
            stream.out.extend_from_slice(&data[taken..]);
        }
        if end {
            stream.end = if stream.out.is_empty() { End::Sent } else { End::Known(Vec::new()) };
        }
    }

    /// Ends a message after its complete body, with these trailer lines, if any.
    pub(crate) fn finish<S: Socket>(
        &mut self,
        no: StreamNo,
        trailers: Vec<u8>,
        transport: &mut Transport<S>,
        wire: &mut Wire,
    ) {
        let Some(index) = self.index(no) else { return };
        self.streams[index].end = End::Known(trailers);
        self.send_end(index, transport.stage(wire));
    }

    /// Sends the end of a message once its whole body has been sent.
    fn send_end(&mut self, index: usize, out: &mut Vec<u8>) {
        let stream = &mut self.streams[index];
        if !stream.out.is_empty() {
            return;
        }
        let End::Known(trailers) = &mut stream.end else { return };
        let trailers = std::mem::take(trailers);
        stream.end = End::Sent;
        // Best effort: this fails if the peer has reset the stream.
        let _ = match trailers.is_empty() {
            true => self.connection.data(stream.no, b"", true, out).map(|_| ()),
            false => self.connection.head(stream.no, Part::Trailers, |to| encode_lines(&trailers, to), out),
        };
    }

    /// Sends as much stored output as the windows and the connection allow, from each stream in its turn. Returns
    /// whether any stream has sent output.
    pub(crate) fn flush<S: Socket>(&mut self, transport: &mut Transport<S>, wire: &mut Wire) -> bool {
        match self.by_priority && self.waiting > 1 {
            true => self.flush_by_priority(transport, wire),
            false => self.flush_ring(None, transport, wire),
        }
    }

    /// Sends the output of all streams, or of the streams with one rank, round-robin.
    pub(super) fn flush_ring<S: Socket>(
        &mut self,
        rank: Option<Rank>,
        transport: &mut Transport<S>,
        wire: &mut Wire,
    ) -> bool {
        let (mut has_sent, mut idle) = (false, 0);
        while self.waiting > 0 && idle < self.streams.len() && transport.pending() < MAX_PENDING {
            if self.next >= self.streams.len() {
                self.next = 0;
            }
            let (index, before) = (self.next, self.streams.len());
            let is_in_ring = rank.is_none_or(|rank| self.streams[index].rank == rank);
            if is_in_ring && self.take_turn(index, transport.stage(wire)) {
                (has_sent, idle) = (true, 0);
            } else {
                idle += 1;
            }
            self.release_if_sent(index);
            // The stream after a released one moves to its index.
            self.next = index + usize::from(self.streams.len() == before);
        }
        has_sent
    }

    /// Sends a stream's output for one turn, or drops it if the peer has reset the stream. Returns whether any was sent
    /// or dropped.
    pub(super) fn take_turn(&mut self, index: usize, out: &mut Vec<u8>) -> bool {
        let stream = &mut self.streams[index];
        if stream.out.is_empty() {
            return false;
        }
        let is_last = stream.exchange.is_none();
        let some = stream.out.len().min(TURN);
        let end = some == stream.out.len() && stream.end == End::Known(Vec::new());
        let Ok(taken) = self.connection.data(stream.no, &stream.out[..some], end, out) else {
            self.blocked.set(&mut stream.is_blocked, false);
            stream.out = Vec::new();
            stream.end = End::Sent;
            self.waiting -= 1;
            return true;
        };
        self.blocked.set(&mut stream.is_blocked, taken < some);
        stream.sent += taken as u64;
        stream.moved |= taken > 0;
        // With priorities, this stream's output also counts as progress of the less urgent streams that wait for it.
        self.last_output_moved |= (is_last || self.by_priority) && taken > 0;
        match taken == stream.out.len() {
            true => {
                stream.out = Vec::new();
                self.waiting -= 1;
            }
            false => drop(stream.out.drain(..taken)),
        }
        if end && stream.out.is_empty() {
            stream.end = End::Sent;
        }
        let no = stream.no;
        self.send_end(index, out);
        self.touch(no);
        taken > 0
    }

    /// Frees the slot of a stream whose exchange is over and whose output has been sent. If only the peer's END_STREAM
    /// is missing, the stream stays until END_STREAM arrives: clients fail if a reset reaches them while they are
    /// sending END_STREAM, and servers may treat resets as abuse.
    pub(super) fn release_if_sent(&mut self, index: usize) {
        let stream = &self.streams[index];
        let is_sent = stream.exchange.is_none() && stream.end == End::Sent;
        if is_sent && !self.connection.awaits_end(stream.no) {
            self.connection.release(stream.no);
            self.remove(index);
        }
    }
}
