//! One connection: sends requests, receives and checks responses.

use super::Http2;
use super::balance::Rank;
use super::pending::Pending;
use super::stream::{Done, Stream};
use crate::check::{Detail, ErrorClass, Wrong};
use crate::connection::Context;
use crate::result::Tickets;
use crate::worker::Policy;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weir_http::Method;
use weir_http2::{Config, ErrorCode, Event, Limits, Part, Role, Settings, StreamNo};
use weir_reactor::Timer;
use weir_tls::{HandshakeKind, Version};
use weir_transport::{End, Transport};

pub(crate) struct Connection {
    pub(super) transport: Transport,
    pub(super) phase: Phase,
    /// Set while the phase waits for the server; the phase tells what a passed deadline means.
    pub(super) timer: Timer<()>,
    /// Its rank among those that take another stream.
    pub(super) rank: Option<Rank>,
    /// Whether it has output for the end of the turn.
    pub(super) is_dirty: bool,
    /// Responses so far.
    pub(super) answered: u64,
    /// Consecutive previous connections without a response.
    pub(super) failures: u32,
    /// When connecting started, and when the socket was connected.
    pub(super) started: Instant,
    pub(super) connected: Instant,
    /// Whether it offered a session to resume.
    offered: bool,
    http: weir_http2::Connection,
    /// Sorted by number, so the oldest is the first.
    streams: VecDeque<Stream>,
    /// Streams with body bytes to send and room in their windows, in turn.
    senders: VecDeque<StreamNo>,
    /// A partial frame.
    kept: Vec<u8>,
    /// Received bytes of heads that are counted.
    block_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Until the server's SETTINGS.
    Opening,
    Open,
    /// The server takes no further streams; those in flight may end.
    Draining,
    /// Without streams: lets the server close first, so that TIME_WAIT (RFC 9293 section 3.6.1) is on its side.
    Ending,
}

/// How much of a body is given to the transport at once, so that streams send in turn.
const PIECE: usize = 64 * 1024;
/// How much the transport may buffer before bodies wait.
const MOST_PENDING: usize = 256 * 1024;

/// The settings of a connection with this policy. Responses are what is measured: no number of frames is abuse.
pub(super) fn config(streams: u32, stream_window: u32) -> Config {
    let limits = Limits::default();
    let settings = Settings {
        max_concurrent_streams: Some(streams),
        initial_window_size: stream_window,
        max_header_list_size: Some(limits.head_bytes as u32),
        ..Settings::default()
    };
    let budgets = weir_http2::Budgets {
        resets: u32::MAX,
        provoked_resets: u32::MAX,
        empty_data: u32::MAX,
        settings: u32::MAX,
        pings: u32::MAX,
        no_effect: u32::MAX,
        window_updates: u32::MAX,
    };
    Config { settings, limits, budgets, ..Config::default() }
}

impl Connection {
    pub(super) fn new(transport: Transport, policy: &Policy, offered: bool, now: Instant) -> Self {
        let config = config(policy.streams, policy.stream_window);
        Self {
            transport,
            phase: Phase::Opening,
            timer: Timer::default(),
            rank: None,
            is_dirty: false,
            answered: 0,
            failures: 0,
            started: now,
            connected: now,
            offered,
            http: weir_http2::Connection::new(Role::Client, config),
            streams: VecDeque::new(),
            senders: VecDeque::new(),
            kept: Vec::new(),
            block_bytes: 0,
        }
    }

