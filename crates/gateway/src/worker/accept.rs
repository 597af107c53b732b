//! New connections of clients.

use super::Worker;
use crate::config::Role;
use crate::downstream::{Client, Preface};
use crate::heads::rewrite;
use crate::limits::{Descriptor, Kind};
use crate::observe::Context;
use crate::reason::Reason;
use std::net::SocketAddr;
use std::rc::Rc;
use weir_reactor::Net;
use weir_tls::Acceptor;
use weir_transport::Transport;

impl<N: Net> Worker<N> {
    /// Accepts at most `budget` queued connections of the listener with this index.
    pub(super) fn accept(&mut self, index: u32, budget: usize) {
        for nth in 0..budget {
            // The poller reports only that at least one connection is queued, so only the first one justifies
            // evictions. A drain accepts all queued connections.
            let descriptor = match self.frontends.is_draining(index) {
                true => Some(self.peers.descriptors.forced(Kind::Client)),
                false if nth == 0 => self.place_for_client(index),
                false if self.core.is_short => None,
                false => self.peers.descriptors.client().ok(),
            };
            let Some(descriptor) = descriptor else { break };
            match self.frontends.accept(index, &mut self.core.net) {
                Ok(Some((socket, peer))) => self.welcome(index, socket, peer, descriptor),
                Ok(None) => {
                    drop(descriptor);
                    self.offer_descriptor();
                    break;
                }
                Err(error) => {
                    drop(descriptor);
                    if !self.accept_failed(index, &error) {
                        break;
                    }
                }
            }
        }
    }

    fn welcome(&mut self, index: u32, socket: N::Socket, peer: Option<SocketAddr>, descriptor: Descriptor) {
        let Some(frontend) = self.frontends.of(index).map(Rc::clone) else { return };
        let admitted = match frontend.is_announced() {
            true if frontend.accepts_header_from(peer.map(|peer| peer.ip())) => Ok(None),
            true => Err(Reason::UntrustedProxy),
            false => {
                frontend.admit(peer, &self.peers.limiter, self.core.plan.snapshot.connections_per_client)
            }
        };
        self.core.counters.connections += 1;
        let permit = match admitted {
            Ok(permit) => permit,
            // No client exists yet: dropping the socket closes the connection.
            Err(reason) => {
                drop(descriptor);
                self.offer_descriptor();
                return self.core.note_end(&reason, Context { client: peer, ..Context::default() });
            }
        };
        let (role, tcp, preface) = (frontend.role, frontend.tcp, frontend.preface());
        let session = match preface {
            Some(Preface::Proxy | Preface::Hello) => None,
            Some(Preface::Tls) | None => frontend.tls.as_ref().map(Acceptor::accept),
        };
        let forwarded = match role {
            Role::Gateway => rewrite::forwarded(peer, frontend.tls.is_some()),
            Role::Tunnel => Box::default(),
        };
        let now = self.core.net.now();
        let client = Client::new(Transport::accepted(socket, session), frontend, peer, now, forwarded);
        let drain = self.drain_of_new_client(index);
        let id = self.clients.insert(Client { permit, descriptor: Some(descriptor), drain, ..client });
        if !self.begin_handshake(id) {
            return;
        }
        match (role, tcp, preface) {
            (Role::Tunnel, _, _) => self.open_floor_tunnel(id),
            (Role::Gateway, Some(to), None) => self.open_tcp(id, to),
            (Role::Gateway, _, _) => {}
        }
        self.touch_client(id);
    }
}
