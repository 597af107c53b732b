//! One stream of a connection.

use super::priority::Rank;
use crate::keys::ExchangeId;
use weir_http2::StreamNo;

/// The parts of a request and its response that wait on this side of the exchange. On a client's connection, input is
/// the request; on a server's connection, it is the response. Output is the other message.
#[derive(Debug)]
pub(crate) struct Stream {
    pub no: StreamNo,
    /// The exchange; `None` before it begins, and after it is over.
    pub exchange: Option<ExchangeId>,
    /// Received bytes of the request's body that no server's connection has taken. The client gets credit for them once
    /// a server's connection takes them. Response bytes are not held: the gateway forwards them immediately.
    pub held: Vec<u8>,
    /// The number of bytes at the start of `held` for which the client has already received credit.
    pub credited: usize,
    /// Bytes of a response's DATA for which the server receives credit once the client has read some of its pending
    /// output.
    pub owed: u32,
    /// Whether the client has sent the whole request.
    pub ended: bool,
    /// Whether the request is a gRPC call, for which the gateway's own errors are gRPC responses.
    pub is_grpc: bool,
    /// The lines of the request's trailers.
    pub trailers: Box<[u8]>,
    /// Bytes of the output's body that the connection has taken.
    pub sent: u64,
    /// Bytes of the output's body that the windows or the connection have not taken.
    pub(super) out: Vec<u8>,
    /// The end of the output, once it is known.
    pub(super) end: End,
    /// The rank of the output when the connection last sent by priority.
    pub(super) rank: Rank,
    /// Whether the output waits for the stream's or the connection's window.
    pub(super) is_blocked: bool,
    pub(super) touched: bool,
    /// Whether the connection has taken output since the exchange's deadline was last updated.
    pub moved: bool,
}

/// The end of a message in transit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Open,
    /// After the output, only these trailer lines follow, if any.
    Known(Vec<u8>),
    Sent,
}

impl Stream {
    pub(super) fn new(no: StreamNo, ended: bool) -> Self {
        Self {
            no,
            exchange: None,
            held: Vec::new(),
            credited: 0,
            owed: 0,
            ended,
            is_grpc: false,
            trailers: Box::default(),
            sent: 0,
            out: Vec::new(),
            end: End::Open,
            rank: Rank::default(),
            is_blocked: false,
            touched: false,
            moved: false,
        }
    }

    /// The number of received bytes for which the peer has not received credit yet.
    pub(super) fn uncredited(&self) -> u32 {
        self.owed + self.held.len().saturating_sub(self.credited) as u32
    }

    pub(crate) fn pending(&self) -> usize {
        self.out.len()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.end != End::Open
    }

    /// The heap memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let end = match &self.end {
            End::Known(trailers) => trailers.capacity(),
            End::Open | End::Sent => 0,
        };
        self.held.capacity() + self.out.capacity() + self.trailers.len() + end
    }
}
