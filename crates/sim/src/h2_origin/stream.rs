//! One stream of an origin: a request from the gateway, and its response.

use super::behaviour::Fault;
use crate::ledger::Ledger;
use crate::message::{ANSWER, ATTEMPT, Answer, Failure, TRAILER, error};
use crate::request::Begun;
use crate::switch::{Order, Switch};
use std::time::Duration;
use weir_http::Method;
use weir_http2::StreamNo;
use weir_http2::hpack::Encoder;

/// A request, and its response so far.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) no: StreamNo,
    /// The ID of the request.
    pub(super) id: usize,
    /// The number of earlier arrivals of this request: 0 for the first attempt.
    pub(super) attempt: usize,
    pub(super) method: Method,
    /// The length of the request's body, and the received bytes.
    pub(super) length: usize,
    pub(super) got: Vec<u8>,
    /// The request is complete.
    pub(super) is_whole: bool,
    /// Received bytes without credit.
    pub(super) owed: u32,
    pub(super) answer: Answer,
    /// The error to send instead of `answer`.
    pub(super) error: Option<Failure>,
    pub(super) fault: Option<Fault>,
    /// The requested switch of protocols.
    pub(super) switch: Option<Switch>,
    /// The response does not wait for the whole request.
    pub(super) is_early: bool,
    /// A response without a length ends with a trailer.
    pub(super) has_trailers: bool,
    pub(super) phase: Phase,
    /// The response's body, and the number of bytes sent.
    pub(super) body: Vec<u8>,
    pub(super) sent: usize,
    /// Frames of the body to pad.
    pub(super) paddings: u32,
}

/// The state of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The head is due at this instant, once the request is complete or if the response is early.
    Due(Duration),
    Body,
    Ended,
    /// The origin sends no further frame on the stream.
    Silent,
    /// The stream was reset.
    Gone,
}

impl Stream {
    /// The stream of a request whose head has arrived.
    pub(super) fn new(no: StreamNo, method: Method, begun: Begun, attempt: usize) -> Self {
        Self {
            no,
            id: begun.id,
            attempt,
            method,
            length: begun.length,
            got: Vec::new(),
            is_whole: false,
            owed: 0,
            answer: begun.answer,
            error: None,
            fault: None,
            switch: begun.switch,
            is_early: false,
            has_trailers: false,
            phase: Phase::Due(Duration::ZERO),
            body: Vec::new(),
            sent: 0,
            paddings: 0,
        }
    }

    /// Whether the response's head can be sent now.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        matches!(self.phase, Phase::Due(at) if at <= now) && (self.is_whole || self.is_early)
    }

    /// The instant at which the response's head is due; `None` once the origin has sent it or has failed instead.
    pub(super) fn wakes(&self) -> Option<Duration> {
        match self.phase {
            Phase::Due(at) => Some(at),
            Phase::Body | Phase::Ended | Phase::Silent | Phase::Gone => None,
        }
    }

    /// Whether the stream has ended in both directions.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Gone || (self.is_whole && self.phase == Phase::Ended)
    }

    /// The tunnel that the response opens.
    pub(super) fn tunnel(&self) -> Option<Switch> {
        self.switch.filter(|_| self.answer == Answer::Switch)
    }

    /// Whether bytes of the body can be sent now. Some tunnels wait until the client has ended its direction.
    pub(super) fn may_send(&self) -> bool {
        self.phase == Phase::Body
            && (self.is_whole || self.tunnel().is_none_or(|tunnel| tunnel.order != Order::Replies))
    }

    /// Whether the response may end after the last byte of its body. Some tunnels first wait for the client's end.
    pub(super) fn may_end(&self) -> bool {
        self.is_whole || self.tunnel().is_none_or(|tunnel| tunnel.order == Order::AtOnce)
    }

    /// The response's status.
    pub(super) fn status(&self) -> u16 {
        match (self.error, self.tunnel()) {
            (Some(error), _) => error.status,
            (None, Some(_)) => 200,
            (None, None) => self.answer.status(),
        }
    }

    /// The response's body, from the beginning.
    pub(super) fn whole_body(&self) -> Vec<u8> {
        let id = match self.error {
            Some(_) => error(self.id, self.attempt),
            None => self.id ^ ANSWER,
        };
        self.answer.body(self.method, self.switch, self.id, id)
    }

    /// Whether the head ends the response.
    pub(super) fn is_bodiless(&self) -> bool {
        self.method == Method::Head || matches!(self.answer, Answer::NoContent | Answer::NotModified)
    }

    /// Whether trailers end the response.
    pub(super) fn ends_with_trailers(&self) -> bool {
        self.has_trailers && self.method != Method::Head && matches!(self.answer, Answer::Chunked(_))
    }

    /// Writes the response's head; `numbered` adds the number of the attempt.
    pub(super) fn write_head(&self, numbered: bool, to: &mut Encoder<'_>) {
        if self.fault == Some(Fault::BadHead) {
            return to.field(b"x y", b"");
        }
        to.status(self.status());
        let mut field = |name: &str, value: String| to.field(name.as_bytes(), value.as_bytes());
        field("X-Id", self.id.to_string());
        if numbered {
            field(ATTEMPT, self.attempt.to_string());
        }
        if let Answer::Length(length) | Answer::Forbidden(length) = self.answer {
            field("Content-Length", length.to_string());
        }
    }

    /// Writes the response's trailers.
    pub(super) fn write_trailers(&self, to: &mut Encoder<'_>) {
        to.field(TRAILER.as_bytes(), self.id.to_string().as_bytes());
    }

    /// Records that the response has begun, and that its first frame ends before this offset in the origin's cleartext.
    pub(super) fn note_begin(&self, offset: usize, ledger: &mut Ledger) {
        let Some(arrival) = ledger.arrival(self.id, self.attempt) else { return };
        if let Some(stream) = &mut arrival.stream {
            stream.answered_at.get_or_insert(offset);
        }
    }

    /// Records that the origin reports the request as not processed.
    pub(super) fn note_unprocessed(&self, ledger: &mut Ledger) {
        if let Some(arrival) = ledger.arrival(self.id, self.attempt)
            && let Some(stream) = &mut arrival.stream
        {
            stream.is_unprocessed = true;
        }
    }
}
