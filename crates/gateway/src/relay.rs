//! The floor target: forwards bytes, terminating and re-originating TLS where asked, without HTTP.
//!
//! It shows the minimum cost of a gateway with the same event loop, TLS and kernel. Each
//! client has its own upstream connection.

use crate::client::MAX_PENDING;
use crate::core::UpstreamAddress;
use crate::serve::{GatewayError, Seed, start};
use crate::settings::Settings;
use crate::worker::Frontend;
use std::io;
use weir_reactor::mailbox::Mailbox;
use weir_reactor::stop::Stop;
use weir_reactor::{Events, Interest, Key, Reactor, Ready, Slab};
use weir_tls::Acceptor;
use weir_transport::{Fault, Transport, Wire};

/// Runs the relay until SIGTERM or SIGINT, which stop it at once. Errors: as [`crate::serve`].
pub fn relay(settings: &Settings) -> Result<(), GatewayError> {
    start(settings, |seed, mailbox| Ok(Relay::new(seed, mailbox)?.run()?))
}

struct Relay {
    reactor: Reactor,
    frontends: Vec<Frontend>,
    upstream: UpstreamAddress,
    /// Receives the stop signal.
    _mailbox: Mailbox<Stop>,
    sides: Slab<Side>,
    wire: Wire,
    inbox: Vec<u8>,
}

/// One of the two connections of a pair.
struct Side {
    transport: Transport,
    other: Option<Key>,
    ended: bool,
}

impl Relay {
    fn new(seed: Seed, mailbox: Mailbox<Stop>) -> io::Result<Self> {
        let reactor = Reactor::new()?;
        for (index, frontend) in seed.frontends.iter().enumerate() {
            reactor.register(&frontend.listener, Key::fixed(FRONTEND, index as u32), Interest::READ)?;
        }
        mailbox.register(&reactor, Key::fixed(MAILBOX, 0))?;
        Ok(Self {
            reactor,
            frontends: seed.frontends,
            upstream: seed.upstream,
            _mailbox: mailbox,
            sides: Slab::new(SIDE),
            wire: Wire::default(),
            inbox: Vec::new(),
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Events::default();
        loop {
            self.reactor.turn(&mut events, None)?;
            for ready in events.ready() {
                match ready.key.tag() {
                    SIDE => {
                        if self.pass(ready).is_err() {
                            self.drop_pair(ready.key);
                        }
                    }
                    FRONTEND => self.accept(ready.key.index() as usize)?,
                    _ => return Ok(()),
                }
            }
        }
    }

    fn accept(&mut self, index: usize) -> io::Result<()> {
        while let Some((socket, _)) = self.frontends[index].listener.accept()? {
            let session = self.upstream.tls.as_ref().map(|(connector, name)| connector.connect(name));
            let Ok(upstream) = Transport::connect(self.upstream.address, session) else { continue };
            let session = self.frontends[index].acceptor.as_ref().map(Acceptor::accept);
            let client = Transport::accepted(socket, session);
            let near = self.sides.insert(Side { transport: client, other: None, ended: false });
            let far = self.sides.insert(Side { transport: upstream, other: Some(near), ended: false });
            if let Some(side) = self.sides.get_mut(near) {
                side.other = Some(far);
            }
            self.settle(near);
            self.settle(far);
        }
        Ok(())
    }

    fn pass(&mut self, ready: Ready) -> Result<(), Fault> {
        let key = ready.key;
        let Some(side) = self.sides.get_mut(key) else { return Ok(()) };
        let Some(other_key) = side.other else { return Ok(()) };
        if ready.writable && (side.transport.pending() > 0 || side.transport.is_connecting()) {
            side.transport.advance(&mut self.wire)?;
            self.settle(other_key);
        }
        let Some(side) = self.sides.get_mut(key) else { return Ok(()) };
        if ready.readable && !side.ended && !side.transport.is_connecting() {
            self.inbox.clear();
            let received = side.transport.receive(&mut self.wire, &mut self.inbox)?;
            side.ended = received.end.is_some();
            let ended = side.ended;
            let Some(other) = self.sides.get_mut(other_key) else { return Ok(()) };
            if !self.inbox.is_empty() {
                other.transport.send(&self.inbox, &mut self.wire)?;
            }
            if ended {
                other.transport.finish()?;
            }
            self.settle(other_key);
        }
        self.settle(key);
        let done = |key| self.sides.get(key).is_none_or(|side| side.ended && side.transport.pending() == 0);
        if done(key) && done(other_key) {
            self.drop_pair(key);
        }
        Ok(())
    }

    fn settle(&mut self, key: Key) {
        let Some(side) = self.sides.get(key) else { return };
        let pending =
            side.other.and_then(|other| self.sides.get(other)).map_or(0, |other| other.transport.pending());
        let Some(side) = self.sides.get_mut(key) else { return };
        let read = !side.ended && pending < MAX_PENDING;
        if side.transport.watch(&self.reactor, key, read).is_err() {
            self.drop_pair(key);
        }
    }

    fn drop_pair(&mut self, key: Key) {
        let Some(side) = self.sides.remove(key) else { return };
        if let Some(other) = side.other {
            self.sides.remove(other);
        }
    }
}

const SIDE: u8 = 1;
const FRONTEND: u8 = 3;
const MAILBOX: u8 = 4;
