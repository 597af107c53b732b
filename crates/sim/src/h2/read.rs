//! Reading responses: checks each event of the connection and assigns it to a stream.

use super::behaviour::Behaviour;
use super::stream::{Stall, Stream, Upload, ends_with_trailers};
use super::wire::{ANY_STREAM, INITIAL_WINDOW};
use super::{Credit, H2Client};
use crate::Invariant;
use crate::ledger::{Ledger, Outcome, Unprocessed};
use crate::message::{Ask, TRAILER};
use crate::response;
use crate::switch::ACCEPT;
use crate::world::World;
use std::collections::VecDeque;
use std::time::Duration;
use weir_http2::{ErrorCode, Event, StreamNo};

impl H2Client {
    /// Processes all received bytes.
    pub(super) fn read(&mut self, world: &mut World, ledger: &mut Ledger) {
        let mut wrong = Vec::new();
        self.wire.receives(&self.peer.input[self.observed..], &mut wrong);
        let mut input = std::mem::take(&mut self.peer.input);
        let mut at = 0;
        loop {
            match self.connection.feed(&mut input[at..], &mut self.head) {
                Ok(step) => {
                    let from = at;
                    at += step.consumed;
                    let Some(event) = step.event else { break };
                    self.event(event, &input[from..], world, ledger);
                }
                Err(error) => {
                    wrong.push((Invariant::Messages, format!("bad frames: {error}")));
                    at = input.len();
                    break;
                }
            }
        }
        input.drain(..at);
        self.observed = input.len();
        self.peer.input = input;
        for (invariant, what) in wrong {
            ledger.violation(invariant, format!("client {}: {what}", self.peer.link));
        }
    }

    /// Processes an event, whose ranges refer to `input`.
    fn event(&mut self, event: Event, input: &[u8], world: &mut World, ledger: &mut Ledger) {
        match event {
            Event::Head { stream, end } => self.head(stream, end, world, ledger),
            Event::Data { stream, range, flow, end } => {
                self.data(stream, &input[range], flow, world);
                if end {
                    self.response_ends(stream, world, ledger);
                }
            }
            Event::Trailers { stream } => {
                let value = self.field(TRAILER);
                if let Some(stream) = self.stream(stream) {
                    stream.got_trailers = value == Some(stream.id.to_string());
                }
                self.response_ends(stream, world, ledger);
            }
            Event::Reset { stream, code } => self.is_reset(stream, code, ledger),
            Event::Failed { stream, error } | Event::Rejected { stream, error } => {
                let (link, stream) = (self.peer.link, stream.get());
                let what = format!("client {link} got a bad response on stream {stream}: {error}");
                ledger.violation(Invariant::Messages, what);
            }
            Event::GoAway { last, code } => self.gateway_goes_away(last, code, ledger),
            Event::Pong => (self.has_pong, self.is_idle) = (true, true),
            // Nothing to do: each poll sends as much of the bodies as the windows allow.
            Event::Room { .. } | Event::Settings | Event::Pause => {}
        }
    }

