//! One request and its response.

use super::echo::Echo;
use crate::context::Context;
use crate::pattern;
use crate::route::{Resource, Route};
use std::borrow::Cow;
use std::time::Instant;
use weir_http::Method;
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
            State::Delay { echo, .. } => echo.as_mut(),
            State::Response { body: Body::Echo(echo), .. } => Some(echo),
            State::Body(_) | State::Response { .. } => None,
        }
    }
}

pub(super) enum State {
    /// Discarding the request's body, before the response.
    Body(Request),
    /// The response is delayed, and so is a body to echo.
    Delay { until: Instant, request: Request, echo: Option<Echo> },
    /// Sending the response's body.
    Response { body: Body, place: Place },
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
    method: Method,
    /// The request was HEAD: only the head is sent (RFC 9110 section 9.3.2).
    pub(super) head_only: bool,
    /// The length of the request's body, if announced.
    pub(super) length: Option<u64>,
}

impl Request {
    pub(super) fn of(head: &Head) -> Self {
        Self {
            route: Route::of(head.method, head.path.of(&head.bytes)),
            method: head.method,
            head_only: head.method == Method::Head,
            length: head.content_length,
        }
    }

    /// The body to echo, if the route echoes; `end`: the request has no body.
    pub(super) fn echo(&self, end: bool) -> Option<Echo> {
        let mut echo = match self.route.resource {
            Resource::Echo if !self.head_only && !end => Echo::default(),
            Resource::Grpc if self.method == Method::Post => Echo::grpc(),
            _ => return None,
        };
        echo.take(&[], end);
        Some(echo)
    }
}

/// The rest of a response's body.
pub(super) enum Body {
    /// Bytes `at..total` of the pattern.
    Pattern { at: u64, total: u64 },
    /// A short text from `at` on.
    Short { text: Cow<'static, str>, at: usize },
    /// The request's body.
    Echo(Echo),
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
            Self::Pattern { .. } | Self::Short { .. } => true,
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
            Self::Echo(_) => {}
        }
        Ok(sent)
    }
}
