//! A client's connection.

mod current_wait;
mod frontend;
mod objections;
mod own_response;

pub(crate) use crate::config::{LEAST_BUFFER, MAX_PENDING};
pub(crate) use frontend::{Frontend, Preface, TcpTo};

use crate::config::document::Underscores;
use crate::deadlines::{BodyDeadlines, Cause};
use crate::drain::ClientDrain;
use crate::exchange::Leg;
use crate::h2::H2;
use crate::heads::forwarded::Proxy;
use crate::heads::rewrite;
use crate::keys::{ClientId, ExchangeId, TunnelId};
use crate::limits::{Descriptor, Permit};
use crate::worker::Core;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use weir_http1::Part;
use weir_http2::StreamNo;
use weir_preface::proxy::Addresses;
use weir_reactor::{Net, Socket, Timer};
use weir_tls::ClientCertificate;
use weir_transport::{Fault, Transport, Wire};

/// A client's connection, from the accept to its close.
#[derive(Debug)]
pub(crate) struct Client<S> {
    pub transport: Transport<S>,
    /// The listener that accepted the connection.
    pub frontend: Rc<Frontend>,
    /// The peer's address, or the source address in its PROXY protocol header; `None` on a Unix socket.
    pub peer: Option<SocketAddr>,
    pub is_trusted: bool,
    /// The client's address: the peer's, or the one that a trusted proxy reports (with port 0).
    pub client_address: Option<SocketAddr>,
    /// The address that the client connected to, if a PROXY protocol header reports it.
    pub destination: Option<Box<SocketAddr>>,
    pub accepted: Instant,
    /// The permit that counts the connection, if connections per client are limited.
    pub permit: Option<Permit>,
    pub descriptor: Option<Descriptor>,
    /// The certificate that the client presented in its handshake.
    pub certificate: Option<Box<ClientCertificate>>,
    /// The index of the certificate that the client's SNI selected; `None` if no request on this connection can be
    /// misdirected (RFC 9110 section 7.4).
    pub named_certificate: Option<u32>,
    /// Whether [`Self::objection`] checks each request.
    pub may_object: bool,
    /// The field lines about the client (`X-Forwarded-*`) for this connection's requests, if no trusted proxy is in
    /// front and the configuration sets no other forms.
    pub forwarded: Box<[u8]>,
    /// Received but unprocessed bytes: a partial preface, head or frame, or pipelined input.
    pub held: Vec<u8>,
    /// The parse state of `held`, if that is a partial head.
    pub part: Part,
    pub phase: Phase,
    /// The streams, in [`Phase::Streams`].
    pub h2: Option<Box<H2>>,
    /// Whether the client has closed its sending side. It may still be waiting for a response.
    pub ended: bool,
    pub timer: Timer<Cause>,
    /// The limits on a response whose exchange is over, while the client reads its last bytes.
    pub body_deadlines: Option<Box<BodyDeadlines>>,
    /// Whether bytes of a tunnel or of the last response have moved since the deadline was last updated.
    pub moved: bool,
    pub handshake: Handshake,
    pub drain: ClientDrain,
    /// Whether the connection is in the list of connections to settle at the turn's end.
    pub touched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The gateway parses and holds the first bytes.
    Preface(Preface),
    /// Waiting for a request head; `started`: the gateway has received part of it.
    Head { started: bool },
    /// A request is buffered, queued or being forwarded.
    Exchange(ExchangeId),
    /// HTTP/2: requests are streams.
    Streams,
    /// The gateway forwards bytes both ways.
    Tunnel(TunnelId),
    /// The last response is staged; further input is discarded, so that the response is not lost to a
    /// reset (RFC 9112 section 9.6).
    Closing,
}

/// The state of a handshake or of the preface before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// The handshake has finished, or the connection needs none.
    Over,
    /// Waiting for the client. The number distinguishes this wait from earlier ones.
    Awaited(u32),
    /// Waiting for its turn; meanwhile the gateway does not read from the client.
    Ready,
}

