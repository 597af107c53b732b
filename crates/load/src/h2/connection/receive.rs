//! The receiving side: responses, and control frames of streams and of the connection.

use super::{Connection, Phase};
use crate::check::{Detail, ErrorClass, Wrong};
use crate::connection::Context;
use crate::h2::stream::Done;
use crate::h2::{Http2, trial};
use crate::setup::count_tickets;
use std::time::Instant;
use weir_http2::{ErrorCode, Event, StreamNo};
use weir_transport::End;

impl Connection {
    /// Handles readiness. Reads the clock once, after the read. Pushes the requests that ended.
    pub(in crate::h2) fn event(
        &mut self,
        readable: bool,
        writable: bool,
        context: &mut Context<'_, Http2>,
        done: &mut Vec<Done>,
    ) -> Result<Option<End>, Wrong> {
        if writable {
            self.setup.advance(&mut self.transport, context)?;
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
        self.setup.handshake_done(facts, context);
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
                    Phase::Opening => Wrong::no_http(&input[at..], &trial::not_http2(&input[at..], error)),
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
                    let Context { head, now, recorder, .. } = context;
                    self.streams[at].head(head, *end, request, *now, recorder);
                }
                if *end {
                    self.complete(*stream, context, done);
                }
            }
            Event::Data { stream, range, flow, end } => {
                if let Some(at) = self.position(*stream) {
                    self.streams[at].body(&input[range.clone()], &mut context.recorder);
                }
                self.http.credit(*stream, *flow);
                if *end {
                    self.complete(*stream, context, done);
                }
            }
            Event::Trailers { stream } => {
                if let Some(at) = self.position(*stream) {
                    self.streams[at].trailers(&context.head, &mut context.recorder);
                }
                self.complete(*stream, context, done);
            }
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
            Event::Pong | Event::Pause | Event::Rejected { .. } => {}
        }
    }

    fn complete(&mut self, no: StreamNo, context: &mut Context<'_, Http2>, done: &mut Vec<Done>) {
        let Some(stream) = self.release(no) else { return };
        self.answered += 1;
        if self.answered == 1 {
            count_tickets(&self.transport, context);
        }
        let request = context.mix.nth(stream.place);
        context.recorder.h2().counts.responses += 1;
        done.push(Done::Answered(stream.complete(request, &mut context.recorder, context.now)));
    }
}

fn reset(code: ErrorCode) -> Wrong {
    let text = match code.name() {
        "unknown" => format!("the server reset the stream with code {:#x}", code.0),
        name => format!("the server reset the stream with {name}"),
    };
    Wrong { class: ErrorClass::StreamReset, detail: Detail::Text(text) }
}
