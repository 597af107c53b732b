//! One exchange on our side: the sent part of our message, and the received part of the oracle's.

use super::message::{Message, encode, of_head};
use super::pipe::Ours;
use weir_http2::{Event, Part, StreamNo};

pub(super) struct Half {
    pub(super) stream: StreamNo,
    to_send: Message,
    has_sent: usize,
    is_sent: bool,
    pub(super) received: Message,
    pub(super) is_received: bool,
}

impl Half {
    pub(super) fn new(stream: StreamNo, to_send: Message) -> Self {
        let received = Message::default();
        Self { stream, to_send, has_sent: 0, is_sent: false, received, is_received: false }
    }

    /// Sends as much of the message after the head as the windows allow.
    pub(super) fn send(&mut self, ours: &mut Ours) {
        if self.is_sent {
            return;
        }
        let rest = &self.to_send.body[self.has_sent..];
        let ends = self.to_send.trailers.is_none();
        let taken = ours.connection.data(self.stream, rest, ends, &mut ours.out).unwrap();
        self.has_sent += taken;
        self.is_sent = taken == rest.len();
        if let (true, Some(trailers)) = (self.is_sent, &self.to_send.trailers) {
            let write = |to: &mut weir_http2::hpack::Encoder<'_>| encode(trailers, to);
            ours.connection.head(self.stream, Part::Trailers, write, &mut ours.out).unwrap();
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_sent && self.is_received
    }

    /// Processes an event of this stream. The event's ranges refer to `input`.
    pub(super) fn receive(&mut self, event: &Event, input: &[u8], ours: &mut Ours) {
        match event {
            Event::Head { end, .. } => {
                self.received.fields = of_head(&ours.head);
                self.is_received = *end;
            }
            Event::Data { range, flow, end, .. } => {
                self.received.body.extend_from_slice(&input[range.clone()]);
                ours.connection.credit(self.stream, *flow);
                self.is_received = *end;
            }
            Event::Trailers { .. } => {
                self.received.trailers = Some(of_head(&ours.head));
                self.is_received = true;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The stream of an event; `None` if the event ends the stream or concerns the connection.
pub(super) fn stream_of(event: &Event) -> Option<StreamNo> {
    match event {
        Event::Head { stream, .. } | Event::Data { stream, .. } | Event::Trailers { stream } => Some(*stream),
        Event::Settings | Event::Room { .. } => None,
        other => panic!("{other:?}"),
    }
}
