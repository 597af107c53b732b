//! A connection's events.

use super::Http2;
use super::stream::{Body, Input, Place, Request, Sent, State, Stream};
use crate::context::Context;
use crate::route::Resource;
use std::collections::VecDeque;
use weir_http2::{Event, Part, StreamNo};

impl Http2 {
    /// Handles an event; the event's range is in `input`.
    pub(super) fn handle(&mut self, event: Event, input: &[u8], context: &mut Context) {
        match event {
            Event::Head { stream, end } => self.begin(stream, end, context),
            Event::Data { stream, range, flow, end } => {
                let data = &input[range];
                // Padding is consumed at once.
                self.protocol.credit(stream, flow - data.len() as u32);
                self.body(stream, data, end, context);
            }
            Event::Trailers { stream } => {
                if let Some(echo) = self.streams.get(stream).and_then(Stream::echo) {
                    echo.take_trailers(&context.h2_head);
                }
                self.body(stream, &[], true, context);
            }
            Event::Reset { stream, .. } => {
                context.count().reset.add(1);
                self.abandon(stream);
            }
            Event::Failed { stream, .. } => {
                context.count().refused.add(1);
                self.abandon(stream);
            }
            Event::Rejected { .. } => context.count().refused.add(1),
            Event::Room { stream: Some(stream) } => self.has_room(stream),
            Event::Room { stream: None } | Event::Settings => self.all_have_room(),
            Event::GoAway { .. } | Event::Pong | Event::Pause => {}
        }
    }

    fn begin(&mut self, no: StreamNo, end: bool, context: &mut Context) {
        let mut request = Request::of(&context.h2_head);
        let input = request.input(end);
        if end {
            received(context, true);
            request.length = Some(0);
            return self.requested(no, request, input, context);
        }
        if context.h2_head.expect_continue {
            // The stream is new: it takes an interim response.
            let _ = self.protocol.head(no, Part::Interim, |to| to.status(100), &mut context.out);
        }
        // DATA after CONNECT would belong to the tunnel.
        if matches!(input, Input::Echo(_)) || request.route.resource == Resource::Tunnel {
            return self.requested(no, request, input, context);
        }
        self.streams.insert(Stream { no, state: State::Body { request, input } });
    }

    /// A piece of a request's body, and whether it ends the request.
    fn body(&mut self, no: StreamNo, data: &[u8], end: bool, context: &mut Context) {
        context.count().bytes_received.add(data.len() as u64);
        let Some(stream) = self.streams.get(no) else {
            self.protocol.credit(no, data.len() as u32);
            return;
        };
        received(context, end);
        match &mut stream.state {
            State::Delay { input: Input::Echo(echo), .. } => echo.take(data, end),
            State::Response { body: Body::Echo(echo), .. } => {
                match echo.forward(data, end, no, &mut self.protocol, context) {
                    Ok(Sent::All) => self.responded(no, context),
                    // Bytes that wait behind others are in the ring already, or wait for a window.
                    Ok(Sent::Part | Sent::Waiting) => {}
                    Err(_) => self.lost(no, context),
                }
            }
            State::Body { input, .. } => {
                if let Input::Call(call) = input {
                    call.take(data);
                }
                self.protocol.credit(no, data.len() as u32);
                if end
                    && let Some(Stream { state: State::Body { request, input }, .. }) =
                        self.streams.remove(no)
                {
                    self.requested(no, request, input, context);
                }
            }
            State::Delay { .. } | State::Response { .. } => self.protocol.credit(no, data.len() as u32),
        }
    }

    fn has_room(&mut self, no: StreamNo) {
        if let Some(stream) = self.streams.get(no) {
            queue(stream, &mut self.ring);
        }
    }

    fn all_have_room(&mut self) {
        self.streams.iter_mut().for_each(|stream| queue(stream, &mut self.ring));
    }
}

/// Counts a request if this is its end.
fn received(context: &mut Context, end: bool) {
    context.count().requests.add(u64::from(end));
    context.count().requests_http2.add(u64::from(end));
}

/// Adds a stream to the ring, if it waits and has bytes to send.
fn queue(stream: &mut Stream, ring: &mut VecDeque<StreamNo>) {
    if let State::Response { body, place } = &mut stream.state
        && *place == Place::Waiting
        && body.has_frame()
    {
        *place = Place::Ring;
        ring.push_back(stream.no);
    }
}
