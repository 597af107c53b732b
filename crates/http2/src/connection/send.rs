//! Commands in: heads, bodies, resets and credit.

use super::drain::Drain;
use super::event::StreamNo;
use super::{Connection, Role};
use crate::budget::UPDATES_PER_DATA;
use crate::frame::{self, HEADER_BYTES, Kind, flag};
use crate::hpack::Encoder;
use crate::settings::MAX_WINDOW;
use crate::stream::{Half, Reset, Stream};
use crate::{Abuse, ErrorCode};
use thiserror::Error;

/// The kind of head in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An interim response (1xx).
    Interim,
    /// A request, or a final response.
    Head {
        /// Whether the message has no body.
        end: bool,
    },
    /// Trailers, which end the message.
    Trailers,
}

/// The stream does not accept the frame: it was reset, has ended, or is not open yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the stream is closed for this part of a message")]
pub struct Closed;

/// The maximum number of body bytes in our DATA frames. With its header, a DATA frame of this size fills a TLS record
/// of 2^14 bytes.
pub const DATA_BYTES: usize = (1 << 14) - HEADER_BYTES;

/// The number of streams that a client may open before it knows the server's settings (RFC 9113, section 6.5.2
/// recommends a limit of at least 100).
const STREAMS_BEFORE_SETTINGS: u32 = 100;

impl Connection {
    /// Opens a stream for a request. The request's head must follow before another stream is opened. `is_head` says
    /// whether the method is HEAD, so that the response has no body. Returns `None` if the peer or our settings allow
    /// no more streams, the stream IDs are used up, or the connection is draining: the request then waits, or uses
    /// another connection.
    #[must_use]
    pub fn open(&mut self, is_head: bool) -> Option<StreamNo> {
        if !self.has_slot() {
            return None;
        }
        let id = self.next_own;
        self.next_own += 2;
        let stream = Stream::new(Half::Head, self.peer.initial_window_size, self.initial_receive_window);
        self.streams.insert(id, Stream { no_body: is_head, ..stream });
        Some(StreamNo(id))
    }

    /// Marks the request on a stream as a CONNECT: a 2xx response opens a tunnel, regardless of its `content-length`
    /// (RFC 9110, section 9.3.6).
    pub fn is_for_tunnel(&mut self, stream: StreamNo) {
        if let Some(stream) = self.streams.get(stream.0) {
            stream.is_tunnel = true;
        }
    }

    /// Whether [`open`](Self::open) would open a stream now. [`release`](Self::release) and
    /// [`Event::Settings`](super::Event::Settings) may free a slot.
    #[must_use]
    pub fn has_slot(&self) -> bool {
        let may_open = self.role == Role::Client && !self.peer_drains && self.drain == Drain::No;
        may_open && self.streams.len() < self.most_streams() && self.next_own <= MAX_WINDOW
    }

    /// The maximum number of open streams of a client: the lower of the peer's limit and our own.
    #[must_use]
    pub fn most_streams(&self) -> usize {
        let of_peer = match self.has_peer_settings {
            true => self.peer.max_concurrent_streams.unwrap_or(u32::MAX),
            false => STREAMS_BEFORE_SETTINGS,
        };
        self.config.settings.max_concurrent_streams.unwrap_or(u32::MAX).min(of_peer) as usize
    }

