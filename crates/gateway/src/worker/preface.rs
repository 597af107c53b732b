//! The bytes before a connection's first byte of HTTP: a PROXY header with the client's address, and a ClientHello
//! whose server name may select a service. On a listener with `tcp`, also the TLS handshake.

use super::Worker;
use super::core::HEADROOM;
use super::requests::{Input, input};
use crate::downstream::{Phase, Preface};
use crate::keys::ClientId;
use crate::reason::Reason;
use weir_preface::{Look, hello, proxy};
use weir_reactor::Net;
use weir_reactor::socket::Read;
use weir_tls::Acceptor;

impl<N: Net> Worker<N> {
    pub(super) fn read_preface(&mut self, id: ClientId) {
        let Some(client) = self.clients.present_mut(id) else { return };
        if client.phase == Phase::Preface(Preface::Tls) {
            return self.read_tls_preface(id);
        }
        let mut inbox = self.core.take_inbox(&mut client.held);
        let read = client.transport.read(&self.core.wire, &mut inbox);
        client.held = inbox[HEADROOM..].to_vec();
        self.core.put_inbox(inbox);
        match read {
            Ok(Read::Bytes(_)) => self.choose_phase(id),
            Ok(Read::WouldBlock) => {}
            Ok(Read::End) => {
                if !client.held.is_empty() {
                    self.note_end_of_client(id, &Reason::ClientClosed);
                }
                self.drop_client(id);
            }
            Err(fault) => self.lose_client(id, fault),
        }
    }

    /// Chooses the next phase from the bytes received so far.
    fn choose_phase(&mut self, id: ClientId) {
        let Some(client) = self.clients.present_mut(id) else { return };
        if client.phase == Phase::Preface(Preface::Proxy) {
            match proxy::read(&client.held) {
                Ok(Look::Partial) => return,
                Ok(Look::Complete(header)) => {
                    client.held.drain(..header.len);
                    client.is_passed_on(header.addresses);
                    client.phase = Phase::Preface(Preface::Hello);
                    let most = self.core.plan.snapshot.connections_per_client;
                    match client.frontend.admit(client.peer, &self.peers.limiter, most) {
                        Ok(permit) => client.permit = permit,
                        Err(reason) => return self.end(id, reason),
                    }
                    if let Some(to) = client.frontend.tcp {
                        return self.begin_tcp(id, to);
                    }
                }
                Err(error) => return self.end(id, Reason::BadProxyHeader(error)),
            }
        }
        if client.frontend.passthrough.is_empty() {
            return self.begin_http(id);
        }
        match hello::read(&client.held) {
            Ok(Look::Partial) => {}
            Ok(Look::Complete(hello)) => {
                let name = hello.server_name.unwrap_or_default();
                let service = client.frontend.passthrough.find(name.as_bytes());
                match service.and_then(|service| client.frontend.services.get(service)).copied() {
                    Some(service) => self.open_tunnel(id, service),
                    None if client.frontend.tls.is_some() => self.begin_http(id),
                    None => {
                        // Best effort: the client is rejected even if the alert with the cause does not reach it.
                        let _ = client.transport.send(UNRECOGNIZED_NAME, &mut self.core.wire);
                        self.note_end_of_client(id, &Reason::UnknownName(name));
                        self.close(id);
                    }
                }
            }
            // The TLS session reports the fault with a fitting alert.
            Err(_) if client.frontend.tls.is_some() => self.begin_http(id),
            Err(error) => self.end(id, Reason::BadHello(error)),
        }
    }

    /// Ends the preface: requests follow, after a handshake on a TLS listener.
    fn begin_http(&mut self, id: ClientId) {
        let Some(client) = self.clients.present_mut(id) else { return };
        client.phase = Phase::Head { started: false };
        if let Some(session) = client.frontend.tls.as_ref().map(Acceptor::accept) {
            client.transport.begin_tls(session);
        } else {
            self.handshakes.end(client);
        }
        if let Some(input) = self.feed_held(id) {
            self.take_input(id, input);
        }
    }

    /// Passes the bytes that followed the preface to the transport, and returns the resulting input; `None`: there are
    /// no such bytes.
    pub(super) fn feed_held(&mut self, id: ClientId) -> Option<Input> {
        let client = self.clients.present_mut(id).filter(|client| !client.held.is_empty())?;
        let core = &mut self.core;
        let mut raw = std::mem::take(&mut client.held);
        let mut inbox = core.take_inbox(&mut client.held);
        let received = client.transport.feed(&mut raw, &mut inbox, &mut core.wire);
        Some(input(client, received, inbox, core, &mut self.handshakes))
    }
}

/// The fatal alert `unrecognized_name` in its own record (RFC 8446 section 6, RFC 6066 section 3).
const UNRECOGNIZED_NAME: &[u8] = &[21, 3, 3, 0, 2, 2, 112];
