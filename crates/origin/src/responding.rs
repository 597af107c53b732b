//! A connection's responses: immediate, delayed or streamed.

use crate::connection::{Connection, State, Step, Streaming};
use crate::content::{BYTES, Content, TEXT};
use crate::context::Context;
use crate::echo::Echo;
use crate::pattern;
use crate::response::{Status, Terms};
use crate::route::Route;
use std::time::Instant;
use weir_http1::{BodyDecoder, Framing, Version, chunk, last_chunk};
use weir_transport::Fault;

/// Bodies up to this size are sent with their head in one write.
const COPIED: usize = 16 * 1024;

impl Connection {
    /// Responds after the route's delay to a complete request, or to a head whose body `echo` decodes.
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
            self.respond(route, terms, echo, context);
        } else {
            self.state = State::Delay { until: Instant::now() + route.delay, route, terms, echo };
        }
    }

    pub(crate) fn respond(
        &mut self,
        route: Route,
        mut terms: Terms,
        echo: Option<(BodyDecoder, Framing)>,
        context: &mut Context,
    ) {
        if let Some((decoder, framing)) = echo {
            self.state = State::Echo(Echo::new(decoder, framing, terms));
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
        self.responded(terms.close, context);
    }

    fn begin_stream(&mut self, total: u64, chunked: bool, mut terms: Terms, context: &mut Context) {
        let framing = terms.framing(total, chunked);
        terms.head(Status::Ok, BYTES, framing, context.date.at(context.now), &mut context.out);
        if terms.head_only {
            self.responded(terms.close, context);
        } else if total <= COPIED as u64 && framing != Framing::Chunked {
            context.out.extend_from_slice(pattern::from(0, total));
            context.count().bytes_sent.add(total);
            self.responded(terms.close, context);
        } else {
            let chunked = framing == Framing::Chunked;
            self.state = State::Stream(Streaming { at: 0, total, chunked, close: terms.close });
        }
    }

    /// Sends the next piece of a stream.
    pub(crate) fn stream(
        &mut self,
        mut body: Streaming,
        share: &mut usize,
        context: &mut Context,
    ) -> Result<Step, Fault> {
        if *share == 0 {
            return Ok(Step::Blocked);
        }
        let piece = pattern::from(body.at, body.total - body.at);
        body.at += piece.len() as u64;
        let done = body.at == body.total;
        *share = share.saturating_sub(piece.len());
        context.count().bytes_sent.add(piece.len() as u64);
        if body.chunked {
            chunk(piece, &mut context.out);
            if done {
                last_chunk(&mut context.out);
            }
        } else {
            self.flush(context)?;
            self.transport.send(piece, &mut context.wire)?;
        }
        match done {
            true => self.responded(body.close, context),
            false => self.state = State::Stream(body),
        }
        Ok(Step::Consumed(0))
    }

    /// Handles the result of [`Echo::forward`].
    pub(crate) fn echoed(&mut self, done: bool, consumed: usize, close: bool, context: &mut Context) -> Step {
        if done {
            context.count().requests.add(1);
            self.responded(close, context);
        }
        match consumed {
            0 if !done => Step::Blocked,
            _ => Step::Consumed(consumed),
        }
    }

    /// The response is complete.
    fn responded(&mut self, close: bool, context: &mut Context) {
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
