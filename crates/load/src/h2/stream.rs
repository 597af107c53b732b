//! A request in flight, and the check of its response.

use super::call::Call;
use super::pending::Pending;
use super::request::Request;
use super::waits::Waits;
use crate::check::{ErrorClass, Wrong};
use crate::record::recorder::{Course, Recorder};
use aws_lc_rs::digest;
use std::time::Instant;
use weir_http::Method;
use weir_http2::{Head, StreamNo};

/// A request with a stream.
pub(super) struct Stream {
    pub(super) no: StreamNo,
    pub(super) asked: Pending,
    /// Its position in the mix.
    pub(super) place: u64,
    /// When its head was written.
    pub(super) written: Instant,
    first: Option<Instant>,
    /// Bytes of the body given to the connection.
    pub(super) given: usize,
    pub(super) waits: Waits,
    status: u16,
    content: Content,
}

/// The received part of a response's content.
enum Content {
    Body { received: u64, digest: Option<digest::Context> },
    Messages(Call),
}

/// The end of a request.
pub(super) enum Done {
    /// The response is complete, correct or not, or the request failed.
    Answered(Option<Wrong>),
    /// The server did not process the request, which may be sent again on any connection (RFC 9113, section 8.7).
    Refused(Pending),
}

impl Stream {
    pub(super) fn new(no: StreamNo, asked: Pending, place: u64, request: &Request, written: Instant) -> Self {
        let content = match request.call {
            None => Content::Body { received: 0, digest: None },
            Some(_) => Content::Messages(Call::default()),
        };
        Self { no, asked, place, written, first: None, given: 0, waits: Waits::default(), status: 0, content }
    }

    /// The request, to be sent again.
    pub(super) fn pending(&self) -> Pending {
        Pending { place: Some(self.place), ..self.asked }
    }

    /// A head, interim or final; `end`: it ends the response.
    pub(super) fn head(
        &mut self,
        head: &Head,
        end: bool,
        request: &Request,
        now: Instant,
        recorder: &mut Recorder,
    ) {
        self.first.get_or_insert(now);
        if head.status >= 200 {
            self.status = head.status;
            match &mut self.content {
                Content::Body { digest, .. } => *digest = request.expect.digest(),
                Content::Messages(call) => call.head(head, end, &mut recorder.h2().counts),
            }
        }
    }

    /// Bytes of the body.
    pub(super) fn body(&mut self, bytes: &[u8], recorder: &mut Recorder) {
        match &mut self.content {
            Content::Body { received, digest } => {
                *received += bytes.len() as u64;
                if let Some(digest) = digest {
                    digest.update(bytes);
                }
            }
            Content::Messages(call) => call.body(bytes, &mut recorder.h2().counts),
        }
    }

    /// The trailers, which end the response.
    pub(super) fn trailers(&mut self, head: &Head, recorder: &mut Recorder) {
        if let Content::Messages(call) = &mut self.content {
            call.trailers(head, &mut recorder.h2().counts);
        }
    }

    /// Checks and records the complete response.
    pub(super) fn complete(self, request: &Request, recorder: &mut Recorder, now: Instant) -> Option<Wrong> {
        let (planned, written, first) = (self.asked.planned, self.written, self.first);
        let wrong = self.check(request);
        if wrong.is_none() {
            recorder.answer(Course { planned, written, first, end: now });
        }
        wrong
    }

    fn check(self, request: &Request) -> Option<Wrong> {
        if !request.expect.status_is_right(self.status) {
            return Some(Wrong::number(ErrorClass::Status, "status", u64::from(self.status)));
        }
        match self.content {
            Content::Messages(call) => call.check(request.call.map_or(0, |call| call.expected)),
            Content::Body { .. } if request.method == Method::Head => None,
            Content::Body { received, .. } if !request.expect.length_is_right(received) => {
                Some(Wrong::number(ErrorClass::Length, "unexpected body length:", received))
            }
            Content::Body { digest, .. } => match request.expect.digest_is_right(digest) {
                true => None,
                false => Some(Wrong::fixed(ErrorClass::Digest, "unexpected body SHA-256")),
            },
        }
    }

    /// Gives up waiting for the response: its times are censored at `now`.
    pub(super) fn give_up(&self, recorder: &mut Recorder, now: Instant) {
        recorder.given_up(self.asked.planned, Some(self.written), now);
        if self.first.is_none() {
            recorder.first_byte_given_up(self.asked.planned, self.written, now);
        }
    }
}
