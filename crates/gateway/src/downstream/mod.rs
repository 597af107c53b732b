//! A client's connection.

mod body_deadlines;
mod frontend;
mod rate_meter;
mod wait;

pub(crate) use crate::config::{LEAST_BUFFER, MAX_PENDING, MinRates};
pub(crate) use body_deadlines::{BodyDeadlines, BodyProgress, Cause, Slow};
pub(crate) use frontend::{Frontend, Preface};
pub(crate) use wait::Wait;

use crate::heads::forwarded::Proxy;
use crate::heads::rewrite;
use crate::keys::{ClientId, ExchangeId, TunnelId};
use crate::limits::{Descriptor, Permit};
use crate::worker::Core;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use weir_http1::Part;
use weir_preface::proxy::Addresses;
use weir_reactor::{Net, Socket, Timer};
use weir_tls::ClientCertificate;
use weir_transport::Transport;

/// One downstream connection.
#[derive(Debug)]
pub(crate) struct Client<S> {
    pub transport: Transport<S>,
    /// Where it came from.
    pub frontend: Rc<Frontend>,
    /// The other end of the connection; `None` on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Whether that is a proxy in front.
    pub is_trusted: bool,
    /// Who sent the request: the peer, or whom a proxy in front names. Without a port then.
    pub client_address: Option<SocketAddr>,
    /// Where it connected to, if a proxy in front says so.
    pub destination: Option<SocketAddr>,
    pub accepted: Instant,
    /// Its place among the connections of its client, if those are counted.
    pub permit: Option<Permit>,
    pub descriptor: Option<Descriptor>,
    /// What it presented in its handshake.
    pub certificate: Option<Box<ClientCertificate>>,
    /// The header lines added to every request of this connection.
    pub forwarded: Box<[u8]>,
    /// Received but unprocessed bytes: a partial head, or pipelined requests.
    pub held: Vec<u8>,
    /// What is known of that, if it is a part of a head.
    pub part: Part,
    pub phase: Phase,
    /// The client has closed its sending side. It may still be waiting for a response.
    pub ended: bool,
    pub timer: Timer<Cause>,
    /// While a body is on its way, in either direction.
    pub body_deadlines: Option<Box<BodyDeadlines>>,
    /// Bytes moved since the timer was last looked at.
    pub moved: bool,
    pub handshake: Handshake,
    /// Is in the list of connections that are settled at the turn's end.
    pub touched: bool,
}

/// What the connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its first bytes are looked at, and held.
    Preface(Preface),
    /// Waiting for a request head; `started` once a part has arrived.
    Head { started: bool },
    /// Its request is held, queued, or on its way.
    Exchange(ExchangeId),
    /// Bytes pass both ways.
    Tunnel(TunnelId),
    /// The last response is staged; further input is discarded, so that the response is not lost to a
    /// reset (RFC 9112 section 9.6).
    Closing,
}

/// Where a handshake is, or what comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// It is finished, or there is none.
    Over,
    /// The client is waited for. The number tells one such wait from another.
    Awaited(u32),
    /// It waits for its turn: nothing is read.
    Ready,
}

impl<S: Socket> Client<S> {
    /// A connection that was just accepted.
    pub(crate) fn new(
        transport: Transport<S>,
        frontend: Rc<Frontend>,
        peer: Option<SocketAddr>,
        now: Instant,
        forwarded: Box<[u8]>,
    ) -> Self {
        let phase = frontend.preface().map_or(Phase::Head { started: false }, Phase::Preface);
        Self {
            transport,
            is_trusted: frontend.trusts(peer.map(|peer| peer.ip())),
            frontend,
            peer,
            client_address: peer,
            destination: None,
            accepted: now,
            permit: None,
            descriptor: None,
            certificate: None,
            forwarded,
            held: Vec::new(),
            part: Part::default(),
            phase,
            ended: false,
            timer: Timer::default(),
            body_deadlines: None,
            moved: false,
            handshake: Handshake::Over,
            touched: false,
        }
    }