    fn stream(&mut self, no: StreamNo) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.no == no)
    }

    /// The value of a field in the last received head.
    fn field(&self, name: &str) -> Option<String> {
        let of = |span: weir_http::Span| String::from_utf8_lossy(span.of(&self.head.bytes)).into_owned();
        let mut fields = self.head.fields.iter();
        fields.find(|field| of(field.name).eq_ignore_ascii_case(name)).map(|field| of(field.value))
    }

    fn head(&mut self, no: StreamNo, end: bool, world: &mut World, ledger: &mut Ledger) {
        let status = self.head.status;
        let Some(stream) = self.stream(no) else { return };
        if status < 200 {
            if status == 100 && matches!(stream.upload, Upload::Waiting(_)) {
                stream.upload = Upload::Sending;
            }
            return;
        }
        if status < 300 && stream.upload == Upload::Opening {
            stream.upload = Upload::Sending;
        }
        let id = stream.id;
        if self.field(ACCEPT).is_some() {
            ledger.violation(Invariant::Messages, format!("#{id} got {ACCEPT} on a stream"));
        }
        let begun = response::begin(id, status, |name| self.field(name), ledger);
        if let Some(stream) = self.stream(no) {
            stream.begun = Some(begun);
        }
        if end {
            self.response_ends(no, world, ledger);
        }
    }

    /// Receives a part of a body; credit for it is due now or later.
    fn data(&mut self, no: StreamNo, data: &[u8], flow: u32, world: &mut World) {
        let delay = self.behaviour.lateness.map_or(0, |most| world.below(most));
        let at = world.now + Duration::from_millis(delay);
        let Behaviour { has_narrow_connection, hoards, window, .. } = self.behaviour;
        let is_due = |owed: u32, window: u32| !hoards || owed >= window / 2;
        if has_narrow_connection {
            self.owed += flow;
            if is_due(self.owed, INITIAL_WINDOW) {
                self.credits.push(Credit { at, stream: 0, bytes: std::mem::take(&mut self.owed) });
            }
        }
        let Some(stream) = self.stream(no) else { return };
        stream.got.extend_from_slice(data);
        stream.owed += flow;
        if stream.stall == Stall::No && is_due(stream.owed, window) {
            let bytes = std::mem::take(&mut stream.owed);
            self.credits.push(Credit { at, stream: no.get(), bytes });
        }
    }

    /// Handles the end of a response.
    fn response_ends(&mut self, no: StreamNo, world: &mut World, ledger: &mut Ledger) {
        let is_prompt = self.behaviour.is_prompt;
        let Some(stream) = self.stream(no) else { return };
        stream.has_ended = true;
        let (id, got_trailers, stall) = (stream.id, stream.got_trailers, stream.stall);
        let (body, begun) = (std::mem::take(&mut stream.got), stream.begun);
        if matches!(stream.upload, Upload::Waiting(_) | Upload::Opening) || world.below(2) == 0 {
            // The response is complete, so the client sends no more of the request.
            stream.upload = Upload::Sent;
        }
        self.release_ended();
        let (Some(begun), Some(entry)) = (begun, ledger.entries.get(id)) else { return };
        let error = entry.arrivals.last().and_then(|arrival| arrival.error);
        let answer = error.map_or(entry.ask.answer, |error| error.answer);
        let (took, wanted) = (world.now.saturating_sub(entry.at), ends_with_trailers(&entry.ask, answer));
        response::complete(id, begun, &body, ledger);
        if begun.is_own && got_trailers != wanted {
            ledger.violation(Invariant::Bytes, format!("#{id} got trailers: {got_trailers}, not {wanted}"));
        }
        if is_prompt && stall == Stall::No && took > Duration::from_secs(1) {
            ledger.violation(Invariant::Neighbours, format!("#{id} took {took:?} behind a stalled stream"));
        }
    }

    /// Handles a stream that the gateway has reset.
    fn is_reset(&mut self, no: StreamNo, code: ErrorCode, ledger: &mut Ledger) {
        let link = self.peer.link;
        for stream in self.streams.extract_if(.., |stream| stream.no == no) {
            self.connection.release(stream.no);
            ledger.note(|| format!("client {link} sees #{} reset: {}", stream.id, code.name()));
            match (stream.has_ended, code) {
                (true, _) => {}
                (false, ErrorCode::REFUSED_STREAM) => {
                    is_unprocessed(&stream, Unprocessed::Refused, &mut self.asks, ledger);
                }
                (false, _) => ledger.outcome(stream.id, Outcome::Lost),
            }
        }
    }

    fn gateway_goes_away(&mut self, last: u32, code: ErrorCode, ledger: &mut Ledger) {
        ledger.note(|| format!("client {} gets GOAWAY({last}): {}", self.peer.link, code.name()));
        self.is_closing = true;
        let is_accepted = |stream: &&Stream| stream.no.get() <= last && !stream.has_ended;
        let mut wrong = Vec::new();
        self.wire.goes_away(last, code, self.streams.iter().any(|stream| is_accepted(&stream)), &mut wrong);
        for (invariant, what) in wrong {
            ledger.violation(invariant, format!("client {}: {what}", self.peer.link));
        }
        if last == ANY_STREAM {
            return;
        }
        for stream in self.streams.iter().filter(is_accepted) {
            if let Some(entry) = ledger.entries.get_mut(stream.id) {
                entry.is_accepted = true;
            }
        }
        for stream in self.streams.extract_if(.., |stream| stream.no.get() > last) {
            self.connection.release(stream.no);
            is_unprocessed(&stream, Unprocessed::GoAway, &mut self.asks, ledger);
        }
    }
}

/// Handles a request that the gateway has not processed: it may be sent again on another connection.
fn is_unprocessed(stream: &Stream, why: Unprocessed, asks: &mut VecDeque<Ask>, ledger: &mut Ledger) {
    ledger.outcome(stream.id, Outcome::Forgone);
    if let Some(entry) = ledger.entries.get_mut(stream.id) {
        entry.unprocessed = Some(why);
        asks.push_back(entry.ask.clone());
    }
}
