//! One request and its answer, and the two bodies that stream past each other.

use weir_http1::{BodyDecoder, BodyError, Framing, Limits, Method, Version, chunk, last_chunk};
use weir_reactor::Key;
use weir_transport::{Fault, Transport, Wire};

/// What an exchange remembers once the request head has been passed on.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub upstream: Key,
    pub method: Method,
    pub version: Version,
    /// Whether the client's connection goes on after this exchange, as far as is known.
    pub persistent: bool,
    pub request: Body,
    /// The request's body is read and thrown away: the upstream stopped taking it, and its answer is awaited.
    pub request_discarded: bool,
    pub answer: Answer,
    /// Method and target for the log.
    pub line: RequestLine,
}

/// How far the answer has come.
#[derive(Debug)]
pub(crate) enum Answer {
    /// No head yet.
    Awaited,
    /// The head has been passed on; whether the upstream's connection can be used again.
    Body { body: Body, upstream_persistent: bool },
}

/// A body on its way: decoded from the sender's framing, encoded into the receiver's.
#[derive(Debug)]
pub(crate) struct Body {
    decoder: BodyDecoder,
    chunked: bool,
    passed: u64,
}

/// What one call of [`Body::pass`] did.
#[derive(Debug)]
pub(crate) struct Passed {
    /// Input that belonged to the body.
    pub consumed: usize,
    /// The receiver is gone. The body was decoded all the same, so that the sender's connection stays in step.
    pub receiver_lost: Option<Fault>,
}

impl Body {
    /// A body that comes with framing `from` and goes out in chunks or as it is.
    pub(crate) fn new(from: Framing, chunked: bool, limits: &Limits) -> Self {
        Self { decoder: BodyDecoder::new(from, limits), chunked, passed: 0 }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// Body bytes passed so far.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Takes what `input` holds of the body. The bytes are appended to `out`, where the head may be waiting for them;
    /// long stretches that need no framing go to the receiver straight from `input`.
    /// Errors: the sender's framing is wrong.
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
                receiver_lost = flush(out, to, wire).and_then(|()| to.send(data, wire)).err();
            }
            if step.consumed == 0 {
                break;
            }
        }
        Ok(Passed { consumed: at, receiver_lost })
    }

    /// Decodes and forgets.
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

    /// The sender's stream is over: completes a body that ends so, and is an error for every other.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BodyError> {
        self.decoder.end_of_input()?;
        if self.chunked {
            last_chunk(out);
        }
        Ok(())
    }
}

/// Sends what was put together.
pub(crate) fn flush(out: &mut Vec<u8>, to: &mut Transport, wire: &mut Wire) -> Result<(), Fault> {
    if out.is_empty() {
        return Ok(());
    }
    let sent = to.send(out, wire);
    out.clear();
    sent
}

/// A request line for the log, in a fixed place: no allocation for requests that end well.
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
        // The parser let only ASCII through.
        std::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or("?")
    }
}

/// From here on a copy costs more than a further system call.
const WORTH_A_CALL: usize = 8 * 1024;
