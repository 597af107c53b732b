//! A request's body, echoed as the response's.

use super::call::{one_message, whole_messages, write_end};
use super::stream::Sent;
use crate::context::Context;
use weir_http2::grpc::Messages;
use weir_http2::hpack::Encoder;
use weir_http2::{Closed, Connection, DATA_BYTES, Head, Part, StreamNo};

/// Received bytes that are not sent yet. The client gets credit for a byte once it is sent, so the stream's window
/// bounds them.
#[derive(Debug, Default)]
pub(super) struct Echo {
    held: Vec<u8>,
    /// Whether the request is complete.
    ended: bool,
    trailers: Option<Trailers>,
}

/// The fields after the body.
#[derive(Debug)]
enum Trailers {
    /// The request's trailers.
    Same(Box<Head>),
    /// The status of a call with these messages, of which there may be only one.
    Grpc { messages: Messages, one: bool },
}

impl Echo {
    /// The response to a gRPC call, whose messages are the request's; `one`: there must be one.
    pub(super) fn grpc(one: bool) -> Self {
        Self { trailers: Some(Trailers::Grpc { messages: Messages::default(), one }), ..Self::default() }
    }

    /// Whether it is the response to a gRPC call.
    pub(super) fn is_grpc(&self) -> bool {
        matches!(self.trailers, Some(Trailers::Grpc { .. }))
    }

    /// Counts the messages in a received piece.
    fn note(&mut self, data: &[u8]) {
        if let Some(Trailers::Grpc { messages, .. }) = &mut self.trailers {
            messages.take(data);
        }
    }

    /// Takes a piece of the body.
    pub(super) fn take(&mut self, data: &[u8], end: bool) {
        self.note(data);
        self.hold(data, end);
    }

    fn hold(&mut self, data: &[u8], end: bool) {
        self.held.extend_from_slice(data);
        self.ended |= end;
    }

    /// Takes the request's trailers, which end it.
    pub(super) fn take_trailers(&mut self, trailers: &Head) {
        if self.trailers.is_none() {
            self.trailers = Some(Trailers::Same(Box::new(trailers.clone())));
        }
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
        let is_last = self.ended && length == self.held.len();
        let taken = self.data(&self.held[..length], is_last, no, protocol, context)?;
        self.held.drain(..taken);
        match taken == length {
            true if is_last => self.finish(no, protocol, context),
            true if !self.held.is_empty() => Ok(Sent::Part),
            _ => Ok(Sent::Waiting),
        }
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
        self.note(data);
        if self.has_frame() {
            self.hold(data, end);
            return Ok(Sent::Waiting);
        }
        let taken = self.data(data, end, no, protocol, context)?;
        if end && taken == data.len() {
            return self.finish(no, protocol, context);
        }
        self.hold(&data[taken..], end);
        Ok(Sent::Waiting)
    }

    /// Sends bytes as far as the windows allow, and credits them.
    fn data(
        &self,
        data: &[u8],
        is_last: bool,
        no: StreamNo,
        protocol: &mut Connection,
        context: &mut Context,
    ) -> Result<usize, Closed> {
        let ends = is_last && self.trailers.is_none();
        let taken = protocol.data(no, data, ends, &mut context.out)?;
        protocol.credit(no, taken as u32);
        context.count().bytes_sent.add(taken as u64);
        Ok(taken)
    }

    /// Sends the trailers, if there are any, after all bytes.
    fn finish(&self, no: StreamNo, protocol: &mut Connection, context: &mut Context) -> Result<Sent, Closed> {
        if let Some(trailers) = &self.trailers {
            protocol.head(no, Part::Trailers, |to| trailers.write(to), &mut context.out)?;
        }
        Ok(Sent::All)
    }
}

impl Trailers {
    fn write(&self, to: &mut Encoder<'_>) {
        match self {
            Self::Same(head) => to.fields(&head.bytes, &head.fields, |_| true),
            Self::Grpc { messages, one: true } => write_end(&one_message(messages), to),
            Self::Grpc { messages, one: false } => write_end(&whole_messages(messages), to),
        }
    }
}
