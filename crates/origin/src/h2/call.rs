//! A gRPC call whose response follows its complete request, and the end of every call.

use super::stream::Sent;
use crate::context::Context;
use crate::route::GrpcMethod;
use std::borrow::Cow;
use weir_http2::grpc::{self, INTERNAL, Messages, RESOURCE_EXHAUSTED, UNIMPLEMENTED};
use weir_http2::hpack::Encoder;
use weir_http2::{Closed, Connection, DATA_BYTES, Part, StreamNo};

/// The request of a call.
#[derive(Debug)]
pub(super) struct Call {
    method: GrpcMethod,
    messages: Messages,
    /// The message to send back, with its prefix.
    kept: Vec<u8>,
}

/// The maximum message to send back, in bytes: gRPC's usual limit.
const MOST_BYTES: usize = 4 << 20;

/// A status other than OK, and its text.
#[derive(Debug)]
pub(super) struct Failure {
    status: u8,
    text: Cow<'static, str>,
}

impl Call {
    pub(super) fn new(method: GrpcMethod) -> Self {
        Self { method, messages: Messages::default(), kept: Vec::new() }
    }

    /// Takes a piece of the body.
    pub(super) fn take(&mut self, data: &[u8]) {
        self.messages.take(data);
        let is_kept = matches!(self.method, GrpcMethod::Server(_));
        if is_kept && self.kept.len() + data.len() <= MOST_BYTES + grpc::PREFIX_BYTES {
            self.kept.extend_from_slice(data);
        }
    }

    /// The response to the complete request.
    pub(super) fn reply(self) -> Result<Reply, Failure> {
        let failure = |status, text| Err(Failure { status, text: Cow::Borrowed(text) });
        match self.method {
            GrpcMethod::Server(messages) => {
                one_message(&self.messages)?;
                if self.messages.bytes() > MOST_BYTES as u64 {
                    return failure(RESOURCE_EXHAUSTED, "the message is larger than 4 MiB");
                }
                Ok(Reply { message: self.kept, left: messages, at: 0 })
            }
            GrpcMethod::Client => {
                whole_messages(&self.messages)?;
                let (messages, bytes) = (self.messages.count(), self.messages.bytes());
                let total = format!("{{\"messages\":{messages},\"bytes\":{bytes}}}");
                let message = [&grpc::prefix(total.len() as u32), total.as_bytes()].concat();
                Ok(Reply { message, left: 1, at: 0 })
            }
            GrpcMethod::Unary | GrpcMethod::Bidi | GrpcMethod::Unknown => {
                failure(UNIMPLEMENTED, "expected /weir.Echo/Unary, Server, Client or Bidi")
            }
        }
    }
}

/// Checks the request of a call that has one message.
pub(super) fn one_message(messages: &Messages) -> Result<(), Failure> {
    whole_messages(messages)?;
    match messages.count() {
        1 => Ok(()),
        count => Err(Failure { status: INTERNAL, text: format!("{count} messages: expected one").into() }),
    }
}

/// Checks the request of a call with any number of messages.
pub(super) fn whole_messages(messages: &Messages) -> Result<(), Failure> {
    messages.end().map_err(|bad| Failure { status: INTERNAL, text: bad.to_string().into() })
}

/// The fields after the messages of a response, or in the head of one that has none.
pub(super) fn write_end(end: &Result<(), Failure>, to: &mut Encoder<'_>) {
    match end {
        Ok(()) => to.field(grpc::STATUS, b"0"),
        Err(failure) => {
            to.field(grpc::STATUS, failure.status.to_string().as_bytes());
            to.field(grpc::MESSAGE, failure.text.as_bytes());
        }
    }
}

/// The rest of a response: one message, sent again and again.
#[derive(Debug)]
pub(super) struct Reply {
    /// With its prefix.
    message: Vec<u8>,
    left: u32,
    /// The bytes sent of the current message.
    at: usize,
}

impl Reply {
    /// Sends at most one DATA frame, and the trailers after the last one.
    pub(super) fn send(
        &mut self,
        no: StreamNo,
        protocol: &mut Connection,
        context: &mut Context,
    ) -> Result<Sent, Closed> {
        if self.left > 0 {
            let rest = &self.message[self.at..];
            let piece = &rest[..rest.len().min(DATA_BYTES)];
            let taken = protocol.data(no, piece, false, &mut context.out)?;
            context.count().bytes_sent.add(taken as u64);
            self.at += taken;
            if taken < piece.len() {
                return Ok(Sent::Waiting);
            }
            if self.at == self.message.len() {
                (self.at, self.left) = (0, self.left - 1);
            }
            if self.left > 0 {
                return Ok(Sent::Part);
            }
        }
        protocol.head(no, Part::Trailers, |to| write_end(&Ok(()), to), &mut context.out)?;
        Ok(Sent::All)
    }
}