    /// The number of requests in flight if it takes another one.
    pub(super) fn load(&self) -> Option<u32> {
        (self.phase == Phase::Open && self.http.has_slot()).then_some(self.streams.len() as u32)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// Takes all requests in flight.
    pub(super) fn take_streams(&mut self) -> VecDeque<Stream> {
        std::mem::take(&mut self.streams)
    }

    /// Starts a request, whose output leaves with the next [`flush`](Self::flush). Returns it if there is no stream.
    pub(super) fn begin(&mut self, asked: Pending, context: &mut Context<'_, Http2>) -> Result<(), Pending> {
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
        self.streams.push_back(Stream::new(no, asked, place, context.now));
        context.recorder.h2().counts.requests += 1;
        Ok(())
    }

    /// Handles readiness. Reads the clock once, after the read. Pushes the requests that ended.
    pub(super) fn event(
        &mut self,
        readable: bool,
        writable: bool,
        context: &mut Context<'_, Http2>,
        done: &mut Vec<Done>,
    ) -> Result<Option<End>, Wrong> {
        if writable && (!self.transport.is_open() || self.transport.pending() > 0) {
            let was_connecting = self.transport.is_connecting();
            if was_connecting {
                // Before the first bytes go out: on loopback the kernel runs the peer's receive path synchronously.
                self.connected = Instant::now();
            }
            let advanced = self.transport.advance(&mut context.wire);
            context.now = Instant::now();
            advanced?;
            if was_connecting {
                context.recorder.connected(self.started, self.connected);
            }
        }
        if !readable || self.transport.is_connecting() {
            return Ok(None);
        }
        let mut input = std::mem::take(&mut context.input);
        input.clear();
        input.append(&mut self.kept);
        let received = self.transport.receive(&mut context.wire, &mut input);
        context.now = Instant::now();
        let outcome = received.map_err(Wrong::from).and_then(|received| {
            if received.bytes > 0 {
                context.recorder.counters.bytes_received += received.bytes as u64;
                context.recorder.h2().counts.reads += 1;
            }
            if received.handshake_finished {
                self.handshake_done(context)?;
            }
            let consumed = self.parse(&mut input, context, done)?;
            self.kept.extend_from_slice(&input[consumed..]);
            Ok(received.end)
        });
        context.input = input;
        outcome
    }

    fn handshake_done(&mut self, context: &mut Context<'_, Http2>) -> Result<(), Wrong> {
        let Some(facts) = self.transport.facts() else { return Ok(()) };
        context.recorder.handshake(facts, self.started, self.connected, context.now);
        if self.offered {
            context.recorder.counters.offered += 1;
            context.recorder.counters.declined += u64::from(facts.kind == HandshakeKind::Full);
        }
        match facts.alpn.as_deref() {
            Some(b"h2") => Ok(()),
            _ => Err(Wrong::fixed(ErrorClass::Tls, "the server did not agree on h2 by ALPN")),
        }
    }

    /// Handles all whole events of the input; returns the bytes consumed.
    fn parse(
        &mut self,
        input: &mut [u8],
        context: &mut Context<'_, Http2>,
        done: &mut Vec<Done>,
    ) -> Result<usize, Wrong> {
        let mut at = 0;
        loop {
            let step = self.http.feed(&mut input[at..], &mut context.head).map_err(|error| {
                self.http.fail(error);
                match self.phase {
                    Phase::Opening => {
                        Wrong::no_http(&input[at..], &super::trial::not_http2(&input[at..], error))
                    }
                    _ => Wrong { class: ErrorClass::Malformed, detail: Detail::Text(error.to_string()) },
                }
            })?;
            let Some(event) = step.event else {
                at += step.consumed;
                break;
            };
            self.handle(&event, &input[at..], context, done);
            at += step.consumed;
        }
        let block_bytes = self.http.block_bytes();
        context.recorder.h2().counts.block_bytes += block_bytes - self.block_bytes;
        self.block_bytes = block_bytes;
        Ok(at)
    }

    fn handle(
        &mut self,
        event: &Event,
        input: &[u8],
        context: &mut Context<'_, Http2>,
        done: &mut Vec<Done>,
    ) {
        match event {
            Event::Head { stream, end } => {
                if let Some(at) = self.position(*stream) {
                    let request = context.mix.nth(self.streams[at].place);
                    self.streams[at].head(context.head.status, request, context.now);
                }
                if *end {
                    self.complete(*stream, context, done);
                }
            }
            Event::Data { stream, range, flow, end } => {
                if let Some(at) = self.position(*stream) {
                    self.streams[at].body(&input[range.clone()]);
                }
                self.http.credit(*stream, *flow);
                if *end {
                    self.complete(*stream, context, done);
                }
            }
            Event::Trailers { stream } => self.complete(*stream, context, done),
            Event::Reset { stream, code } => {
                context.recorder.h2().counts.reset(*code);
                let Some(ended) = self.release(*stream) else { return };
                done.push(match *code {
                    ErrorCode::REFUSED_STREAM => Done::Refused(ended.pending()),
                    code => Done::Answered(Some(reset(code))),
                });
            }
            Event::Failed { stream, error } => {
                if self.release(*stream).is_some() {
                    let detail = Detail::Text(error.to_string());
                    done.push(Done::Answered(Some(Wrong { class: ErrorClass::Malformed, detail })));
                }
            }
            Event::GoAway { last, code } => {
                context.recorder.h2().counts.goaway(*code);
                if matches!(self.phase, Phase::Opening | Phase::Open) {
                    self.phase = Phase::Draining;
                }
                while let Some(no) = self.streams.back().map(|stream| stream.no).filter(|no| no.get() > *last)
                {
                    done.extend(self.release(no).map(|ended| Done::Refused(ended.pending())));
                }
            }
            Event::Settings => {
                if self.phase == Phase::Opening {
                    self.phase = Phase::Open;
                    context.recorder.h2().settings(self.http.peer(), 1);
                }
                self.resume_senders(None, context);
            }
            Event::Room { stream } => self.resume_senders(*stream, context),
            Event::Pong | Event::Rejected { .. } => {}
        }
    }

    fn complete(&mut self, no: StreamNo, context: &mut Context<'_, Http2>, done: &mut Vec<Done>) {
        let Some(stream) = self.release(no) else { return };
        self.answered += 1;
        if self.answered == 1 {
            self.count_tickets(context);
        }
        let request = context.mix.nth(stream.place);
        context.recorder.h2().counts.responses += 1;
        done.push(Done::Answered(stream.complete(request, &mut context.recorder, context.now)));
    }

    /// TLS 1.3 tickets arrive before the first response or with it.
    fn count_tickets(&self, context: &mut Context<'_, Http2>) {
        if let Some(facts) = self.transport.facts().filter(|facts| facts.version == Version::Tls13) {
            let number = self.transport.tickets_received();
            context.recorder.tickets(facts.kind.name(), Tickets { least: number, most: number });
        }
    }

    /// The streams whose body waits send again: all or one of them.
    fn resume_senders(&mut self, stream: Option<StreamNo>, context: &Context<'_, Http2>) {
        for waiting in &self.streams {
            let is_meant = stream.is_none_or(|stream| stream == waiting.no);
            let has_more = waiting.given < context.mix.nth(waiting.place).body.len();
            if is_meant && has_more && !self.senders.contains(&waiting.no) {
                self.senders.push_back(waiting.no);
            }
        }
    }

    /// Sends what the turn has brought up, in one write.
    pub(super) fn flush(
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

    /// Gives the transport as much of the bodies as it takes without buffering much.
    fn give(&mut self, context: &mut Context<'_, Http2>) {
        while self.transport.pending() < MOST_PENDING
            && let Some(no) = self.senders.pop_front()
        {
            let Some(at) = self.position(no) else { continue };
            let stream = &mut self.streams[at];
            let rest = &context.mix.nth(stream.place).body[stream.given..];
            let piece = &rest[..rest.len().min(PIECE)];
            let end = piece.len() == rest.len();
            let out = self.transport.stage(&mut context.wire);
            // The stream takes its body until it has ended.
            let taken = self.http.data(no, piece, end, out).unwrap_or_default();
            stream.given += taken;
            if taken == piece.len() && !end {
                self.senders.push_back(no);
            }
        }
    }

    /// Gives up the oldest request if it was sent `timeout` ago. Call it again until it returns `false`.
    pub(super) fn expire(&mut self, timeout: Duration, context: &mut Context<'_, Http2>) -> bool {
        let Some(oldest) = self.streams.front() else { return false };
        if oldest.written + timeout > context.now {
            return false;
        }
        let no = oldest.no;
        if let Some(stream) = self.release(no) {
            stream.give_up(&mut context.recorder, context.now);
        }
        true
    }

    /// When the oldest request times out.
    pub(super) fn deadline(&self, timeout: Duration) -> Option<Instant> {
        self.streams.front().map(|oldest| oldest.written + timeout)
    }

    /// Gives up opening: its times are censored at now.
    pub(super) fn give_up_opening(&self, context: &mut Context<'_, Http2>) {
        let connected = (!self.transport.is_connecting()).then_some(self.connected);
        context.recorder.opening_given_up(self.started, connected, self.offered, context.now);
    }

    /// Stages the last frames of a connection that the engine closes.
    pub(super) fn say_goodbye(&mut self, context: &mut Context<'_, Http2>) {
        if self.transport.is_open() {
            self.http.go_away();
            self.http.settle(self.transport.stage(&mut context.wire));
        }
    }

    /// Ends a stream: one that has not ended is reset.
    fn release(&mut self, no: StreamNo) -> Option<Stream> {
        self.http.release(no);
        let at = self.position(no)?;
        self.streams.remove(at)
    }

    fn position(&self, no: StreamNo) -> Option<usize> {
        self.streams.binary_search_by_key(&no, |stream| stream.no).ok()
    }
}

fn reset(code: ErrorCode) -> Wrong {
    let text = match code.name() {
        "unknown" => format!("the server reset the stream with code {:#x}", code.0),
        name => format!("the server reset the stream with {name}"),
    };
    Wrong { class: ErrorClass::StreamReset, detail: Detail::Text(text) }
}
