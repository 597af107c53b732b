//! The check of one server: a connection, a handshake with TLS, and a request if a path is set.

use crate::config;
use crate::config::document::Health;
use crate::limits::Exhausted;
use std::sync::Arc;
use std::time::Instant;
use weir_http1::{Limits, Parse, ResponseHead, Rules};
use weir_preface::proxy;
use weir_reactor::{Key, Net as _, Reactor, Ready};
use weir_tls::Connector;
use weir_transport::{Transport, Wire};

/// The health check of one server.
#[derive(Debug)]
pub(super) struct Check {
    pub service: String,
    pub server: config::Server,
    pub health: Health,
    /// The relaxed rules for the response.
    accept: Rules,
    tls: Option<Arc<config::UpstreamTls>>,
    connector: Option<Connector>,
    state: State,
    is_up: bool,
    /// The number of consecutive results that contradict `is_up`.
    streak: u32,
}

#[derive(Debug)]
enum State {
    /// Idle until the next check is due.
    Waiting {
        until: Instant,
    },
    Running {
        transport: Box<Transport>,
        answer: Vec<u8>,
        is_asked: bool,
        until: Instant,
    },
}

/// The result of a check.
#[derive(Debug)]
pub(super) enum Outcome {
    Passed,
    Failed(String),
}

impl Check {
    pub(super) fn new(
        service: &config::Service,
        server: &config::Server,
        health: &Health,
        at: Instant,
    ) -> Self {
        Self {
            service: service.name.clone(),
            server: server.clone(),
            health: health.clone(),
            accept: service.accept,
            tls: service.tls.clone(),
            connector: service.tls.as_ref().map(|tls| tls.client.core()),
            state: State::Waiting { until: at },
            is_up: true,
            streak: 0,
        }
    }

    /// Whether this is the check of this server, with the service's current TLS settings.
    pub(super) fn is_of(&self, service: &config::Service, server: &config::Server) -> bool {
        self.service == service.name && self.server == *server && service.has_tls_of(self.tls.as_ref())
    }

    /// The same check under another key. A check in progress starts over. With other settings, the check is due at
    /// `at`.
    pub(super) fn again(self, service: &config::Service, health: &Health, at: Instant) -> Self {
        let (until, streak) = match self.health == *health {
            true => (self.due(), self.streak),
            false => (at, 0),
        };
        let (health, accept) = (health.clone(), service.accept);
        Self { health, accept, state: State::Waiting { until }, streak, ..self }
    }

    /// Whether the server counts as up.
    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    /// The time at which to call [`Check::time`].
    pub(super) fn due(&self) -> Instant {
        match &self.state {
            State::Waiting { until } | State::Running { until, .. } => *until,
        }
    }

    /// Handles the deadline: starts a check, or ends one that has timed out.
    pub(super) fn time(&mut self, reactor: &mut Reactor, now: Instant) -> Option<Outcome> {
        if let State::Running { .. } = self.state {
            return Some(Outcome::Failed(format!("no response within {:?}", self.health.timeout)));
        }
        let socket = match reactor.connect(&self.server.address) {
            Ok(socket) => socket,
            // A lack of descriptors says nothing about the server.
            Err(error) if Exhausted::is(&error) => {
                self.state = State::Waiting { until: now + self.health.every };
                return None;
            }
            Err(error) => return Some(Outcome::Failed(error.to_string())),
        };
        let session = self.connector.as_ref().zip(self.server.name.as_ref());
        let session = session.map(|(connector, name)| connector.connect(name));
        let mut transport = Transport::dialled(socket, session);
        if let Some(version) = self.server.announces {
            let mut header = Vec::new();
            proxy::write(version, None, &mut header);
            transport.announce(&header);
        }
        self.state = State::Running {
            transport: Box::new(transport),
            answer: Vec::new(),
            is_asked: false,
            until: now + self.health.timeout,
        };
        None
    }

    /// Handles a poller event for the connection.
    pub(super) fn ready(&mut self, ready: Ready, wire: &mut Wire) -> Option<Outcome> {
        match self.step(ready, wire) {
            Ok(outcome) => outcome,
            Err(fault) => Some(Outcome::Failed(fault.to_string())),
        }
    }

    fn step(&mut self, ready: Ready, wire: &mut Wire) -> Result<Option<Outcome>, weir_transport::Fault> {
        let State::Running { transport, answer, is_asked, .. } = &mut self.state else { return Ok(None) };
        if ready.writable {
            transport.advance(wire)?;
        }
        let mut ended = false;
        if ready.readable && !transport.is_connecting() {
            ended = transport.receive(wire, answer)?.end.is_some();
        }
        let Some(path) = &self.health.path else {
            return Ok(transport.is_open().then_some(Outcome::Passed));
        };
        if transport.is_open() && !*is_asked {
            *is_asked = true;
            let host = self.health.host.as_ref().unwrap_or(&self.server.authority);
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: weir\r\nConnection: close\r\n\r\n"
            );
            transport.send(request.as_bytes(), wire)?;
        }
        let mut head = ResponseHead::new();
        let limits = Limits::default();
        let parsed = head.parse(answer, &limits).or_else(|error| {
            let mended = head.mend(answer, &limits, self.accept, error, &mut Vec::new());
            mended.map(|mended| mended.map_or(Parse::Partial, |mended| Parse::Complete(mended.length)))
        });
        match parsed {
            Ok(Parse::Complete(_)) if self.health.accepts(head.status) => Ok(Some(Outcome::Passed)),
            Ok(Parse::Complete(_)) => Ok(Some(Outcome::Failed(format!("status {}", head.status)))),
            Ok(Parse::Partial) if ended => Ok(Some(Outcome::Failed("closed without a response".to_owned()))),
            Ok(Parse::Partial) => Ok(None),
            Err(error) => Ok(Some(Outcome::Failed(error.to_string()))),
        }
    }

    /// Updates the poller's interest in the connection. Errors: the reason why the poller cannot watch it.
    pub(super) fn watch(&mut self, reactor: &Reactor, key: Key) -> Result<(), String> {
        match &mut self.state {
            State::Waiting { .. } => Ok(()),
            State::Running { transport, .. } => {
                transport.watch(reactor, key, true).map_err(|error| error.to_string())
            }
        }
    }

    /// Records a result. Returns the server's health if it changes.
    pub(super) fn finish(&mut self, outcome: &Outcome, now: Instant) -> Option<bool> {
        self.state = State::Waiting { until: now + self.health.every };
        let passed = matches!(outcome, Outcome::Passed);
        if passed == self.is_up {
            self.streak = 0;
            return None;
        }
        self.streak += 1;
        if self.streak < if passed { self.health.rise } else { self.health.fall } {
            return None;
        }
        self.is_up = passed;
        self.streak = 0;
        Some(passed)
    }
}
