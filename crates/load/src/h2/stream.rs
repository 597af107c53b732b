//! A request in flight, and the check of its response.

use super::pending::Pending;
use super::request::Request;
use crate::check::{ErrorClass, Wrong};
use crate::record::recorder::{Course, Recorder};
use aws_lc_rs::digest;
use std::time::Instant;
use weir_http::Method;
use weir_http2::StreamNo;

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
    status: u16,
    received: u64,
    digest: Option<digest::Context>,
}

/// The end of a request.
pub(super) enum Done {
    /// The response is complete, correct or not, or the request failed.
    Answered(Option<Wrong>),
    /// The server did not process the request, which may be sent again on any connection (RFC 9113, section 8.7).
    Refused(Pending),
}

impl Stream {
    pub(super) fn new(no: StreamNo, asked: Pending, place: u64, written: Instant) -> Self {
        Self { no, asked, place, written, first: None, given: 0, status: 0, received: 0, digest: None }
    }

    /// The request, to be sent again.
    pub(super) fn pending(&self) -> Pending {
        Pending { place: Some(self.place), ..self.asked }
    }

    /// A head, interim or final.
    pub(super) fn head(&mut self, status: u16, request: &Request, now: Instant) {
        self.first.get_or_insert(now);
        if status >= 200 {
            self.status = status;
            self.digest = request.expect.digest();
        }
    }

    /// Bytes of the body.
    pub(super) fn body(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
    }

    /// Checks and records the complete response.
    pub(super) fn complete(self, request: &Request, recorder: &mut Recorder, now: Instant) -> Option<Wrong> {
        let bodiless = request.method == Method::Head;
        if !request.expect.status_is_right(self.status) {
            Some(Wrong::number(ErrorClass::Status, "status", u64::from(self.status)))
        } else if !bodiless && !request.expect.length_is_right(self.received) {
            Some(Wrong::number(ErrorClass::Length, "unexpected body length:", self.received))
        } else if !bodiless && !request.expect.digest_is_right(self.digest) {
            Some(Wrong::fixed(ErrorClass::Digest, "unexpected body SHA-256"))
        } else {
            let (planned, written) = (self.asked.planned, self.written);
            recorder.answer(Course { planned, written, first: self.first, end: now });
            None
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
