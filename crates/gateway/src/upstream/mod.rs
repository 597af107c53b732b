//! Upstreams: services, their servers, and the connections to the servers.

mod balance;
mod current_wait;
mod ejection;
mod in_flight;
mod pick_context;
mod pool;
mod retry_budget;
mod reuse_limits;
mod server;
mod service;
mod slow_return;

pub(crate) use crate::hash::{hash_of, mix};
pub(crate) use crate::limits::{Slot, Slots};
pub(crate) use ejection::Counted;
pub(crate) use in_flight::InFlight;
pub(crate) use pick_context::PickContext;
pub(crate) use pool::{Links, Pool, Pooled, join};
pub(crate) use reuse_limits::Life;
pub(crate) use server::Server;
pub(crate) use service::Service;

use crate::deadlines::ServerWait;
use crate::h2::{H2, Stream};
use crate::keys::{ExchangeId, MirrorId, ServerId, TunnelId, UpstreamId};
use crate::limits::Descriptor;
use retry_budget::Budget;
use weir_http1::Part;
use weir_http2::StreamNo;
use weir_reactor::{Socket, Timer};
use weir_transport::Transport;

#[derive(Debug)]
pub(crate) struct Upstream<S> {
    pub transport: Transport<S>,
    pub used_for: Use,
    pub h2: Option<Box<H2>>,
    /// Requests that wait for the SETTINGS of an HTTP/2 server. Some of these requests may have ended.
    pub awaiting: Vec<ExchangeId>,
    /// Whether new requests may open streams.
    pub intake: Intake,
    /// Received but unprocessed bytes: a partial response head or frame.
    pub held: Vec<u8>,
    /// The parse state of `held`, if that is a partial head.
    pub part: Part,
    /// Whether the last read filled the input buffer, so that the socket may have more bytes.
    pub may_have_more: bool,
    /// Whether the server has closed its sending side.
    pub ended: bool,
    pub server: ServerId,
    /// The connection's slot within the server's limit, if the server has one.
    pub slot: Option<Slot>,
    pub life: Life,
    pub descriptor: Option<Descriptor>,
    /// The connection's neighbours in its pool.
    pub links: Links,
    pub timer: Timer<ServerWait>,
    /// Whether bytes have moved since the deadline was last updated.
    pub moved: bool,
    /// Whether the connection is in the list of connections to settle at the turn's end.
    pub touched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// No purpose yet: the connection is in the pool, or just dialled.
    Idle,
    Exchange(ExchangeId),
    /// HTTP/2: requests are streams.
    Streams,
    Tunnel(TunnelId),
    Mirror(MirrorId),
    /// No further purpose: the gateway sends the pending bytes, then closes the connection.
    Closing,
}

/// Whether a connection with streams takes further requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intake {
    Open,
    /// A request has timed out, and the server has not responded to a PING since.
    Doubtful,
    /// The connection closes after its last response.
    Closed,
}

impl<S> Upstream<S> {
    /// Schedules an update of output, poller interest and deadline for the turn's end.
    #[inline]
    pub(crate) fn touch(&mut self, id: UpstreamId, touched: &mut Vec<UpstreamId>) {
        if !std::mem::replace(&mut self.touched, true) {
            touched.push(id);
        }
    }

    /// Whether the connection serves nothing now, so that closing it interrupts nothing.
    pub(crate) fn is_idle(&self) -> bool {
        match self.used_for {
            Use::Idle => true,
            Use::Streams => self.has_no_streams(),
            Use::Exchange(_) | Use::Tunnel(_) | Use::Mirror(_) | Use::Closing => false,
        }
    }

    /// Whether the connection has no stream, and no request waits to open one.
    pub(crate) fn has_no_streams(&self) -> bool {
        self.awaiting.is_empty() && self.h2.as_ref().is_none_or(|h2| h2.is_idle())
    }

    /// As [`Self::touch`]; also marks the stream, if there is one.
    #[inline]
    pub(crate) fn touch_leg(
        &mut self,
        id: UpstreamId,
        stream: Option<StreamNo>,
        touched: &mut Vec<UpstreamId>,
    ) {
        if let (Some(no), Some(h2)) = (stream, &mut self.h2) {
            h2.touch(no);
        }
        self.touch(id, touched);
    }

    pub(crate) fn new(transport: Transport<S>, server: ServerId, life: Life) -> Self {
        Self {
            transport,
            used_for: Use::Idle,
            h2: None,
            awaiting: Vec::new(),
            intake: Intake::Open,
            held: Vec::new(),
            part: Part::default(),
            may_have_more: false,
            ended: false,
            server,
            slot: None,
            life,
            descriptor: None,
            links: Links::default(),
            timer: Timer::default(),
            moved: false,
            touched: false,
        }
    }
}

impl<S: Socket> Upstream<S> {
    /// Request bytes that wait for the server, on this stream or (`None`) on the connection. For a stream, bytes in the
    /// connection's buffer do not count, since the stream does not learn when they are sent.
    #[inline]
    pub(crate) fn pending(&self, stream: Option<StreamNo>) -> usize {
        match stream {
            None => self.transport.pending(),
            Some(no) => self.pending_of(no),
        }
    }

    #[inline(never)]
    fn pending_of(&self, no: StreamNo) -> usize {
        self.h2.as_ref().and_then(|h2| h2.get(no)).map_or(0, Stream::pending)
    }
}
