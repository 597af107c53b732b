//! A connection's responses: immediate, delayed or streamed.

use crate::answer::{Status, Terms};
use crate::connection::{Connection, State, Step};
use crate::content::{BYTES, Content, TEXT};
use crate::context::Context;
use crate::pattern;
use crate::route::Route;
use std::time::Instant;
use weir_http1::{BodyDecoder, Framing, Version, chunk, last_chunk};
use weir_transport::Fault;

/// Bodies up to this size are sent with their head in one write.
const COPIED: usize = 16 * 1024;

impl Connection {
    /// A request is complete, or its head is and its body is to be echoed.
    pub(crate) fn requested(
        &mut self,
        route: Route,
        terms: Terms,
        echo: Option<(BodyDecoder, Framing)>,
        context: &mut Context,
    ) {
        if echo.is_none() {
            context.count().requests.add(1);
        }
        if route.delay.is_zero() {
            self.answer(route, terms, echo, context);
        } else {
            self.state = State::Delay { until: Instant::now() + route.delay, route, terms, echo };
        }
    }

    pub(crate) fn answer(
        &mut self,
        route: Route,
        mut terms: Terms,
        echo: Option<(BodyDecoder, Framing)>,
        context: &mut Context,
    ) {
        if let Some((decoder, framing)) = echo {
            self.state = State::Echo { decoder, framing, terms, started: false };
            return;
        }
        let (status, kind, body) = match Content::of(route.resource, &context.counters) {
            Content::Pattern(total) => return self.begin_stream(total, route.chunked, terms, context),
            Content::Short { status, kind, body } => (status, kind, body),
        };
        let framing = terms.framing(body.len() as u64, route.chunked);
        terms.head(status, kind, framing, context.date.at(context.now), &mut context.out);
        if !terms.head_only {
            match framing {
                Framing::Chunked => {
                    chunk(body.as_bytes(), &mut context.out);
                    last_chunk(&mut context.out);
                }
                _ => context.out.extend_from_slice(body.as_bytes()),
            }
            context.count().bytes_sent.add(body.len() as u64);
        }
        self.answered(terms.close, context);
    }

    fn begin_stream(&mut self, total: u64, chunked: bool, mut terms: Terms, context: &mut Context) {
        let framing = terms.framing(total, chunked);
        terms.head(Status::Ok, BYTES, framing, context.date.at(context.now), &mut context.out);
        if terms.head_only {
            self.answered(terms.close, context);
        } else if total <= COPIED as u64 && framing != Framing::Chunked {
            context.out.extend_from_slice(pattern::from(0, total));
            context.count().bytes_sent.add(total);
            self.answered(terms.close, context);
        } else {
            let chunked = framing == Framing::Chunked;
            self.state = State::Stream { at: 0, total, chunked, close: terms.close };
        }
    }

    pub(crate) fn stream(&mut self, share: &mut usize, context: &mut Context) -> Result<Step, Fault> {
        let State::Stream { at, total, chunked, close } = &mut self.state else { return Ok(Step::Blocked) };
        if *share == 0 {
            return Ok(Step::Blocked);
        }
        let (chunked, close) = (*chunked, *close);
        let piece = pattern::from(*at, *total - *at);
        *at += piece.len() as u64;
        let done = *at == *total;
        *share = share.saturating_sub(piece.len());
        context.count().bytes_sent.add(piece.len() as u64);
        if chunked {
            chunk(piece, &mut context.out);
            if done {
                last_chunk(&mut context.out);
            }
        } else {
            self.flush(context)?;
            self.transport.send(piece, &mut context.wire)?;
        }
        if done {
            self.answered(close, context);
        }
        Ok(Step::Consumed(0))
    }

    pub(crate) fn echo(&mut self, input: &[u8], context: &mut Context) -> Result<Step, Fault> {
        let State::Echo { decoder, framing, terms, started } = &mut self.state else {
            return Ok(Step::Blocked);
        };
        let decoded = match decoder.decode(input) {
            Ok(decoded) => decoded,
            // Once the response has started, an error can only be signalled by aborting.
            Err(_) if *started => {
                context.count().refused.add(1);
                self.state = State::Closing { until: None };
                return Ok(Step::Blocked);
            }
            Err(error) => return Ok(self.refuse(error.status(), &error.to_string(), context)),
        };
        let done = decoder.is_complete();
        if decoded.consumed == 0 && !done {
            return Ok(Step::Blocked);
        }
        let answer = if *framing == Framing::None { Framing::Length(0) } else { *framing };
        if !*started {
            *started = true;
            terms.head(Status::Ok, BYTES, answer, context.date.at(context.now), &mut context.out);
        }
        let data = &input[decoded.data];
        if answer == Framing::Chunked {
            chunk(data, &mut context.out);
            if done {
                last_chunk(&mut context.out);
            }
        } else {
            context.out.extend_from_slice(data);
        }
        let close = terms.close;
        context.count().bytes_received.add(data.len() as u64);
        context.count().bytes_sent.add(data.len() as u64);
        if done {
            context.count().requests.add(1);
            self.answered(close, context);
        }
        Ok(Step::Consumed(decoded.consumed))
    }

    fn answered(&mut self, close: bool, context: &mut Context) {
        context.count().answers.add(1);
        self.state = if close || context.draining { State::Closing { until: None } } else { State::Head };
    }

    pub(crate) fn refuse(&mut self, status: u16, why: &str, context: &mut Context) -> Step {
        context.count().refused.add(1);
        let terms = Terms { version: Version::Http11, head_only: false, close: true };
        let date = context.date.at(context.now);
        terms.whole(Status::of_refusal(status), TEXT, format!("{why}\n").as_bytes(), date, &mut context.out);
        self.state = State::Closing { until: None };
        Step::Blocked
    }
}