    /// A proxy in front has said whose connection it passes on; `None`: its own.
    pub(crate) fn is_passed_on(&mut self, addresses: Option<Addresses>) {
        let Some(Addresses { source, destination }) = addresses else { return };
        self.peer = Some(source);
        self.client_address = self.peer;
        self.destination = Some(destination);
        self.is_trusted = self.frontend.trusts(Some(source.ip()));
        self.forwarded = rewrite::forwarded(self.peer, self.frontend.tls.is_some());
    }

    /// The proxy in front, if it is trusted.
    #[inline]
    pub(crate) fn proxy(&self) -> Option<Proxy> {
        let ip = |address: Option<SocketAddr>| address.map(|address| address.ip());
        let field = self.frontend.proxy_field;
        self.is_trusted.then(|| Proxy { address: ip(self.peer), client: ip(self.client_address), field })
    }

    /// Both ends of its connection, as far as they have addresses.
    pub(crate) fn addresses(&self) -> Option<Addresses> {
        let destination = self.destination.or_else(|| self.transport.local())?;
        Some(Addresses { source: self.peer?, destination })
    }

    /// Its request has been answered: the next one has all its time, though what the client is waited for may be the same at the
    /// turn's end as it was before. The wheel's entry stays, so this is a few stores.
    #[inline]
    pub(crate) fn request_is_over(&mut self) {
        self.phase = Phase::Head { started: false };
        self.moved = true;
        self.timer.clear();
        if let Some(body_deadlines) = &mut self.body_deadlines {
            body_deadlines.waits = None;
        }
    }

    /// Has output, interest and deadline updated at the turn's end.
    #[inline]
    pub(crate) fn touch(&mut self, id: ClientId, touched: &mut Vec<ClientId>) {
        if !std::mem::replace(&mut self.touched, true) {
            touched.push(id);
        }
    }

    /// Waits for its next request, or continues with the part that it holds.
    #[inline]
    pub(crate) fn goes_on<N: Net<Socket = S>>(&mut self, id: ClientId, core: &mut Core<N>) {
        if !self.held.is_empty() {
            core.resumable.push(id);
        }
        self.touch(id, &mut core.touched.clients);
    }

    /// Whether no further request can come: its stream has ended and is fully processed.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.held.is_empty()
    }

    /// Whether its next step may be one of a handshake.
    #[inline]
    pub(crate) fn is_in_handshake(&self) -> bool {
        self.transport.is_in_handshake() || matches!(self.phase, Phase::Preface(_))
    }

    /// Whether it has had an answer to its first message, if that is one of a handshake.
    pub(crate) fn has_been_answered(&self) -> bool {
        self.transport.taken() > 0 || self.transport.pending() > 0
    }

    /// Whether it is kept alive between requests.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Head { started: false } && self.transport.is_open()
    }

    /// The exchange in progress.
    pub(crate) fn exchange(&self) -> Option<ExchangeId> {
        match self.phase {
            Phase::Exchange(id) => Some(id),
            Phase::Preface(_) | Phase::Head { .. } | Phase::Tunnel(_) | Phase::Closing => None,
        }
    }

    /// Whether to read. Until the response is complete the client may pipeline further requests, within bounds.
    pub(crate) fn wants_read(&self, upward: Upward) -> bool {
        !self.ended
            && match (self.phase, upward) {
                (Phase::Closing | Phase::Preface(_), _) => true,
                // The gateway responds to some requests itself, and may be faster than the client reads.
                (Phase::Head { .. }, _) => self.transport.pending() < MAX_PENDING,
                (_, Upward::Complete) => self.held.len() < MAX_HELD,
                (_, Upward::Flowing { pending }) => pending < MAX_PENDING,
            }
    }
}

/// The way up, as seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upward {
    /// The request is complete: what comes now is the next one.
    Complete,
    /// Bytes are passed on; how many the upstream has not taken.
    Flowing { pending: usize },
}

/// How much pipelined input is buffered during an exchange.
const MAX_HELD: usize = 16 * 1024;
