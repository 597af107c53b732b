//! A request's body that becomes the response's.

use super::stream::Sent;
use crate::context::Context;
use weir_http2::{Closed, Connection, DATA_BYTES, StreamNo};

/// Received bytes that are not sent yet. The client gets credit for a byte once it is sent, so the stream's window
/// bounds them.
#[derive(Debug, Default)]
pub(super) struct Echo {
    held: Vec<u8>,
    /// Whether the request is complete.
    ended: bool,
}

impl Echo {
    /// Takes a piece of the body.
    pub(super) fn take(&mut self, data: &[u8], end: bool) {
        self.held.extend_from_slice(data);
        self.ended |= end;
    }

    /// The received bytes that are not sent.
    pub(super) fn held(&self) -> u32 {
        self.held.len() as u32
    }

    pub(super) fn has_frame(&self) -> bool {
        self.ended || !self.held.is_empty()
    }

    /// Sends at most one DATA frame of the held bytes.
    pub(super) fn send(
        &mut self,
        no: StreamNo,
        protocol: &mut Connection,
        context: &mut Context,
    ) -> Result<Sent, Closed> {
        if !self.has_frame() {
            return Ok(Sent::Waiting);
        }
        let length = self.held.len().min(DATA_BYTES);
        let ends = self.ended && length == self.held.len();
        let taken = protocol.data(no, &self.held[..length], ends, &mut context.out)?;
        self.held.drain(..taken);
        credit_sent(no, taken, protocol, context);
        Ok(match taken == length {
            true if ends => Sent::All,
            true if self.held.is_empty() => Sent::Waiting,
            true => Sent::Part,
            false => Sent::Waiting,
        })
    }

    /// Sends a received piece of the body, and holds what the windows do not allow.
    pub(super) fn forward(
        &mut self,
        data: &[u8],
        end: bool,
        no: StreamNo,
        protocol: &mut Connection,
        context: &mut Context,
    ) -> Result<Sent, Closed> {
        if self.has_frame() {
            self.take(data, end);
            return Ok(Sent::Waiting);
        }
        let taken = protocol.data(no, data, end, &mut context.out)?;
        credit_sent(no, taken, protocol, context);
        if taken == data.len() && end {
            return Ok(Sent::All);
        }
        self.take(&data[taken..], end);
        Ok(Sent::Waiting)
    }
}

fn credit_sent(no: StreamNo, taken: usize, protocol: &mut Connection, context: &Context) {
    protocol.credit(no, taken as u32);
    context.count().bytes_sent.add(taken as u64);
}
