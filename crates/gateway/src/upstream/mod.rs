//! Upstreams: services, their servers, and the connections to these.

mod balance;
mod connection_age;
mod pick_context;
mod pool;
mod retry_budget;
mod server;
mod service;
mod wait;

pub(crate) use crate::hash::{hash_of, mix};
pub(crate) use crate::limits::{Slot, Slots};
pub(crate) use connection_age::Life;
pub(crate) use pick_context::PickContext;
pub(crate) use pool::{Links, Pool, Pooled, join};
pub(crate) use server::{Counted, Server};
pub(crate) use service::Service;
pub(crate) use wait::Wait;

use crate::keys::{ExchangeId, MirrorId, ServerId, TunnelId, UpstreamId};
use crate::limits::Descriptor;
use retry_budget::Budget;
use weir_http1::Part;
use weir_reactor::Timer;
use weir_transport::Transport;

/// One connection to a server.
#[derive(Debug)]
pub(crate) struct Upstream<S> {
    pub transport: Transport<S>,
    pub used_for: Use,
    /// A partial response head.
    pub held: Vec<u8>,
    /// The parse state of `held`.
    pub part: Part,
    /// The last read filled its buffer, so the socket may have more bytes.
    pub may_have_more: bool,
    /// The server has closed its sending side.
    pub ended: bool,
    pub server: ServerId,
    /// The connection's slot within the server's limit, if the server has one.
    pub slot: Option<Slot>,
    pub life: Life,
    pub descriptor: Option<Descriptor>,
    /// The connection's neighbours in its pool.
    pub links: Links,
    pub timer: Timer<Wait>,
    /// Bytes moved since the deadline was last updated.
    pub moved: bool,
    /// The connection is in the list of those to settle at the turn's end.
    pub touched: bool,
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// None yet: the connection is in the pool, or just dialled.
    Idle,
    Exchange(ExchangeId),
    Tunnel(TunnelId),
    /// A mirrored request.
    Mirror(MirrorId),
    /// None left: the gateway sends the pending bytes, then closes the connection.
    Closing,
}

impl<S> Upstream<S> {
    /// Schedules an update of output, interest and deadline for the turn's end.
    #[inline]
    pub(crate) fn touch(&mut self, id: UpstreamId, touched: &mut Vec<UpstreamId>) {
        if !std::mem::replace(&mut self.touched, true) {
            touched.push(id);
        }
    }

    /// A connection without a purpose yet.
    pub(crate) fn new(transport: Transport<S>, server: ServerId, life: Life) -> Self {
        Self {
            transport,
            used_for: Use::Idle,
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
