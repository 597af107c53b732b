//! One core's worker: its loop, its connections, and how they end.

use crate::answer;
use crate::client::{Client, State};
use crate::core::Core;
use crate::deadline::Deadline;
use crate::exchange::{Answer, Exchange};
use crate::lines;
use crate::log::Context;
use crate::reason::Reason;
use crate::rewrite;
use crate::upstream::{Pool, Upstream};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;
use weir_http1::Version;
use weir_reactor::mailbox::Mailbox;
use weir_reactor::stop::Stop;
use weir_reactor::{Events, Interest, Key, Listener, Ready, Slab};
use weir_tls::{Acceptor, TlsError};
use weir_transport::{Fault, Transport};

/// All state of one core.
#[derive(Debug)]
pub(crate) struct Worker {
    pub core: Core,
    pub clients: Slab<Client>,
    pub upstreams: Slab<Upstream>,
    pub pool: Pool,
    /// Clients that have sent their next request while the last one was being answered.
    pub resumable: Vec<Key>,
    doors: Vec<Door>,
    mailbox: Mailbox<Stop>,
    drained_by: Option<Instant>,
}

/// A listener with what its connections speak.
#[derive(Debug)]
pub(crate) struct Door {
    pub listener: Listener,
    pub acceptor: Option<Acceptor>,
}

impl Worker {
    pub(crate) fn new(core: Core, doors: Vec<Door>, mailbox: Mailbox<Stop>) -> io::Result<Self> {
        for (index, door) in doors.iter().enumerate() {
            core.reactor.register(&door.listener, Key::fixed(DOOR, index as u32), Interest::READ)?;
        }
        mailbox.register(&core.reactor, Key::fixed(MAILBOX, 0))?;
        Ok(Self {
            core,
            clients: Slab::new(CLIENT),
            upstreams: Slab::new(UPSTREAM),
            pool: Pool::default(),
            resumable: Vec::new(),
            doors,
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

    /// One turn. Upstreams come first, so that a pooled connection that has just been closed is not given a request;
    /// then warm clients; then, as far as the budget goes, handshakes, each of which costs as much as twenty requests;
    /// then new connections. What the budget leaves is told again in the next turn.
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
                DOOR => self.watch_door(due.index(), Interest::READ)?,
                CLOSING => self.close_doors()?,
                _ => {}
            }
        }
        for ready in events.ready().filter(|ready| ready.key.tag() == DOOR) {
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
            let Some(door) = self.doors.get(index) else { break };
            match door.listener.accept() {
                Ok(Some((socket, peer))) => self.welcome(index, socket, peer),
                Ok(None) => break,
                // Out of descriptors or memory: the connection waits in the queue while some are closed.
                Err(error) => {
                    let pause = ACCEPT_PAUSE.as_millis();
                    lines::err(format_args!("weir: accept: {error}; trying again in {pause} ms"));
                    self.watch_door(index as u32, Interest::NONE)?;
                    let again = self.core.reactor.now() + ACCEPT_PAUSE;
                    self.core.reactor.arm(again, Key::fixed(DOOR, index as u32));
                    break;
                }
            }
        }
        Ok(())
    }

    fn watch_door(&mut self, index: u32, interest: Interest) -> io::Result<()> {
        let Some(door) = self.doors.get(index as usize) else { return Ok(()) };
        self.core.reactor.reregister(&door.listener, Key::fixed(DOOR, index), interest)
    }