    /// Appends a head or trailers to `out`; `write` encodes the fields. The caller sends all appended bytes in the
    /// order of the calls.
    ///
    /// # Errors
    /// The stream does not accept this part. Nothing was written.
    pub fn head(
        &mut self,
        stream: StreamNo,
        part: Part,
        write: impl FnOnce(&mut Encoder<'_>),
        out: &mut Vec<u8>,
    ) -> Result<(), Closed> {
        let state = self.streams.get(stream.0).ok_or(Closed)?;
        let end = matches!(part, Part::Head { end: true } | Part::Trailers);
        state.send = match (part, state.send) {
            (Part::Interim, Half::Head) => Half::Head,
            (Part::Head { end: false }, Half::Head) => Half::Body,
            (Part::Head { end: true }, Half::Head) | (Part::Trailers, Half::Body) => Half::Closed,
            _ => return Err(Closed),
        };
        out.append(&mut self.control);
        self.write_block(stream.0, end, write, out);
        self.forgive_if_closed(stream.0);
        Ok(())
    }

    /// Appends the frames of a field block.
    pub(super) fn write_block(
        &mut self,
        id: u32,
        end: bool,
        write: impl FnOnce(&mut Encoder<'_>),
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let mut encoder = Encoder::new(out);
        if !std::mem::replace(&mut self.has_sent_head, true) {
            encoder.without_table();
        }
        write(&mut encoder);
        let lines = encoder.lines();
        self.sent.count(out.len() - start - HEADER_BYTES, lines);
        frame_block(id, end, start, self.peer.max_frame_size as usize, out);
    }

    /// Appends as much of a body to `out` as the windows allow, and END_STREAM with the last byte if `end`. Returns the
    /// number of bytes taken. If bytes remain, [`Event::Room`](super::Event::Room) or
    /// [`Event::Settings`](super::Event::Settings) follows.
    ///
    /// # Errors
    /// The stream accepts no body. Nothing was written.
    pub fn data(
        &mut self,
        stream: StreamNo,
        body: &[u8],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<usize, Closed> {
        let state = self.streams.get(stream.0).filter(|state| state.send == Half::Body).ok_or(Closed)?;
        let of_stream = state.send_window.available();
        let of_connection = self.send_window.available();
        let taken = body.len().min(of_stream).min(of_connection);
        let is_whole = taken == body.len();
        if !is_whole {
            state.blocked |= taken == of_stream;
            self.blocked |= taken == of_connection;
        }
        let end = end && is_whole;
        state.send_window.take(taken);
        if end {
            state.send = Half::Closed;
        }
        self.send_window.take(taken);
        out.append(&mut self.control);
        let mut rest = &body[..taken];
        let mut frames = 0;
        while !rest.is_empty() || (end && frames == 0) {
            let (piece, behind) = rest.split_at(rest.len().min(DATA_BYTES));
            frame::write_data(stream.0, piece, end && behind.is_empty(), out);
            rest = behind;
            frames += 1;
        }
        self.spent.forgive(Abuse::WindowUpdate, UPDATES_PER_DATA * frames);
        self.forgive_if_closed(stream.0);
        Ok(taken)
    }

    /// Whether the window of a stream has room, regardless of the connection's window.
    #[must_use]
    pub fn has_window(&mut self, stream: StreamNo) -> bool {
        self.streams.get(stream.0).is_some_and(|state| state.send_window.available() > 0)
    }

    /// Whether this side has ended the stream, and the peer has sent all of its announced body, but no END_STREAM.
    #[must_use]
    pub fn awaits_end(&mut self, stream: StreamNo) -> bool {
        self.streams.get(stream.0).is_some_and(|state| {
            (state.send, state.receive, state.missing) == (Half::Closed, Half::Body, Some(0))
        })
    }

    /// Returns the `flow` of a DATA event to the windows. Call it once the bytes are forwarded or dropped, even on a
    /// released stream: otherwise the connection's window eventually closes.
    pub fn credit(&mut self, stream: StreamNo, flow: u32) {
        self.credit_connection(flow);
        let open = self.streams.get(stream.0).filter(|state| state.receive != Half::Closed);
        if let Some(increment) = open.and_then(|state| state.receive_window.consume(flow)) {
            frame::write_window_update(stream.0, increment, &mut self.control);
        }
    }

    pub(super) fn credit_connection(&mut self, flow: u32) {
        if let Some(increment) = self.receive_window.consume(flow) {
            frame::write_window_update(0, increment, &mut self.control);
        }
    }

    /// Resets a stream, unless it has ended in both directions. The owner still [releases](Self::release) it.
    pub fn reset(&mut self, stream: StreamNo, code: ErrorCode) {
        let Some(state) = self.streams.get(stream.0).filter(|state| !state.is_closed()) else { return };
        let was_opened = self.role == Role::Server || state.send != Half::Head;
        state.reset(Reset::ByUs);
        // A stream whose HEADERS were not sent is still idle for the peer, so RST_STREAM would be an error.
        if was_opened {
            frame::write_rst_stream(stream.0, code, &mut self.control);
        }
    }

    /// Frees a stream's slot. Call it only when the exchange is over: otherwise a client could reset a stream and open
    /// the next one while the work for the first continues (CVE-2023-44487). Resets a stream that has not ended: with
    /// NO_ERROR on a server whose response is complete (RFC 9113, section 8.1), otherwise with CANCEL.
    pub fn release(&mut self, stream: StreamNo) {
        let has_responded = self.role == Role::Server
            && self.streams.get(stream.0).is_some_and(|state| state.send == Half::Closed);
        self.reset(stream, if has_responded { ErrorCode::NO_ERROR } else { ErrorCode::CANCEL });
        let released = self.streams.remove(stream.0);
        if released.is_some_and(|state| state.reset == Reset::ByUs) {
            self.streams.ignore(stream.0);
        }
    }

    /// Appends the control frames that were not sent before a head or body. Call it once per turn, after all other
    /// output.
    pub fn settle(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.control);
    }
}

/// Writes the headers of a field block's frames. The block starts at `start` with space for one header.
fn frame_block(stream: u32, end: bool, start: usize, most: usize, out: &mut Vec<u8>) {
    let length = out.len() - start - HEADER_BYTES;
    let end_stream = if end { flag::END_STREAM } else { 0 };
    let end_headers = |is_last| if is_last { flag::END_HEADERS } else { 0 };
    let first = length.min(most);
    let flags = end_stream | end_headers(first == length);
    let header = frame::header_bytes(first, Kind::Headers, flags, stream);
    out[start..start + HEADER_BYTES].copy_from_slice(&header);
    if first < length {
        let rest = out.split_off(start + HEADER_BYTES + first);
        let mut pieces = rest.chunks(most).peekable();
        while let Some(piece) = pieces.next() {
            frame::write(Kind::Continuation, end_headers(pieces.peek().is_none()), stream, piece, out);
        }
    }
}
