//! One request and its response, with two bodies streaming in opposite directions.

use weir_http1::{BodyDecoder, BodyError, Framing, Limits, Method, Version, chunk, last_chunk};
use weir_reactor::Key;
use weir_transport::{Fault, Transport, Wire};

/// The state of an exchange after the request head was forwarded.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub upstream: Key,
    pub method: Method,
    pub version: Version,
    /// Whether the client's connection persists after this exchange, as far as is known.
    pub persistent: bool,
    pub request: Body,
    /// The request's body is discarded: the upstream stopped reading it, and its response is pending.
    pub request_discarded: bool,
    /// Its fields authenticate the upstream connection, which must then serve no other client.
    pub authenticates_connection: bool,
    pub answer: Answer,
    /// Method and target for the log.
    pub line: RequestLine,
}

/// Progress of the response.
#[derive(Debug)]
pub(crate) enum Answer {
    /// No head yet.
    Awaited,
    /// The head was forwarded; whether the upstream connection can be reused.
    Body { body: Body, upstream_persistent: bool },
}

/// A body in transit: decoded from the sender's framing, encoded into the receiver's.
#[derive(Debug)]
pub(crate) struct Body {
    decoder: BodyDecoder,
    chunked: bool,
    passed: u64,
    /// Something went to the receiver directly, with all that was buffered before.
    is_flushed: bool,
}

/// The result of [`Body::pass`].
#[derive(Debug)]
pub(crate) struct Passed {
    /// Input that belonged to the body.
    pub consumed: usize,
    /// The receiver is gone. The body is still decoded, to keep the sender's connection in sync.
    pub receiver_lost: Option<Fault>,
}

impl Body {
    /// A body with framing `from`, sent chunked or as is.
    pub(crate) fn new(from: Framing, chunked: bool, limits: &Limits) -> Self {
        Self { decoder: BodyDecoder::new(from, limits), chunked, passed: 0, is_flushed: false }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// Whether [`Body::pass`] has sent anything itself.
    pub(crate) fn is_flushed(&self) -> bool {
        self.is_flushed
    }

    /// Body bytes forwarded so far.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Forwards the part of the body in `input`. Bytes are appended to `out`, which may hold the head;
    /// long stretches without framing are sent directly from `input`.
    /// Errors: invalid framing from the sender.
    pub(crate) fn pass(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        to: &mut Transport,
        wire: &mut Wire,
    ) -> Result<Passed, BodyError> {
        let (mut at, mut receiver_lost) = (0, None);
        while !self.is_complete() {
            let step = self.decoder.decode(&input[at..])?;
            let data = &input[at..][step.data];
            self.passed += data.len() as u64;
            at += step.consumed;
            if self.chunked {
                chunk(data, out);
                if self.is_complete() {
                    last_chunk(out);
                }
            } else if data.len() < WORTH_A_CALL {
                out.extend_from_slice(data);
            } else if receiver_lost.is_none() {
                self.is_flushed = true;
                receiver_lost = flush(out, to, wire).and_then(|()| to.send(data, wire)).err();
            }
            if step.consumed == 0 {
                break;
            }
        }
        Ok(Passed { consumed: at, receiver_lost })
    }

    /// Decodes and discards.
    pub(crate) fn discard(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        let mut at = 0;
        while !self.is_complete() {
            let step = self.decoder.decode(&input[at..])?;
            at += step.consumed;
            if step.consumed == 0 {
                break;
            }
        }
        Ok(at)
    }

    /// The sender's stream ended: completes a body framed by that, and is an error for any other.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BodyError> {
        self.decoder.end_of_input()?;
        if self.chunked {
            last_chunk(out);
        }
        Ok(())
    }
}

/// Sends the buffered output.
pub(crate) fn flush(out: &mut Vec<u8>, to: &mut Transport, wire: &mut Wire) -> Result<(), Fault> {
    if out.is_empty() {
        return Ok(());
    }
    let sent = to.send(out, wire);
    out.clear();
    sent
}

/// A request line for the log, of fixed size: no allocation for successful requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLine {
    bytes: [u8; RequestLine::LEN],
    len: u8,
}

impl RequestLine {
    const LEN: usize = 47;

    pub(crate) fn new(method: &[u8], target: &[u8]) -> Self {
        let mut line = Self { bytes: [0; Self::LEN], len: 0 };
        for part in [method, b" ", target] {
            let start = line.len as usize;
            let taken = part.len().min(Self::LEN - start);
            line.bytes[start..start + taken].copy_from_slice(&part[..taken]);
            line.len += taken as u8;
        }
        line
    }

    pub(crate) fn as_str(&self) -> &str {
        // The parser only accepts ASCII.
        std::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or("?")
    }
}

/// From this size, a copy costs more than another system call.
const WORTH_A_CALL: usize = 8 * 1024;
