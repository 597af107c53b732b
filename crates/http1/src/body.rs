//! Decoding the body that follows a head.

use crate::chunked::{Chunked, Section};
use crate::decoded::{Decoded, within};
use crate::{BodyError, Framing, Limits};

/// Finds the bytes of one body. Keeps a few words of state and no message bytes, so a body may arrive in pieces of any
/// size.
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    state: State,
    /// The trailer section, if the caller asked to keep it and the body is complete.
    trailers: Option<Box<Section>>,
}

#[derive(Clone, Debug)]
enum State {
    /// This many bytes remain, at least one.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Complete,
    Failed(BodyError),
}

impl BodyDecoder {
    /// Starts at the first byte after a head with this framing. `limits` apply to chunk extensions and the trailer
    /// section.
    #[must_use]
    pub fn new(framing: Framing, limits: &Limits) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Complete,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunked::new(limits)),
            Framing::UntilClose => State::UntilClose,
        };
        Self { state, trailers: None }
    }

    /// Keeps the trailer section of a chunked body, for [`BodyDecoder::trailers`]. Call before the first
    /// step.
    pub fn keep_trailers(&mut self) {
        if let State::Chunked(chunked) = &mut self.state {
            chunked.keep_trailers();
        }
    }

    /// The lines of the trailer section, each with its CRLF, once the body is complete; empty without
    /// [`BodyDecoder::keep_trailers`].
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        self.trailers.as_ref().map_or(&[], |section| &section.lines)
    }

    /// Decodes one step: framing around at most one run of body bytes. Never reads past the end of the message. Call
    /// again with `input[consumed..]`; when a step consumes nothing, the decoder either needs more input or
    /// [`is_complete`](Self::is_complete).
    ///
    /// Checks and drops chunk extensions, and trailers unless [`BodyDecoder::keep_trailers`] was called.
    ///
    /// # Errors
    /// The violated rule. The decoder returns the bytes before the violation first, regardless of how the input is
    /// split; from then on, every step returns the same error.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, BodyError> {
        match &mut self.state {
            State::Length(missing) => {
                let length = within(*missing, input);
                *missing -= length as u64;
                if *missing == 0 {
                    self.state = State::Complete;
                }
                Ok(Decoded { consumed: length, data: 0..length })
            }
            State::Chunked(chunked) => {
                let mut decoded = Decoded::default();
                let end = chunked.decode(input, &mut decoded);
                match end {
                    Ok(false) => {}
                    Ok(true) => {
                        self.trailers = chunked.take_trailers();
                        self.state = State::Complete;
                    }
                    Err(error) => {
                        self.state = State::Failed(error);
                        if decoded.data.is_empty() {
                            return Err(error);
                        }
                    }
                }
                Ok(decoded)
            }
            State::UntilClose => Ok(Decoded { consumed: input.len(), data: 0..input.len() }),
            State::Complete => Ok(Decoded::default()),
            State::Failed(error) => Err(*error),
        }
    }

    /// Whether the body has ended.
    #[inline]
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// Reports the end of the connection, which completes a body with [`Framing::UntilClose`]. Fails with
    /// [`BodyError::Truncated`] if bytes are missing, or with the error of an earlier step.
    pub fn end_of_input(&mut self) -> Result<(), BodyError> {
        match self.state {
            State::Complete => Ok(()),
            State::UntilClose => {
                self.state = State::Complete;
                Ok(())
            }
            State::Failed(error) => Err(error),
            State::Length(_) | State::Chunked(_) => {
                self.state = State::Failed(BodyError::Truncated);
                Err(BodyError::Truncated)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_ends_with_the_last_byte_and_leaves_the_next_message() {
        let mut body = BodyDecoder::new(Framing::Length(5), &Limits::default());
        assert_eq!(body.decode(b"he"), Ok(Decoded { consumed: 2, data: 0..2 }));
        assert!(!body.is_complete());
        assert_eq!(body.decode(b"lloGET"), Ok(Decoded { consumed: 3, data: 0..3 }));
        assert!(body.is_complete());
        assert_eq!(body.decode(b"GET"), Ok(Decoded::default()));
        assert_eq!(body.end_of_input(), Ok(()));
    }

    #[test]
    fn no_body_is_complete_at_once() {
        for framing in [Framing::None, Framing::Length(0)] {
            assert!(BodyDecoder::new(framing, &Limits::default()).is_complete());
        }
    }

    #[test]
    fn only_the_end_of_the_connection_ends_until_close() {
        let mut body = BodyDecoder::new(Framing::UntilClose, &Limits::default());
        assert_eq!(body.decode(b"abc"), Ok(Decoded { consumed: 3, data: 0..3 }));
        assert!(!body.is_complete());
        assert_eq!(body.end_of_input(), Ok(()));
        assert!(body.is_complete());
    }

    #[test]
    fn an_early_end_is_truncation() {
        for framing in [Framing::Length(1), Framing::Chunked] {
            let mut body = BodyDecoder::new(framing, &Limits::default());
            assert_eq!(body.end_of_input(), Err(BodyError::Truncated));
            assert_eq!(body.decode(b"0\r\n\r\n"), Err(BodyError::Truncated));
            assert!(!body.is_complete());
        }
    }

    #[test]
    fn trailers_are_kept_on_request_however_they_are_split() {
        let input = b"1\r\na\r\n0\r\nA: 1\r\nB:2\r\n\r\nGET";
        for split in 0..input.len() {
            let mut body = BodyDecoder::new(Framing::Chunked, &Limits::default());
            body.keep_trailers();
            let mut consumed = 0;
            for end in [split, input.len()] {
                while let Ok(step) = body.decode(&input[consumed..end])
                    && step.consumed > 0
                {
                    consumed += step.consumed;
                }
            }
            assert_eq!((consumed, body.trailers()), (input.len() - 3, &b"A: 1\r\nB:2\r\n"[..]), "{split}");
        }
    }

    #[test]
    fn data_before_an_error_is_handed_out_first() {
        let mut body = BodyDecoder::new(Framing::Chunked, &Limits::default());
        assert_eq!(body.decode(b"2\r\nabX"), Ok(Decoded { consumed: 5, data: 3..5 }));
        assert_eq!(body.decode(b"X"), Err(BodyError::BadChunkEnd));
        assert_eq!(body.decode(b"\r\n"), Err(BodyError::BadChunkEnd));
        assert_eq!(body.end_of_input(), Err(BodyError::BadChunkEnd));
    }
}
