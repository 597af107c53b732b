//! A connection's responses: immediate, delayed or streamed.

use super::Http2;
use super::call::{Failure, write_end};
use super::stream::{Body, Input, Place, Request, Sent, State, Stream};
use crate::content::{BYTES, Content, GRPC};
use crate::context::Context;
use crate::response::Status;
use std::time::Instant;
use weir_http1::decimal;
use weir_http2::{Part, StreamNo};

impl Http2 {
    /// Responds after the route's delay to a complete request, or to a head whose body is echoed.
    pub(super) fn requested(&mut self, no: StreamNo, request: Request, input: Input, context: &mut Context) {
        if request.route.delay.is_zero() {
            return self.respond(no, request, input, context);
        }
        let until = Instant::now() + request.route.delay;
        self.delays.add(until, no);
        self.streams.insert(Stream { no, state: State::Delay { until, request, input } });
    }

    /// A delay is over.
    pub(super) fn resume(&mut self, no: StreamNo, context: &mut Context) {
        if let Some(Stream { state: State::Delay { request, input, .. }, .. }) = self.streams.remove(no) {
            self.respond(no, request, input, context);
        }
    }

    /// Sends the head, and the first frame of the body.
    fn respond(&mut self, no: StreamNo, request: Request, input: Input, context: &mut Context) {
        let (status, kind, length, mut body) = match input {
            Input::Echo(echo) if echo.is_grpc() => (Status::Ok, GRPC, None, Body::Echo(echo)),
            Input::Echo(echo) => (Status::Ok, BYTES, request.length, Body::Echo(echo)),
            Input::Call(call) => match call.reply() {
                Ok(reply) => (Status::Ok, GRPC, None, Body::Reply(reply)),
                Err(failure) => return self.fail(no, failure, context),
            },
            Input::Discarded => match Content::of(request.route.resource, &context.counters) {
                Content::Pattern(total) => (Status::Ok, BYTES, Some(total), Body::Pattern { at: 0, total }),
                Content::Short { status, kind, body } => {
                    (status, kind, Some(body.len() as u64), Body::Short { text: body, at: 0 })
                }
            },
        };
        let is_whole = request.head_only || (length == Some(0) && !matches!(body, Body::Echo(_)));
        let length = length.filter(|_| !request.route.chunked || matches!(body, Body::Echo(_)));
        if !self.head(no, (status, kind, length), is_whole, context) {
            return self.lost(no, context);
        }
        if is_whole {
            return self.responded(no, context);
        }
        let place = match body.send(no, &mut self.protocol, context) {
            Ok(Sent::All) => return self.responded(no, context),
            Ok(Sent::Part) => {
                self.ring.push_back(no);
                Place::Ring
            }
            Ok(Sent::Waiting) => Place::Waiting,
            Err(_) => return self.lost(no, context),
        };
        self.streams.insert(Stream { no, state: State::Response { body, place } });
    }

    /// Returns whether the stream takes the head.
    fn head(
        &mut self,
        no: StreamNo,
        (status, kind, length): (Status, &str, Option<u64>),
        end: bool,
        context: &mut Context,
    ) -> bool {
        let Context { date, now, digits, out, .. } = context;
        let date = date.at(*now);
        digits.clear();
        length.iter().for_each(|length| decimal(*length, digits));
        let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
            to.status(status.number());
            to.field(b"server", b"weir-origin");
            to.field(b"date", date);
            to.field(b"content-type", kind.as_bytes());
            if length.is_some() {
                to.field(b"content-length", digits);
            }
        };
        self.protocol.head(no, Part::Head { end }, write, out).is_ok()
    }

    /// Ends a call with a response that is only a head.
    fn fail(&mut self, no: StreamNo, failure: Failure, context: &mut Context) {
        let Context { date, now, out, .. } = context;
        let date = date.at(*now);
        let end = Err(failure);
        let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
            to.status(Status::Ok.number());
            to.field(b"server", b"weir-origin");
            to.field(b"date", date);
            to.field(b"content-type", GRPC.as_bytes());
            write_end(&end, to);
        };
        match self.protocol.head(no, Part::Head { end: true }, write, out) {
            Ok(()) => self.responded(no, context),
            Err(_) => self.lost(no, context),
        }
    }

    /// Sends the next frame of a stream from the ring.
    pub(super) fn send(&mut self, no: StreamNo, context: &mut Context) {
        let Some(stream) = self.streams.get(no) else { return };
        let State::Response { body, place } = &mut stream.state else { return };
        *place = Place::Waiting;
        match body.send(no, &mut self.protocol, context) {
            Ok(Sent::All) => self.responded(no, context),
            Ok(Sent::Part) => {
                *place = Place::Ring;
                self.ring.push_back(no);
            }
            Ok(Sent::Waiting) => {}
            Err(_) => self.lost(no, context),
        }
    }

    /// The response is complete.
    pub(super) fn responded(&mut self, no: StreamNo, context: &Context) {
        context.count().answers.add(1);
        self.streams.remove(no);
        self.protocol.release(no);
    }

    /// The stream closed before its response was complete, and no event reported it.
    pub(super) fn lost(&mut self, no: StreamNo, context: &Context) {
        context.count().failed.add(1);
        self.abandon(no);
    }

    /// Drops a stream without a complete response.
    pub(super) fn abandon(&mut self, no: StreamNo) {
        if let Some(mut stream) = self.streams.remove(no) {
            if let State::Delay { until, .. } = stream.state {
                self.delays.remove(until, no);
            }
            let held = stream.echo().map_or(0, |echo| echo.held());
            self.protocol.credit(no, held);
        }
        self.protocol.release(no);
    }
}
