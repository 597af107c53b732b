//! One stream of a client: a request to the gateway, and its response.

use crate::message::{Answer, Ask, HOST, TRAILER, name, pattern};
use crate::response::Begun;
use crate::switch;
use std::time::Duration;
use weir_http::Method;
use weir_http2::hpack::Encoder;
use weir_http2::{Scheme, StreamNo};

/// A request, and its response so far.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) no: StreamNo,
    /// The ID of the request.
    pub(super) id: usize,
    pub(super) upload: Upload,
    /// The request's body, and the number of bytes sent.
    pub(super) body: Vec<u8>,
    pub(super) sent: usize,
    pub(super) has_trailers: bool,
    /// The head of the final response, once received.
    pub(super) begun: Option<Begun>,
    /// The bytes of the response's body.
    pub(super) got: Vec<u8>,
    pub(super) got_trailers: bool,
    /// The response is complete.
    pub(super) has_ended: bool,
    pub(super) stall: Stall,
    /// Received bytes without credit.
    pub(super) owed: u32,
    /// Frames of the body to pad.
    pub(super) paddings: u32,
    /// The client resets the stream after this many polls; `None`: never.
    pub(super) resets_after: Option<u64>,
}

/// The state of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upload {
    /// Waits for 100 (Continue) until this instant.
    Waiting(Duration),
    /// Waits for the response that opens its tunnel.
    Opening,
    Sending,
    Sent,
}

/// Whether the client gives credit for the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stall {
    No,
    /// No credit while the client has other open streams or unsent requests.
    WhileOthersAsk,
    Always,
}

impl Stream {
    /// The stream of a request whose head is in flight.
    pub(super) fn new(no: StreamNo, ask: &Ask) -> Self {
        let length = ask.body.map(|body| body.length).or(ask.switch.map(|switch| switch.up));
        let body = length.map(|length| pattern(ask.id, length)).unwrap_or_default();
        Self {
            no,
            id: ask.id,
            upload: if length.is_some() { Upload::Sending } else { Upload::Sent },
            body,
            sent: 0,
            has_trailers: ask.has_trailers && ask.body.is_some_and(|body| body.chunked),
            begun: None,
            got: Vec::new(),
            got_trailers: false,
            has_ended: false,
            stall: Stall::No,
            owed: 0,
            paddings: 0,
            resets_after: None,
        }
    }

    /// The instant when the client sends the body, even without 100 (Continue); `None` if the body waits for no
    /// instant.
    pub(super) fn wakes(&self) -> Option<Duration> {
        match self.upload {
            Upload::Waiting(until) => Some(until),
            Upload::Opening | Upload::Sending | Upload::Sent => None,
        }
    }

    /// Whether the stream has ended in both directions.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended && self.upload == Upload::Sent
    }
}

/// Writes a request's head; `length` is the value of `content-length`.
pub(super) fn write_head(
    ask: &Ask,
    length: Option<usize>,
    expects: bool,
    over_tls: bool,
    to: &mut Encoder<'_>,
) {
    let scheme = if over_tls { Scheme::Https } else { Scheme::Http };
    let path = format!("{}/{}", ask.below, ask.id);
    let method = if ask.switch.is_some() { "CONNECT" } else { name(ask.method) };
    to.request(method.as_bytes(), scheme, HOST.as_bytes(), path.as_bytes());
    if let Some(switch) = ask.switch {
        to.protocol(switch.protocol.as_bytes());
        to.field(switch::VERSION.as_bytes(), b"13");
    }
    let mut field = |name: &str, value: String| to.field(name.as_bytes(), value.as_bytes());
    field("X-Id", ask.id.to_string());
    field("X-Answer", ask.answer.text());
    field("X-Body", ask.body.map_or(0, |body| body.length).to_string());
    if ask.has_trailers {
        field(TRAILER, ask.id.to_string());
    }
    if let Some(length) = length {
        field("Content-Length", length.to_string());
    }
    if expects {
        field("Expect", "100-continue".into());
    }
}

/// Whether a response has trailers.
pub(super) fn ends_with_trailers(ask: &Ask, answer: Answer) -> bool {
    ask.has_trailers && ask.method != Method::Head && matches!(answer, Answer::Chunked(_))
}
