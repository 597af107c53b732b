//! New connections of clients.

use super::Worker;
use crate::config::Role;
use crate::downstream::Client;
use crate::heads::rewrite;
use crate::observe::Context;
use crate::reason::Reason;
use std::net::SocketAddr;
use std::rc::Rc;
use weir_reactor::{Net, frontends};
use weir_tls::Acceptor;
use weir_transport::Transport;

impl<N: Net> Worker<N> {
    /// Accepts what is queued, at most `budget` connections.
    pub(super) fn accept(&mut self, index: u32, budget: usize) {
        for _ in 0..budget {
            match self.frontends.accept(index, &mut self.core.net) {
                Ok(Some((socket, peer))) => self.welcome(index, socket, peer),
                Ok(None) => break,
                // Out of descriptors or memory: the connection waits in the queue while some are closed.
                Err(error) => {
                    let pause = frontends::REST.as_millis();
                    self.core.log.line(format_args!("weir: accept: {error}; retrying in {pause} ms"));
                    break;
                }
            }
        }
    }

    /// A rest is over, or a drain's time for connections in progress.
    pub(super) fn frontend_due(&mut self, index: u32) {
        if self.frontends.due(index, &mut self.core.net) {
            // None of those that are queued is reset.
            for index in self.frontends.indexes() {
                self.accept(index, usize::MAX);
            }
            self.frontends.close(&self.core.net);
        }
    }

    fn welcome(&mut self, index: u32, socket: N::Socket, peer: Option<SocketAddr>) {
        let Some(frontend) = self.frontends.of(index).map(Rc::clone) else { return };
        let admitted = match frontend.is_announced() {
            true if frontend.hears(peer.map(|peer| peer.ip())) => Ok(None),
            true => Err(Reason::UntrustedProxy),
            false => frontend.let_in(peer, &self.peers.crowd, self.core.plan.snapshot.connections_per_client),
        };
        self.core.counters.connections += 1;
        let present = match admitted {
            Ok(present) => present,
            // Nothing was made for it yet.
            Err(reason) => {
                return self.core.note_end(&reason, Context { client: peer, ..Context::default() });
            }
        };
        let role = frontend.role;
        let session = match frontend.preface() {
            Some(_) => None,
            None => frontend.tls.as_ref().map(Acceptor::accept),
        };
        let forwarded = match role {
            Role::Gateway => rewrite::forwarded(peer, frontend.tls.is_some()),
            Role::Tunnel => Box::default(),
        };
        let now = self.core.net.now();
        let client = Client::new(Transport::accepted(socket, session), frontend, peer, now, forwarded);
        let id = self.clients.insert(Client { present, ..client });
        if role == Role::Tunnel {
            self.dig_floor(id);
        }
        self.touch_client(id);
    }
}
