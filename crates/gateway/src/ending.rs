//! How a client's connection ends, and what is told of an exchange that ended early.

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
        *self.core.counts.ended.entry(reason.as_str()).or_default() += 1;
        self.core.log.ended(self.core.reactor.now(), reason, Context { client: client.peer, request });
    }
}
