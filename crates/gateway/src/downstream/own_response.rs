//! The gateway's own responses, to a connection or a stream.

use super::Client;
use crate::grpc::Status;
use crate::heads::own::{Own, Terms};
use crate::heads::rewrite::Connection;
use crate::heads::writer::FieldBlock;
use weir_http2::{Part, StreamNo};
use weir_reactor::Socket;
use weir_transport::Wire;

impl<S: Socket> Client<S> {
    /// Writes one of the gateway's own responses; returns the length of its body. `lines`: a buffer for the writer.
    pub(crate) fn respond(
        &mut self,
        stream: Option<StreamNo>,
        own: &Own<'_>,
        terms: &Terms<'_>,
        wire: &mut Wire,
        lines: &mut Vec<u8>,
    ) -> u64 {
        let grpc = self.grpc_status(stream, own.status);
        let (Some(no), Some(h2)) = (stream, &mut self.h2) else {
            return own.write(terms, self.transport.stage(wire));
        };
        let terms = Terms { connection: Connection::Persists, ..*terms };
        let body = own.body();
        if let Some(status) = grpc {
            let write = |block: &mut FieldBlock<'_, '_>| own.grpc_head(&body, status, &terms, block);
            h2.head(no, Part::Head { end: true }, write, lines, self.transport.stage(wire));
            return 0;
        }
        let sent = own.sent(&body, &terms);
        let part = Part::Head { end: sent.is_empty() };
        h2.head(no, part, |block| own.head(&body, &terms, block), lines, self.transport.stage(wire));
        if !sent.is_empty() {
            h2.push(no, sent, true, &mut self.transport, wire);
        }
        sent.len() as u64
    }

    #[inline]
    pub(crate) fn is_grpc(&self, stream: Option<StreamNo>) -> bool {
        stream
            .is_some_and(|no| self.h2.as_ref().and_then(|h2| h2.get(no)).is_some_and(|stream| stream.is_grpc))
    }

    /// The gRPC status that replaces an HTTP error status (400 and above), if the request is a gRPC call.
    pub(crate) fn grpc_status(&self, stream: Option<StreamNo>, status: u16) -> Option<Status> {
        (status >= 400 && self.is_grpc(stream)).then(|| Status::of_http(status))
    }

    /// Sends `100 Continue` to a client that waits for it before it sends the body.
    pub(crate) fn say_continue(&mut self, stream: Option<StreamNo>, wire: &mut Wire) {
        let out = self.transport.stage(wire);
        match (stream, &mut self.h2) {
            // Best effort: the client may have reset the stream.
            (Some(no), Some(h2)) => {
                let _ = h2.connection.head(no, Part::Interim, |to| to.status(100), out);
            }
            _ => out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n"),
        }
    }
}
