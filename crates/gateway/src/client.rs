//! A client's connection.

use crate::deadline::Deadline;
use crate::exchange::Exchange;
use std::net::SocketAddr;
use weir_transport::Transport;

/// One downstream connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub transport: Transport,
    pub peer: SocketAddr,
    /// The lines that every request of this connection is passed on with.
    pub forwarded: Box<[u8]>,
    /// Bytes that came and are not used yet: a part of a head, or pipelined requests.
    pub held: Vec<u8>,
    pub state: State,
    /// The client has sent its last byte. It may still be waiting for an answer.
    pub ended: bool,
    pub deadline: Deadline,
}

/// What the connection is doing.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation for each request; idle, 300 bytes are few"
)]
#[derive(Debug)]
pub(crate) enum State {
    /// A request head is awaited; `begun` when a part of it is there.
    Head { begun: bool },
    /// A request is being answered.
    Exchange(Exchange),
    /// The last answer has been given; what still comes is read and thrown away, so that the answer is not lost to a
    /// reset (RFC 9112 section 9.6).
    Closing,
}

impl Client {
    /// Whether no further request can come: its stream is over, and nothing of it is left to look at.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.held.is_empty()
    }

    /// Whether there is anything to read for. Until the answer is complete the client may send on what it pipelines,
    /// within bounds; `upstream_pending` is what still waits to go to the upstream.
    pub(crate) fn wants_read(&self, upstream_pending: usize) -> bool {
        if self.ended {
            return false;
        }
        match &self.state {
            State::Head { .. } | State::Closing => true,
            State::Exchange(exchange) if exchange.request.is_complete() => self.held.len() < MAX_HELD,
            State::Exchange(_) => upstream_pending < MAX_PENDING,
        }
    }
}

/// How much may wait for a receiver before its sender is not read any more. One read more can come on top.
pub(crate) const MAX_PENDING: usize = 64 * 1024;

/// How much of later requests is kept while one is being answered.
const MAX_HELD: usize = 16 * 1024;
