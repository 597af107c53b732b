//! HTTP/2: many requests per connection, with the responses of HTTP/1.1.
//!
//! A visit is a turn. It responds to requests whose delays have expired, handles the events of the input, and appends a
//! DATA frame of each stream in a ring, again and again, until none has more or the turn is full. The output leaves in
//! one write. While the socket does not accept all of it, the connection neither reads nor produces more, so it buffers
//! the output of one turn. Bytes to echo that wait for a window are bounded by the window in which the client sent them.

mod call;
mod delays;
mod echo;
mod events;
mod responding;
mod stream;
mod streams;

use crate::context::{Context, Needs};
use delays::Delays;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use streams::Streams;
use weir_http2::{Config, ConnectionError, Role, Settings, StreamNo};
use weir_transport::{Fault, Transport};

/// One HTTP/2 connection.
pub(crate) struct Http2 {
    protocol: weir_http2::Connection,
    streams: Streams,
    /// Streams with bytes to send, and some that were reset since.
    ring: VecDeque<StreamNo>,
    delays: Delays,
    /// The time up to which the protocol's budgets have been forgiven.
    forgiven: Instant,
    /// Whether input remains because the turn's output was full.
    has_backlog: bool,
}

/// The result of a turn.
pub(crate) enum Turn {
    /// The connection continues after `used` bytes of the input.
    Open { used: usize, needs: Needs },
    /// Close the connection once all bytes are sent.
    Over,
}

/// The output of a turn, in bytes. A last frame, echoes and acknowledgements may add to it.
const TURN: usize = 256 * 1024;

/// The part of it for new responses and echoes; the rest belongs to the ring.
const NEW: usize = TURN / 2;

/// The maximum number of streams per connection. Each may hold 64 KiB to echo.
const STREAMS: u32 = 256;

/// Whether `input` starts with, or may become, the part of the client's preface that HTTP/1.1 may take for a request
/// line (RFC 9113, section 3.4). [`Http2`] checks the rest.
pub(crate) fn is_preface(input: &[u8]) -> bool {
    const LINE: &[u8] = b"PRI * HTTP/2.0\r\n";
    let length = input.len().min(LINE.len());
    input[..length] == LINE[..length]
}

impl Http2 {
    /// A connection before the client's preface.
    pub(crate) fn new(context: &Context) -> Box<Self> {
        context.count().connections_http2.add(1);
        let defaults = Config::default();
        let settings = Settings { max_concurrent_streams: Some(STREAMS), ..defaults.settings };
        Box::new(Self {
            protocol: weir_http2::Connection::new(Role::Server, Config { settings, ..defaults }),
            streams: Streams::default(),
            ring: VecDeque::new(),
            delays: Delays::default(),
            forgiven: context.now,
            has_backlog: false,
        })
    }

    /// Whether the last turn left input that must be parsed before more is read.
    pub(crate) fn has_backlog(&self) -> bool {
        self.has_backlog
    }

    /// Whether all requests have their responses.
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Makes as much progress as a turn allows. `ended`: the client sends no more.
    pub(crate) fn turn(
        &mut self,
        input: &mut [u8],
        ended: bool,
        transport: &mut Transport,
        context: &mut Context,
    ) -> Result<Turn, Fault> {
        let mut used = 0;
        if transport.pending() > 0 {
            return Ok(Turn::Open { used, needs: Needs::default() });
        }
        context.out.clear();
        let done = self.work(input, &mut used, context);
        if let Err(error) = done {
            context.count().refused.add(1);
            self.protocol.fail(error);
        }
        self.protocol.settle(&mut context.out);
        if !context.out.is_empty() {
            transport.send(&context.out, &mut context.wire)?;
            context.out.clear();
        }
        if done.is_err() || self.protocol.is_drained() {
            return Ok(Turn::Over);
        }
        if transport.pending() > 0 {
            return Ok(Turn::Open { used, needs: Needs::default() });
        }
        let again = self.has_backlog || !self.ring.is_empty();
        let wake = self.delays.wake(context.now);
        let end = ended && !again && self.delays.is_empty();
        if end {
            let cut = used < input.len() || !self.is_idle();
            context.count().failed.add(u64::from(cut));
        }
        Ok(Turn::Open { used, needs: Needs { end, again, wake } })
    }

    fn work(
        &mut self,
        input: &mut [u8],
        used: &mut usize,
        context: &mut Context,
    ) -> Result<(), ConnectionError> {
        self.forgive(context.now);
        if context.draining {
            self.protocol.go_away();
        }
        while context.out.len() < NEW
            && let Some(stream) = self.delays.next_due(context.now)
        {
            self.resume(stream, context);
        }
        self.has_backlog = true;
        while context.out.len() < NEW {
            let rest = &mut input[*used..];
            let step = self.protocol.feed(rest, &mut context.h2_head)?;
            let Some(event) = step.event else {
                *used += step.consumed;
                self.has_backlog = false;
                break;
            };
            self.handle(event, rest, context);
            *used += step.consumed;
        }
        while context.out.len() < TURN
            && let Some(stream) = self.ring.pop_front()
        {
            self.send(stream, context);
        }
        Ok(())
    }

    fn forgive(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.forgiven).as_secs();
        if seconds > 0 {
            self.forgiven += Duration::from_secs(seconds);
            self.protocol.elapse(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_is_recognized_from_its_first_byte() {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        assert!((1..=preface.len()).all(|length| is_preface(&preface[..length])));
        for other in [&b"GET / HTTP/1.1\r\n"[..], b"PRI * HTTP/2.1\r\n", b"PRI / HTTP/2.0\r\n", b"pri"] {
            assert!(!is_preface(other), "{}", other.escape_ascii());
        }
    }
}