    fn welcome(&mut self, index: usize, socket: OwnedFd, peer: SocketAddr) {
        let session = self.doors[index].acceptor.as_ref().map(Acceptor::accept);
        let tls = session.is_some();
        let client = Client {
            transport: Transport::accepted(socket, session),
            peer,
            forwarded: rewrite::forwarded(peer, tls),
            held: Vec::new(),
            state: State::Head { begun: false },
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

    /// Brings the poller's interest into line with the client's state; removes a client that is done.
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

    /// Answers with the reason, as long as no answer has begun, and closes the connection behind that.
    pub(crate) fn refuse(&mut self, key: Key, reason: Reason) {
        // What was being put together for this exchange goes to nobody, least of all to the next one.
        self.core.outbox.clear();
        let Some(client) = self.clients.get_mut(key) else { return };
        let mut method = None;
        if let State::Exchange(exchange) = &client.state {
            if !matches!(exchange.answer, Answer::Awaited) {
                return self.abort(key, reason);
            }
            method = Some(exchange.method);
        }
        self.note_end(key, &reason);
        self.release_upstream(key);
        let Some(client) = self.clients.get_mut(key) else { return };
        let mut own = Vec::new();
        answer::write(&reason, method, &mut own);
        if client.transport.send(&own, &mut self.core.wire).is_err() {
            self.clients.remove(key);
            return;
        }
        self.close(key);
    }

    /// Ends an exchange whose answer has begun: cutting the connection is all that is left to say.
    pub(crate) fn abort(&mut self, key: Key, reason: Reason) {
        self.note_end(key, &reason);
        self.cut(key);
    }

    /// Removes a client that has not got its whole answer. Where the end of the connection is all that ends an answer,
    /// that end must not look like one.
    fn cut(&mut self, key: Key) {
        if let Some(client) = self.clients.get(key) {
            let by_end =
                matches!(&client.state, State::Exchange(exchange) if exchange.version == Version::Http10);
            if by_end || client.transport.pending() > 0 {
                client.transport.reset();
            }
        }
        self.drop_client(key);
    }

    /// Ends our side behind what still waits, and listens to the client's rest for a while.
    pub(crate) fn close(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.state = State::Closing;
        client.held = Vec::new();
        if client.transport.finish().is_err() {
            self.clients.remove(key);
            return;
        }
        self.extend_closing(key);
        self.settle_client(key);
    }

    /// A closing client's deadline: as long as it takes our last answer, no progress; from then on, the linger time.
    pub(crate) fn extend_closing(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let timeouts = &self.core.settings.timeouts;
        let within = if client.transport.pending() > 0 { timeouts.stall } else { timeouts.linger };
        client.deadline.set(self.core.reactor.now() + within, &mut self.core.reactor, key);
    }

    /// The client's connection is of no more use.
    pub(crate) fn lose_client(&mut self, key: Key, fault: Fault) {
        let Some(client) = self.clients.get_mut(key) else { return };
        match (&client.state, &fault) {
            (State::Closing, _) => {}
            (_, Fault::Tls(error)) => {
                let plain_http = matches!(error, TlsError::NotTls { .. });
                // The alert that tells the client why must not be lost to a reset; and one that spoke cleartext
                // cannot read an alert, so it is answered in its own language.
                client.transport.give_up_tls();
                let reason = Reason::ClientTls(fault);
                if plain_http {
                    return self.refuse(key, Reason::NotTls);
                }
                self.note_end(key, &reason);
                self.release_upstream(key);
                return self.close(key);
            }
            (State::Exchange(_), _) => self.note_end(key, &Reason::ClientClosed),
            (State::Head { .. }, _) => {}
        }
        self.drop_client(key);
    }

    /// Removes the client, and the upstream connection that works for it.
    pub(crate) fn drop_client(&mut self, key: Key) {
        self.release_upstream(key);
        self.clients.remove(key);
    }

    /// Closes the upstream connection of the client's unfinished exchange.
    fn release_upstream(&mut self, key: Key) {
        if let Some(Client { state: State::Exchange(exchange), .. }) = self.clients.get(key) {
            self.upstreams.remove(exchange.upstream);
        }
    }

    pub(crate) fn note_end(&mut self, key: Key, reason: &Reason) {
        let Some(client) = self.clients.get(key) else { return };
        let request = match &client.state {
            State::Exchange(exchange) => Some(exchange.line.as_str()),
            _ => None,
        };
        self.core.log.ended(self.core.reactor.now(), reason, Context { client: client.peer, request });
    }

    fn client_due(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if !client.deadline.has_come(&mut self.core.reactor, key) {
            return;
        }
        match &client.state {
            State::Closing => self.cut(key),
            _ if !client.transport.is_open() => self.abort(key, Reason::HandshakeTimeout),
            State::Head { begun: true } => self.refuse(key, Reason::HeadTimeout),
            State::Head { begun: false } => {
                // What came in this very turn still counts.
                self.read_client(key);
                if let Some(Client { state: State::Head { begun: false }, .. }) = self.clients.get(key) {
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
        for index in 0..self.doors.len() {
            self.doors[index].listener.refuse_new();
        }
        self.core.reactor.arm(now + HANDSHAKES_END, Key::fixed(CLOSING, 0));
        let soon = now + self.core.settings.timeouts.drain_idle;
        for key in self.clients.keys() {
            let Some(client) = self.clients.get_mut(key) else { continue };
            if matches!(client.state, State::Head { begun: false }) && client.transport.is_open() {
                client.deadline.set(soon, &mut self.core.reactor, key);
            }
        }
        Ok(())
    }

    /// Takes the last that wait, so that none of them is reset.
    fn close_doors(&mut self) -> io::Result<()> {
        for index in 0..self.doors.len() {
            self.accept(index, usize::MAX)?;
        }
        self.doors.clear();
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
        self.doors.is_empty() && self.clients.is_empty()
    }
}

const CLIENT: u8 = 1;
const UPSTREAM: u8 = 2;
const DOOR: u8 = 3;
const MAILBOX: u8 = 4;
const CLOSING: u8 = 5;

/// Four handshakes are one to four milliseconds: what a warm request may have to wait for at the worst.
const HANDSHAKES_PER_TURN: usize = 4;
/// An accept is some five microseconds; a full turn of them stays well below a millisecond.
const ACCEPTS_PER_TURN: usize = 64;
/// How long a drain waits for TCP handshakes that have begun: a client whose connect has returned may have sent its
/// request already. One round trip, with a lost segment not counted.
const HANDSHAKES_END: std::time::Duration = std::time::Duration::from_millis(200);
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
