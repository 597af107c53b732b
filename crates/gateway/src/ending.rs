//! Ending client connections, and reporting exchanges that end early.

use crate::answer;
use crate::client::{Client, State};
use crate::exchange::Answer;
use crate::log::Context;
use crate::reason::Reason;
use crate::worker::Worker;
use weir_http1::Version;
use weir_reactor::Key;
use weir_tls::TlsError;
use weir_transport::Fault;

impl Worker {
    /// Responds with the reason, if no response has started, and closes the connection after it.
    pub(crate) fn refuse(&mut self, key: Key, reason: Reason) {
        // Discard output of this exchange: it must not reach the next one.
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

    /// Ends an exchange whose response has started: all we can do is abort the connection.
    pub(crate) fn abort(&mut self, key: Key, reason: Reason) {
        self.note_end(key, &reason);
        self.cut(key);
    }

    /// Removes a client with an incomplete response. If the response is framed by the end of the connection,
    /// that end must not look clean.
    pub(crate) fn cut(&mut self, key: Key) {
        if let Some(client) = self.clients.get(key) {
            let by_end =
                matches!(&client.state, State::Exchange(exchange) if exchange.version == Version::Http10);
            if by_end || client.transport.pending() > 0 {
                client.transport.reset();
            }
        }
        self.drop_client(key);
    }

    /// Closes our side after pending output, and lingers for the client's remaining input.
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

    /// A closing client's deadline: the stall timeout while it reads our last response, then the linger time.
    pub(crate) fn extend_closing(&mut self, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let timeouts = &self.core.settings.timeouts;
        let within = if client.transport.pending() > 0 { timeouts.stall } else { timeouts.linger };
        client.deadline.set(self.core.reactor.now() + within, &mut self.core.reactor, key);
    }

    /// The client's connection has failed.
    pub(crate) fn lose_client(&mut self, key: Key, fault: Fault) {
        let Some(client) = self.clients.get_mut(key) else { return };
        match (&client.state, &fault) {
            (State::Closing, _) => {}
            (_, Fault::Tls(error)) => {
                let plain_http = matches!(error, TlsError::NotTls { .. });
                // The alert must not be lost to a reset; and a client that spoke cleartext
                // cannot read an alert, so respond in cleartext.
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

    /// Removes the client and its upstream connection.
    pub(crate) fn drop_client(&mut self, key: Key) {
        self.release_upstream(key);
        self.clients.remove(key);
    }

    /// Closes the upstream connection of the client's unfinished exchange. A request that is cut off must not end as if it
    /// were complete.
    fn release_upstream(&mut self, key: Key) {
        if let Some(Client { state: State::Exchange(exchange), .. }) = self.clients.get(key)
            && let Some(upstream) = self.upstreams.remove(exchange.upstream)
            && !exchange.request.is_complete()
        {
            upstream.transport.reset();
        }
    }

    /// Bytes came on an upstream connection that works for no request; it is closed.
    pub(crate) fn note_stray(&mut self, bytes: usize) {
        self.core.note_end(&Reason::UpstreamStray(bytes), Context { client: None, request: None });
    }

    pub(crate) fn note_end(&mut self, key: Key, reason: &Reason) {
        let Some(client) = self.clients.get(key) else { return };
        let request = match &client.state {
            State::Exchange(exchange) => Some(exchange.line.as_str()),
            _ => None,
        };
        self.core.note_end(reason, Context { client: Some(client.peer), request });
    }
}
