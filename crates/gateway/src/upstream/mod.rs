//! Upstreams: services, their connections, and the pools of those.

mod balance;
mod life;
mod pick_context;
mod pool;
mod server;
mod service;
mod wait;

pub(crate) use crate::hash::{hash_of, mix};
pub(crate) use crate::limits::{Slot, Slots};
pub(crate) use balance::PickContext;
pub(crate) use life::Life;
pub(crate) use pool::{Links, Pool, Pooled, join};
pub(crate) use server::{Counted, Server};
pub(crate) use service::Service;
pub(crate) use wait::Wait;

use crate::keys::{ExchangeId, MirrorId, ServerId, TunnelId, UpstreamId};
use crate::limits::Descriptor;
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
    /// What is known of that.
    pub part: Part,
    /// The last read may have left bytes behind.
    pub may_have_more: bool,
    /// The server has closed its sending side.
    pub ended: bool,
    pub server: ServerId,
    /// Its part of the server's limit, if that has one.
    pub slot: Option<Slot>,
    pub life: Life,
    pub descriptor: Option<Descriptor>,
    /// Its place in the pool.
    pub links: Links,
    pub timer: Timer<Wait>,
    /// Bytes moved since the timer was last looked at.
    pub moved: bool,
    /// Is in the list of connections that are settled at the turn's end.
    pub touched: bool,
}

/// What a connection works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing: it is in the pool.
    Idle,
    Exchange(ExchangeId),
    Tunnel(TunnelId),
    /// A copy of a request.
    Mirror(MirrorId),
    /// Nothing more: its last bytes leave, and it is closed.
    Closing,
}

impl<S> Upstream<S> {
    /// Has output, interest and deadline updated at the turn's end.
    #[inline]
    pub(crate) fn touch(&mut self, id: UpstreamId, touched: &mut Vec<UpstreamId>) {
        if !std::mem::replace(&mut self.touched, true) {
            touched.push(id);
        }
    }

    /// A connection without a used_for.
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
