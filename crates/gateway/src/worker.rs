//! One core's worker: its loop and its connections.

use crate::client::{Client, State};
use crate::core::Core;
use crate::deadline::Deadline;
use crate::exchange::Exchange;
use crate::reason::Reason;
use crate::rewrite;
use crate::upstream::{Pool, Upstream};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;
use weir_reactor::mailbox::Mailbox;
use weir_reactor::stop::Stop;
use weir_reactor::{Events, Interest, Key, Listener, Ready, Slab};
use weir_tls::Acceptor;
use weir_transport::Transport;

/// All state of one core.
#[derive(Debug)]
pub(crate) struct Worker {
    pub core: Core,
    pub clients: Slab<Client>,
    pub upstreams: Slab<Upstream>,
    pub pool: Pool,
    /// Clients with pipelined requests.
    pub resumable: Vec<Key>,
    frontends: Vec<Frontend>,
    mailbox: Mailbox<Stop>,
    drained_by: Option<Instant>,
}

/// A listener and its TLS acceptor, if any.
#[derive(Debug)]
pub(crate) struct Frontend {
    pub listener: Listener,
    pub acceptor: Option<Acceptor>,
}

impl Worker {
    pub(crate) fn new(core: Core, frontends: Vec<Frontend>, mailbox: Mailbox<Stop>) -> io::Result<Self> {
        for (index, frontend) in frontends.iter().enumerate() {
            core.reactor.register(&frontend.listener, Key::fixed(FRONTEND, index as u32), Interest::READ)?;
        }
        mailbox.register(&core.reactor, Key::fixed(MAILBOX, 0))?;
        Ok(Self {
            core,
            clients: Slab::new(CLIENT),
            upstreams: Slab::new(UPSTREAM),
            pool: Pool::default(),
            resumable: Vec::new(),
            frontends,
            mailbox,
            drained_by: None,
        })
    }