impl<S: Socket> Client<S> {
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
            may_object: frontend.underscores == Underscores::Reject,
            frontend,
            peer,
            client_address: peer,
            destination: None,
            accepted: now,
            permit: None,
            descriptor: None,
            certificate: None,
            named_certificate: None,
            forwarded,
            held: Vec::new(),
            part: Part::default(),
            phase,
            h2: None,
            ended: false,
            timer: Timer::default(),
            body_deadlines: None,
            moved: false,
            handshake: Handshake::Over,
            drain: ClientDrain::No,
            touched: false,
        }
    }

    /// Adopts the addresses in a PROXY protocol header; `None`: the proxy itself is the client, as in a health check.
    pub(crate) fn is_passed_on(&mut self, addresses: Option<Addresses>) {
        let Some(Addresses { source, destination }) = addresses else { return };
        self.peer = Some(source);
        self.client_address = self.peer;
        self.destination = Some(Box::new(destination));
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

    /// The addresses of client and destination, if both are known.
    pub(crate) fn addresses(&self) -> Option<Addresses> {
        let destination = self.destination.as_deref().copied().or_else(|| self.transport.local())?;
        Some(Addresses { source: self.peer?, destination })
    }

    /// Waits for the next request after a complete response. Clears the deadline: otherwise the next wait, if of the
    /// same kind, would continue the old timeout. The timer's entry stays in the wheel, so clearing takes only a few
    /// stores.
    #[inline]
    pub(crate) fn request_is_over(&mut self) {
        self.phase = Phase::Head { started: false };
        self.moved = true;
        self.timer.clear();
        if let Some(body_deadlines) = &mut self.body_deadlines {
            body_deadlines.waits = None;
        }
    }

    /// Schedules an update of output, poller interest and deadline for the turn's end.
    #[inline]
    pub(crate) fn touch(&mut self, id: ClientId, touched: &mut Vec<ClientId>) {
        if !std::mem::replace(&mut self.touched, true) {
            touched.push(id);
        }
    }

    /// Waits for the next request, or continues with the held bytes.
    #[inline]
    pub(crate) fn goes_on<N: Net<Socket = S>>(&mut self, id: ClientId, core: &mut Core<N>) {
        if !self.held.is_empty() {
            core.resumable.push(id);
        }
        self.touch(id, &mut core.touched.clients);
    }

    /// Whether no further request can follow: the client's stream has ended and is fully processed.
    pub(crate) fn is_done(&self) -> bool {
        self.ended && self.held.is_empty()
    }

    /// Whether the connection is in its handshake or its preface, whose steps wait for their turn.
    #[inline]
    pub(crate) fn is_in_handshake(&self) -> bool {
        self.transport.is_in_handshake() || matches!(self.phase, Phase::Preface(_))
    }

    /// Whether the gateway has sent or queued bytes, such as its first handshake flight.
    pub(crate) fn has_sent(&self) -> bool {
        self.transport.taken() > 0 || self.transport.pending() > 0
    }

    /// Whether the connection is idle between requests.
    pub(crate) fn is_idle(&self) -> bool {
        let is_idle = match self.phase {
            Phase::Head { started } => !started,
            Phase::Streams => self.h2.as_ref().is_none_or(|h2| h2.is_idle()),
            Phase::Preface(_) | Phase::Exchange(_) | Phase::Tunnel(_) | Phase::Closing => false,
        };
        is_idle && self.transport.is_open()
    }

    /// The exchange in progress, in HTTP/1.1.
    pub(crate) fn exchange(&self) -> Option<ExchangeId> {
        match self.phase {
            Phase::Exchange(id) => Some(id),
            Phase::Preface(_) | Phase::Head { .. } | Phase::Streams | Phase::Tunnel(_) | Phase::Closing => {
                None
            }
        }
    }

    /// Response bytes that wait for the client: those of this stream and those in the connection's buffer. `None`:
    /// those in the buffer alone.
    #[inline]
    pub(crate) fn pending(&self, stream: Option<StreamNo>) -> usize {
        match stream {
            None => self.transport.pending(),
            Some(no) => self.pending_of(no),
        }
    }

    // Out of line, like the other code for streams, so that it does not slow down HTTP/1.1.
    #[inline(never)]
    fn pending_of(&self, no: StreamNo) -> usize {
        let stream = self.h2.as_ref().and_then(|h2| h2.get(no));
        stream.map_or(0, |stream| stream.pending() + self.transport.pending())
    }

    /// Whether a stream's response waits for others because of its priority, so that the delay is not the client's
    /// fault.
    #[inline]
    pub(crate) fn yields(&self, stream: Option<StreamNo>) -> bool {
        stream.is_some_and(|no| self.h2.as_ref().is_some_and(|h2| h2.yields(no)))
    }

    /// Response bytes that the client has taken, on this stream or (`None`) on the connection. The transfer rates are
    /// derived from this count.
    pub(crate) fn taken(&self, stream: Option<StreamNo>) -> u64 {
        match stream {
            None => self.transport.taken(),
            Some(no) => self.h2.as_ref().and_then(|h2| h2.get(no)).map_or(0, |stream| stream.sent),
        }
    }

    /// As [`Self::touch`]; also marks the stream of this leg.
    #[inline]
    pub(crate) fn touch_leg(&mut self, leg: Leg, touched: &mut Vec<ClientId>) {
        if let Some(no) = leg.stream {
            self.touch_stream(no);
        }
        self.touch(leg.client, touched);
    }

    #[inline(never)]
    fn touch_stream(&mut self, no: StreamNo) {
        if let Some(h2) = &mut self.h2 {
            h2.touch(no);
        }
    }

    /// Closes our side after all output. Errors: the connection failed.
    pub(crate) fn finish(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        if let Some(h2) = &mut self.h2 {
            h2.connection.close();
            h2.connection.settle(self.transport.stage(wire));
        }
        self.transport.finish(wire)
    }

    /// Switches the connection to HTTP/2: from now on, requests are streams.
    pub(crate) fn begin_h2(&mut self) {
        self.phase = Phase::Streams;
        self.h2 = Some(Box::new(H2::of_client(&self.frontend.http2_config)));
    }

    /// Whether to read from the client. Until the response is complete the client may pipeline further requests, within
    /// bounds.
    pub(crate) fn wants_read(&self, upward: Upward) -> bool {
        !self.ended
            && match (self.phase, upward) {
                (Phase::Closing | Phase::Preface(_), _) => true,
                // Stops reading while the client does not read its responses: the gateway's own ones could pile up.
                (Phase::Head { .. }, _) => self.transport.pending() < MAX_PENDING,
                // The limit is twice the usual one, so that one stream does not block the others. Without a limit,
                // responses to control frames could grow indefinitely.
                (Phase::Streams, _) => {
                    let is_postponed = self.h2.as_ref().is_some_and(|h2| h2.is_postponed);
                    self.transport.pending() < 2 * MAX_PENDING && !is_postponed
                }
                (_, Upward::Complete) => self.held.len() < MAX_HELD,
                (_, Upward::Flowing { pending }) => pending < MAX_PENDING,
            }
    }
}

/// The state of the direction from client to upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upward {
    /// The request is complete: further bytes belong to the next one.
    Complete,
    /// The gateway forwards bytes; `pending` of them wait for the upstream.
    Flowing { pending: usize },
}

/// The length of pipelined input at which the gateway stops reading during an exchange.
const MAX_HELD: usize = 16 * 1024;
