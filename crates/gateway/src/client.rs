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
    /// The header lines added to every request of this connection.
    pub forwarded: Box<[u8]>,
    /// Received but unprocessed bytes: a partial head, or pipelined requests.
    pub held: Vec<u8>,
    pub state: State,
    /// The client has closed its sending side. It may still be waiting for a response.
    pub ended: bool,
    pub deadline: Deadline,
}

/// What the connection is doing.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation per request; 300 bytes per idle connection are few"
)]
#[derive(Debug)]
pub(crate) enum State {
    /// Waiting for a request head; `started` once a part has arrived.
    Head { started: bool },
    /// An exchange is in progress.
    Exchange(Exchange),
    /// The last response is sent; further input is discarded, so that the response is not lost to a
    /// reset (RFC 9112 section 9.6).
    Closing,
}

impl Client {
    /// Whether no further request can come: its stream has ended and is fully processed.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.held.is_empty()
    }

    /// Whether to read. Until the response is complete the client may pipeline further requests,
    /// within bounds; `upstream_pending` is what still waits to be sent to the upstream.
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

/// How much may be buffered for a receiver before reading from its sender stops. One more read can be added.
pub(crate) const MAX_PENDING: usize = 64 * 1024;

/// How much pipelined input is buffered during an exchange.
const MAX_HELD: usize = 16 * 1024;
