//! One message on the oracle's side.

use super::message::{Message, of_map, to_map};
use bytes::Bytes;
use h2::{RecvStream, SendStream};
use std::task::{Context, Poll};

/// Passes the body and trailers to the oracle, which buffers them until its windows allow sending.
pub(super) fn send(stream: &mut SendStream<Bytes>, message: &Message) {
    let ends = message.trailers.is_none();
    stream.send_data(Bytes::from(message.body.clone()), ends).unwrap();
    if let Some(trailers) = &message.trailers {
        stream.send_trailers(to_map(trailers)).unwrap();
    }
}

/// A message that the oracle receives.
pub(super) struct Receiving {
    pub(super) stream: RecvStream,
    pub(super) received: Message,
}

impl Receiving {
    /// Takes the received part. Returns whether the message is complete.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        while let Poll::Ready(data) = self.stream.poll_data(context) {
            let Some(data) = data else {
                let Poll::Ready(trailers) = self.stream.poll_trailers(context) else { return false };
                self.received.trailers = trailers.unwrap().as_ref().map(of_map);
                return true;
            };
            let data = data.unwrap();
            self.stream.flow_control().release_capacity(data.len()).unwrap();
            self.received.body.extend_from_slice(&data);
        }
        false
    }
}
