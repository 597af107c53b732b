//! A body in transit: decoded from the sender's framing, encoded into the receiver's.

use crate::config::FieldNames;
use weir_http1::{
    BodyDecoder, BodyError, Framing, Limits, chunk, copy_trailers, last_chunk, last_chunk_with,
};
use weir_reactor::Socket;
use weir_transport::{Fault, Transport, Wire};

#[derive(Debug)]
pub(crate) struct Body {
    decoder: BodyDecoder,
    chunked: bool,
    passed: u64,
    is_direct: bool,
    trailers: Trailers,
}

/// The trailers to forward with a chunked body. Fields that are not allowed in trailers are always dropped.
#[derive(Clone, Debug)]
pub(crate) enum Trailers {
    Dropped,
    All,
    /// The trailers with these names.
    Named(FieldNames),
}

impl Trailers {
    fn keeps(&self, name: &[u8]) -> bool {
        match self {
            Self::Dropped => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|known| known.eq_ignore_ascii_case(name)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Passed {
    /// The length of the input that belonged to the body.
    pub consumed: usize,
    /// The receiver's connection failed. The gateway still decodes the body, to keep the sender's connection in sync.
    pub receiver_lost: Option<Fault>,
}

impl Body {
    /// A body with framing `from`, sent as is or (`chunked`) in a form that can carry trailers: in chunks, or on a
    /// stream.
    pub(crate) fn new(from: Framing, chunked: bool, limits: &Limits) -> Self {
        Self {
            decoder: BodyDecoder::new(from, limits),
            chunked,
            passed: 0,
            is_direct: false,
            trailers: Trailers::Dropped,
        }
    }

    /// Sets the trailers to forward. No effect if the body is sent as is.
    pub(crate) fn pass_trailers(&mut self, trailers: Trailers) {
        if self.chunked {
            self.decoder.keep_trailers();
            self.trailers = trailers;
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// Whether any part of the body was sent immediately instead of staged, so that the receiver may already have it.
    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// The length of the body so far, without framing.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Forwards the part of the body in `input[at..]`; may overwrite the bytes before `at`. Stages chunks, and short
    /// parts of unchunked bodies, after any staged head. Sends long parts of unchunked bodies immediately, without a
    /// copy. `tap` receives all data. Errors: invalid framing from the sender.
    #[inline(always)]
    pub(crate) fn pass<S: Socket>(
        &mut self,
        input: &mut [u8],
        at: usize,
        to: &mut Transport<S>,
        wire: &mut Wire,
        mut tap: impl FnMut(&[u8]),
    ) -> Result<Passed, BodyError> {
        let (mut from, mut receiver_lost) = (at, None);
        while !self.is_complete() {
            let step = self.decoder.decode(&input[from..])?;
            let (start, end) = (from + step.data.start, from + step.data.end);
            self.passed += step.data.len() as u64;
            from += step.consumed;
            tap(&input[start..end]);
            if receiver_lost.is_some() {
                // The receiver is lost, so the body is only decoded.
            } else if self.chunked {
                let out = to.stage(wire);
                chunk(&input[start..end], out);
                if self.decoder.is_complete() {
                    self.write_end(out);
                }
            } else if end - start < WORTH_A_CALL {
                to.stage(wire).extend_from_slice(&input[start..end]);
            } else {
                self.is_direct = true;
                receiver_lost = to.send_in_place(&mut input[..end], start, wire).err();
            }
            if step.consumed == 0 {
                break;
            }
        }
        Ok(Passed { consumed: from - at, receiver_lost })
    }

    /// Passes the part of the body at the start of `input` to `take`; returns its length. The second argument of `take`
    /// is true for the last piece of a body without trailers. Errors: invalid framing from the sender.
    pub(crate) fn decode(
        &mut self,
        input: &[u8],
        mut take: impl FnMut(&[u8], bool),
    ) -> Result<usize, BodyError> {
        let mut at = 0;
        while !self.is_complete() {
            let step = self.decoder.decode(&input[at..])?;
            let data = &input[at + step.data.start..at + step.data.end];
            self.passed += data.len() as u64;
            at += step.consumed;
            take(data, self.is_complete() && self.decoder.trailers().is_empty());
            if step.consumed == 0 {
                break;
            }
        }
        Ok(at)
    }

    /// Writes the last chunk, with the trailers that the gateway forwards.
    fn write_end(&self, out: &mut Vec<u8>) {
        match self.decoder.trailers() {
            b"" => last_chunk(out),
            trailers => self.write_last(trailers, out),
        }
    }

    pub(crate) fn trailers(&self) -> &[u8] {
        self.decoder.trailers()
    }

    /// Writes the fields of `trailers` that the gateway forwards.
    pub(crate) fn write_trailers(&self, trailers: &[u8], out: &mut Vec<u8>) {
        copy_trailers(trailers, |name| self.trailers.keeps(name), out);
    }

    /// Decodes and discards a part of the body; returns its length. Errors: invalid framing from the sender.
    pub(crate) fn discard(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        self.decode(input, |_, _| ())
    }

    /// The sender's stream ended: completes a body that the close delimits. Errors: the body has another framing, so it
    /// is incomplete.
    pub(crate) fn end(&mut self) -> Result<(), BodyError> {
        self.decoder.end_of_input()
    }

    /// Writes the end of a complete body, with the trailers that the gateway forwards.
    pub(crate) fn write_last(&self, trailers: &[u8], out: &mut Vec<u8>) {
        if self.chunked {
            last_chunk_with(|out| self.write_trailers(trailers, out), out);
        }
    }
}

/// From this size, a copy costs more than another system call.
const WORTH_A_CALL: usize = 8 * 1024;
