//! One request and its response.

use super::call::{Call, Reply};
use super::echo::Echo;
use crate::context::Context;
use crate::pattern;
use crate::route::{GrpcMethod, Resource, Route};
use std::borrow::Cow;
use std::time::Instant;
use weir_http::Method;
use weir_http2::grpc;
use weir_http2::{Closed, DATA_BYTES, Head, StreamNo};

/// A stream with a request in progress.
pub(super) struct Stream {
    pub(super) no: StreamNo,
    pub(super) state: State,
}

impl Stream {
    /// The request's body, if it becomes the response's.
    pub(super) fn echo(&mut self) -> Option<&mut Echo> {
        match &mut self.state {
            State::Delay { input: Input::Echo(echo), .. } => Some(echo),
            State::Response { body: Body::Echo(echo), .. } => Some(echo),
            State::Body { .. } | State::Delay { .. } | State::Response { .. } => None,
        }
    }
}

pub(super) enum State {
    /// Receiving the request's body, before the response.
    Body { request: Request, input: Input },
    /// The response is delayed, and so is a body to echo.
    Delay { until: Instant, request: Request, input: Input },
    /// Sending the response's body.
    Response { body: Body, place: Place },
}

/// The use of a request's body.
pub(super) enum Input {
    Discarded,
    /// It becomes the response's.
    Echo(Echo),
    /// It determines the response.
    Call(Call),
}

/// The place of a response between its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the ring.
    Ring,
    /// Waiting for a window, or for bytes to echo.
    Waiting,
}

/// The terms of a response.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) route: Route,
    /// Whether the request is a gRPC call, for a resource that takes them.
    is_call: bool,
    /// The request was HEAD: only the head is sent (RFC 9110 section 9.3.2).
    pub(super) head_only: bool,
    /// The length of the request's body, if announced.
    pub(super) length: Option<u64>,
}

impl Request {
    pub(super) fn of(head: &Head) -> Self {
        let route = Route::of(head.method, head.path.of(&head.bytes));
        Self {
            route,
            is_call: is_call(route.resource, head),
            head_only: head.method == Method::Head,
            length: head.content_length,
        }
    }

    /// The use of the body; `end`: the request has none.
    pub(super) fn input(&self, end: bool) -> Input {
        let mut echo = match self.route.resource {
            Resource::Echo if !self.head_only && !end => Echo::default(),
            Resource::Grpc(method) if self.is_call => match method {
                GrpcMethod::Unary => Echo::grpc(true),
                GrpcMethod::Bidi => Echo::grpc(false),
                GrpcMethod::Server(_) | GrpcMethod::Client | GrpcMethod::Unknown => {
                    return Input::Call(Call::new(method));
                }
            },
            Resource::Unknown if self.is_call => return Input::Call(Call::new(GrpcMethod::Unknown)),
            _ => return Input::Discarded,
        };
        echo.take(&[], end);
        Input::Echo(echo)
    }
}

/// Whether a request is a gRPC call. Other resources treat all requests alike.
fn is_call(resource: Resource, head: &Head) -> bool {
    let content_type = || grpc::value(&head.fields, &head.bytes, b"content-type");
    matches!(resource, Resource::Grpc(_) | Resource::Unknown)
        && head.method == Method::Post
        && content_type().is_some_and(grpc::is_content_type)
}

/// The rest of a response's body.
pub(super) enum Body {
    /// Bytes `at..total` of the pattern.
    Pattern { at: u64, total: u64 },
    /// A short text from `at` on.
    Short { text: Cow<'static, str>, at: usize },
    /// The request's body.
    Echo(Echo),
    /// The messages of a call.
    Reply(Reply),
}

/// The result of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The body is complete.
    All,
    /// More can follow at once.
    Part,
    /// A window is used up, or no bytes to echo are left: an event follows.
    Waiting,
}

impl Body {
    /// Whether there is a frame to send, as far as the stream is concerned.
    pub(super) fn has_frame(&self) -> bool {
        match self {
            Self::Pattern { .. } | Self::Short { .. } | Self::Reply(_) => true,
            Self::Echo(echo) => echo.has_frame(),
        }
    }

    /// Sends at most one DATA frame.
    pub(super) fn send(
        &mut self,
        no: StreamNo,
        protocol: &mut weir_http2::Connection,
        context: &mut Context,
    ) -> Result<Sent, Closed> {
        let (piece, ends) = match self {
            Self::Pattern { at, total } => {
                let left = *total - *at;
                (pattern::from(*at, left.min(DATA_BYTES as u64)), left <= DATA_BYTES as u64)
            }
            Self::Short { text, at } => {
                let left = &text.as_bytes()[*at..];
                (&left[..left.len().min(DATA_BYTES)], left.len() <= DATA_BYTES)
            }
            Self::Echo(echo) => return echo.send(no, protocol, context),
            Self::Reply(reply) => return reply.send(no, protocol, context),
        };
        let taken = protocol.data(no, piece, ends, &mut context.out)?;
        let sent = match taken == piece.len() {
            true if ends => Sent::All,
            true => Sent::Part,
            false => Sent::Waiting,
        };
        context.count().bytes_sent.add(taken as u64);
        match self {
            Self::Pattern { at, .. } => *at += taken as u64,
            Self::Short { at, .. } => *at += taken,
            Self::Echo(_) | Self::Reply(_) => {}
        }
        Ok(sent)
    }
}
