//! The sending side: heads when requests begin, bodies as far as the windows allow, one write for each turn.

use super::{Connection, Phase};
use crate::check::Wrong;
use crate::connection::Context;
use crate::h2::Http2;
use crate::h2::pending::Pending;
use crate::h2::stream::Stream;
use crate::h2::waits::Cause;
use weir_http::Method;
use weir_http2::{Part, StreamNo};

/// The maximum number of bytes of a body given to the transport at once, so that streams send in turn.
const PIECE: usize = 64 * 1024;
/// The number of bytes buffered in the transport from which bodies wait.
const MOST_PENDING: usize = 256 * 1024;

/// The last stream that a connection can open (RFC 9113, section 5.1.1).
const LAST_STREAM: u32 = (1 << 31) - 1;

impl Connection {
    /// Starts a request, whose output leaves with the next [`flush`](Self::flush). Returns it if there is no stream.
    pub(in crate::h2) fn begin(
        &mut self,
        asked: Pending,
        context: &mut Context<'_, Http2>,
    ) -> Result<(), Pending> {
        if self.phase != Phase::Open {
            return Err(asked);
        }
        let place = asked.place.unwrap_or(context.place);
        let request = context.mix.nth(place);
        let Some(no) = self.http.open(request.method == Method::Head) else { return Err(asked) };
        context.place += u64::from(asked.place.is_none());
        let out = self.transport.stage(&mut context.wire);
        let end = request.body.is_empty();
        // A new stream takes a head.
        let _ = self.http.head(no, Part::Head { end }, |to| to.encoded(&request.fields), out);
        if !end {
            self.senders.push_back(no);
        }
        self.streams.push_back(Stream::new(no, asked, place, request, context.now));
        context.recorder.h2().counts.requests += 1;
        if no.get() == LAST_STREAM {
            self.phase = Phase::Draining;
        }
        Ok(())
    }

    /// Sends the output of a turn, in one write.
    pub(in crate::h2) fn flush(
        &mut self,
        control: &mut Vec<u8>,
        context: &mut Context<'_, Http2>,
    ) -> Result<(), Wrong> {
        if !self.transport.is_open() {
            return Ok(());
        }
        self.give(context);
        control.clear();
        self.http.settle(control);
        let bytes = self.transport.staged() + control.len();
        if bytes == 0 {
            return Ok(());
        }
        context.recorder.counters.bytes_sent += bytes as u64;
        context.recorder.h2().counts.writes += 1;
        match control.is_empty() {
            true => self.transport.commit(&mut context.wire)?,
            false => self.transport.send(control, &mut context.wire)?,
        }
        Ok(())
    }

    /// Gives the transport bytes of bodies until it buffers [`MOST_PENDING`] bytes.
    fn give(&mut self, context: &mut Context<'_, Http2>) {
        while self.transport.pending() < MOST_PENDING
            && let Some(no) = self.senders.pop_front()
        {
            let Some(at) = self.position(no) else { continue };
            let stream = &mut self.streams[at];
            let request = context.mix.nth(stream.place);
            let rest = &request.body[stream.given..];
            let piece = &rest[..rest.len().min(PIECE)];
            let end = piece.len() == rest.len();
            let out = self.transport.stage(&mut context.wire);
            stream.waits.end(context.now);
            // The stream takes its body until it has ended.
            let taken = self.http.data(no, piece, end, out).unwrap_or_default();
            if let Some(call) = request.call {
                context.recorder.h2().counts.messages_sent += call.sent(stream.given, stream.given + taken);
            }
            stream.given += taken;
            match (taken == piece.len(), end) {
                (true, true) => stream.waits.record(stream.asked.planned, &mut context.recorder),
                (true, false) => self.senders.push_back(no),
                (false, _) => stream.waits.begin(Cause::Window, context.now),
            }
        }
        for at in self.senders.iter().filter_map(|no| self.position(*no)).collect::<Vec<_>>() {
            self.streams[at].waits.begin(Cause::Wire, context.now);
        }
    }

    /// Resumes the bodies that wait for a window: that of `stream`, or all.
    pub(super) fn resume_senders(&mut self, stream: Option<StreamNo>, context: &Context<'_, Http2>) {
        for waiting in &self.streams {
            let is_meant = stream.is_none_or(|stream| stream == waiting.no);
            let has_more = waiting.given < context.mix.nth(waiting.place).body.len();
            if is_meant && has_more && !self.senders.contains(&waiting.no) {
                self.senders.push_back(waiting.no);
            }
        }
    }

    /// Stages the last frames of a connection that the engine closes.
    pub(in crate::h2) fn say_goodbye(&mut self, context: &mut Context<'_, Http2>) {
        if self.transport.is_open() {
            self.http.go_away();
            self.http.settle(self.transport.stage(&mut context.wire));
        }
    }
}