    /// Serves until drained.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut events = Events::default();
        while !self.is_drained() {
            self.core.reactor.turn(&mut events, self.drained_by)?;
            self.turn(&events)?;
        }
        Ok(())
    }

    /// One turn. Upstreams come first, so that no request is assigned to a pooled connection that was just closed;
    /// then warm clients; then, within the budget, handshakes, each of which costs as much as twenty requests;
    /// then new connections. The poller reports the rest again in the next turn.
    fn turn(&mut self, events: &Events) -> io::Result<()> {
        for ready in events.ready().filter(|ready| ready.key.tag() == UPSTREAM) {
            self.upstream_ready(ready.key, ready);
        }
        let mut stopping = false;
        let mut handshakes: Vec<Ready> = Vec::new();
        for ready in events.ready() {
            match ready.key.tag() {
                CLIENT if self.clients.get(ready.key).is_some_and(|client| !client.transport.is_open()) => {
                    handshakes.push(ready);
                }
                CLIENT => self.client_ready(ready.key, ready),
                MAILBOX => stopping = true,
                _ => {}
            }
        }
        for ready in handshakes.into_iter().take(HANDSHAKES_PER_TURN) {
            self.client_ready(ready.key, ready);
        }
        for key in std::mem::take(&mut self.resumable) {
            self.resume_client(key);
        }
        for due in events.due() {
            match due.tag() {
                CLIENT => self.client_due(*due),
                UPSTREAM => self.upstream_due(*due),
                FRONTEND => self.watch_frontend(due.index(), Interest::READ)?,
                CLOSING => self.close_frontends()?,
                _ => {}
            }
        }
        for ready in events.ready().filter(|ready| ready.key.tag() == FRONTEND) {
            self.accept(ready.key.index() as usize, ACCEPTS_PER_TURN)?;
        }
        if stopping {
            for stop in self.mailbox.take() {
                self.stop(stop)?;
            }
        }
        Ok(())
    }

    fn accept(&mut self, index: usize, budget: usize) -> io::Result<()> {
        for _ in 0..budget {
            let Some(frontend) = self.frontends.get(index) else { break };
            match frontend.listener.accept() {
                Ok(Some((socket, peer))) => self.welcome(index, socket, peer),
                Ok(None) => break,
                // Out of descriptors or memory: the connection waits in the queue while some are closed.
                Err(error) => {
                    let pause = ACCEPT_PAUSE.as_millis();
                    self.core.log.line(format_args!("weir: accept: {error}; retrying in {pause} ms"));
                    self.watch_frontend(index as u32, Interest::NONE)?;
                    let again = self.core.reactor.now() + ACCEPT_PAUSE;
                    self.core.reactor.arm(again, Key::fixed(FRONTEND, index as u32));
                    break;
                }
            }
        }
        Ok(())
    }

    fn watch_frontend(&mut self, index: u32, interest: Interest) -> io::Result<()> {
        let Some(frontend) = self.frontends.get(index as usize) else { return Ok(()) };
        self.core.reactor.reregister(&frontend.listener, Key::fixed(FRONTEND, index), interest)
    }

    fn welcome(&mut self, index: usize, socket: OwnedFd, peer: SocketAddr) {
        let session = self.frontends[index].acceptor.as_ref().map(Acceptor::accept);
        let tls = session.is_some();
        let client = Client {
            transport: Transport::accepted(socket, session),
            peer,
            forwarded: rewrite::forwarded(peer, tls),
            held: Vec::new(),
            state: State::Head { started: false },
            ended: false,
            deadline: Deadline::default(),
        };
        self.core.counts.connections += 1;
        let key = self.clients.insert(client);
        let Some(client) = self.clients.get_mut(key) else { return };
        let timeouts = &self.core.settings.timeouts;
        let within = match (tls, self.core.draining) {
            (true, _) => timeouts.handshake,
            (false, false) => timeouts.idle,
            (false, true) => timeouts.drain_idle,
        };
        client.deadline.set(self.core.reactor.now() + within, &mut self.core.reactor, key);
        self.settle_client(key);
    }

    /// Updates the poller's interest to the client's state; removes a finished client.
    pub(crate) fn settle_client(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if matches!(client.state, State::Closing) && client.ended && client.transport.pending() == 0 {
            self.clients.remove(key);
            return;
        }
        let upstream_pending = match &client.state {
            State::Exchange(exchange) => {
                self.upstreams.get(exchange.upstream).map_or(0, |upstream| upstream.transport.pending())
            }
            _ => 0,
        };
        let read = client.wants_read(upstream_pending);
        if client.transport.watch(&self.core.reactor, key, read).is_err() {
            self.drop_client(key);
        }
    }

    fn client_due(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if !client.deadline.has_come(&mut self.core.reactor, key) {
            return;
        }
        match &client.state {
            State::Closing => self.cut(key),
            _ if !client.transport.is_open() => self.abort(key, Reason::HandshakeTimeout),
            State::Head { started: true } => self.refuse(key, Reason::HeadTimeout),
            State::Head { started: false } => {
                // Input of this turn still counts.
                self.read_client(key);
                if let Some(Client { state: State::Head { started: false }, .. }) = self.clients.get(key) {
                    self.close(key);
                }
            }
            State::Exchange(Exchange { request, upstream, .. }) if !request.is_complete() => {
                let taken =
                    self.upstreams.get(*upstream).is_none_or(|upstream| upstream.transport.pending() == 0);
                self.refuse(key, if taken { Reason::BodyTimeout } else { Reason::UpstreamTimeout });
            }
            State::Exchange(_) => self.abort(key, Reason::ClientStalled),
        }
    }

    fn stop(&mut self, stop: Stop) -> io::Result<()> {
        let now = self.core.reactor.now();
        if stop == Stop::Now {
            self.drained_by = Some(now);
            return Ok(());
        }
        self.core.draining = true;
        self.drained_by = Some(now + self.core.settings.timeouts.drain);
        for index in 0..self.frontends.len() {
            self.frontends[index].listener.refuse_new();
        }
        self.core.reactor.arm(now + HANDSHAKES_END, Key::fixed(CLOSING, 0));
        let soon = now + self.core.settings.timeouts.drain_idle;
        for key in self.clients.keys() {
            let Some(client) = self.clients.get_mut(key) else { continue };
            if matches!(client.state, State::Head { started: false }) && client.transport.is_open() {
                client.deadline.set(soon, &mut self.core.reactor, key);
            }
        }
        Ok(())
    }

    /// Accepts the remaining queued connections, so that none is reset.
    fn close_frontends(&mut self) -> io::Result<()> {
        for index in 0..self.frontends.len() {
            self.accept(index, usize::MAX)?;
        }
        self.frontends.clear();
        Ok(())
    }

    fn is_drained(&mut self) -> bool {
        let Some(by) = self.drained_by else { return false };
        if by <= self.core.reactor.now() {
            for key in self.clients.keys() {
                match self.clients.get(key) {
                    Some(Client { state: State::Exchange(_), .. }) => self.refuse(key, Reason::DrainTimeout),
                    _ => self.cut(key),
                }
            }
            return true;
        }
        self.frontends.is_empty() && self.clients.is_empty()
    }
}

const CLIENT: u8 = 1;
const UPSTREAM: u8 = 2;
const FRONTEND: u8 = 3;
const MAILBOX: u8 = 4;
const CLOSING: u8 = 5;

/// Four handshakes take one to four milliseconds: the longest a warm request may have to wait.
const HANDSHAKES_PER_TURN: usize = 4;
/// An accept takes about five microseconds; a full turn stays well below a millisecond.
const ACCEPTS_PER_TURN: usize = 64;
/// How long a drain waits for TCP handshakes in progress: a client whose connect has returned may have sent its
/// request already. One round trip, without retransmissions.
const HANDSHAKES_END: std::time::Duration = std::time::Duration::from_millis(200);
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
