//! One worker: its listeners, its connections, its loop.

use crate::connection::Connection;
use crate::context::{Context, Needs};
use crate::counters::Counters;
use crate::settings::HttpVersions;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_reactor::mailbox::Mailbox;
use weir_reactor::stop::Stop;
use weir_reactor::{Events, Frontends, Key, Listener, Reactor, Slab, frontends};
use weir_tls::Acceptor;
use weir_transport::{Fault, Transport};

const LISTENER: u8 = 1;
const MAILBOX: u8 = 2;
const CONNECTION: u8 = 3;

/// Maximum duration of a drain; unfinished connections are aborted.
const DRAIN: Duration = Duration::from_secs(5);

/// One worker's state.
pub(crate) struct Worker {
    reactor: Reactor,
    frontends: Frontends<Reactor, Option<Acceptor>>,
    mailbox: Mailbox<Stop>,
    connections: Slab<Connection>,
    context: Context,
    /// Connections that continue in the next turn without waiting for an event.
    again: Vec<Key>,
    deadline: Option<Instant>,
}

impl Worker {
    pub(crate) fn new(
        index: usize,
        listeners: Vec<(Listener, Option<Acceptor>)>,
        mailbox: Mailbox<Stop>,
        counters: Arc<[Counters]>,
        null: Option<Arc<[u8]>>,
        http: HttpVersions,
    ) -> io::Result<Self> {
        let reactor = Reactor::new()?;
        let frontends = Frontends::new(listeners, LISTENER, &reactor)?;
        mailbox.register(&reactor, Key::fixed(MAILBOX, 0))?;
        let context = Context::new(reactor.now(), counters, index, null, http);
        let connections = Slab::new(CONNECTION);
        Ok(Self { reactor, frontends, mailbox, connections, context, again: Vec::new(), deadline: None })
    }

    /// Serves until a drain is done.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Events::default();
        loop {
            let until = if self.again.is_empty() { self.deadline } else { Some(self.reactor.now()) };
            self.reactor.turn(&mut events, until)?;
            self.context.now = self.reactor.now();
            for ready in events.ready() {
                match ready.key.tag() {
                    LISTENER => {}
                    MAILBOX => {
                        for stop in self.mailbox.take() {
                            self.stop(stop);
                        }
                    }
                    _ => {
                        self.visit(ready.key, |connection, context| match ready.hangup {
                            true if !connection.wants_input() => Ok(Needs { end: true, ..Needs::default() }),
                            _ => connection.visit(ready.readable, ready.writable, context),
                        });
                    }
                }
            }
            for key in std::mem::take(&mut self.again) {
                self.visit(key, |connection, context| connection.visit(false, false, context));
            }
            for ready in events.ready().filter(|ready| ready.key.tag() == LISTENER) {
                let most = frontends::accepts(self.reactor.spent());
                self.accept(ready.key.index(), most);
            }
            for key in events.due() {
                match key.tag() {
                    LISTENER => {
                        if self.frontends.due(key.index(), &mut self.reactor) {
                            self.close_frontend(key.index());
                        }
                    }
                    _ => self.visit(*key, |connection, context| connection.visit(false, false, context)),
                }
            }
            if let Some(deadline) = self.deadline
                && (self.is_drained() || self.context.now >= deadline)
            {
                return Ok(());
            }
        }
    }

    fn visit(&mut self, key: Key, go: impl FnOnce(&mut Connection, &mut Context) -> Result<Needs, Fault>) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let watched = go(connection, &mut self.context).and_then(|needs| {
            if !needs.end {
                connection.watch(&self.reactor, key).map_err(Fault::Socket)?;
            }
            Ok(needs)
        });
        match watched {
            Ok(needs) if needs.end => drop(self.connections.remove(key)),
            Ok(needs) => {
                if needs.again {
                    self.again.push(key);
                }
                if let Some(wake) = needs.wake {
                    self.reactor.arm(wake, key);
                }
            }
            Err(_) => {
                // A peer with its response may close the connection in any way.
                let failed =
                    self.connections.remove(key).is_some_and(|connection| !connection.owes_nothing());
                self.context.count().failed.add(u64::from(failed));
            }
        }
    }

    fn accept(&mut self, index: u32, most: usize) {
        for _ in 0..most {
            let socket = match self.frontends.accept(index, &mut self.reactor) {
                Ok(Some((socket, _))) => socket,
                Ok(None) => return,
                // The process is out of descriptors.
                Err(_) => return self.frontends.rest(index, &mut self.reactor),
            };
            let session = self.frontends.of(index).and_then(Option::as_ref).map(Acceptor::accept);
            self.context.count().connections.add(1);
            let transport = Transport::accepted(socket, session);
            let key = self.connections.insert(Connection::new(transport, &self.context));
            // Data has often already arrived.
            self.visit(key, |connection, context| connection.visit(true, false, context));
        }
    }

    fn stop(&mut self, stop: Stop) {
        if stop == Stop::Now {
            self.deadline = Some(self.context.now);
            return;
        }
        if self.deadline.is_some() {
            return;
        }
        self.deadline = Some(self.context.now + DRAIN);
        self.context.draining = true;
        self.frontends.drain_all(&mut self.reactor);
        self.drain_connections();
    }

    /// Queued connections have completed their TCP handshake; serves them.
    fn close_frontend(&mut self, index: u32) {
        self.accept(index, usize::MAX);
        self.frontends.close(index, &self.reactor);
        self.drain_connections();
    }

    fn drain_connections(&mut self) {
        for key in self.connections.keys() {
            self.visit(key, Connection::drain);
        }
    }

    fn is_drained(&self) -> bool {
        self.frontends.is_closed() && self.connections.is_empty()
    }
}
