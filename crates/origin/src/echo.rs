//! A request's body, echoed as the response's.

use crate::content::BYTES;
use crate::context::Context;
use crate::response::{Status, Terms};
use weir_http1::{BodyDecoder, BodyError, Framing, chunk, last_chunk};

/// A body to echo as it arrives.
pub(crate) struct Echo {
    decoder: BodyDecoder,
    framing: Framing,
    pub(crate) terms: Terms,
    /// Whether the head is sent: it leaves with the first piece.
    pub(crate) started: bool,
}

impl Echo {
    pub(crate) fn new(decoder: BodyDecoder, framing: Framing, terms: Terms) -> Self {
        // A response without framing would have no end.
        let framing = if framing == Framing::None { Framing::Length(0) } else { framing };
        Self { decoder, framing, terms, started: false }
    }

    /// Sends the next piece; returns the bytes consumed, and whether the body is complete.
    pub(crate) fn forward(
        &mut self,
        input: &[u8],
        context: &mut Context,
    ) -> Result<(usize, bool), BodyError> {
        let decoded = self.decoder.decode(input)?;
        let done = self.decoder.is_complete();
        if decoded.consumed == 0 && !done {
            return Ok((0, false));
        }
        if !self.started {
            self.started = true;
            self.terms.head(Status::Ok, BYTES, self.framing, context.date.at(context.now), &mut context.out);
        }
        let data = &input[decoded.data];
        if self.framing == Framing::Chunked {
            chunk(data, &mut context.out);
            if done {
                last_chunk(&mut context.out);
            }
        } else {
            context.out.extend_from_slice(data);
        }
        context.count().bytes_received.add(data.len() as u64);
        context.count().bytes_sent.add(data.len() as u64);
        Ok((decoded.consumed, done))
    }
}
