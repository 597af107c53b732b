//! The check of one server: connects, completes a handshake if the server uses TLS, and sends a request if one is
//! configured. `Check::probe` chooses the request's version and `Host`; `expected_response.rs` judges the response.

mod expected_response;
mod grpc;
mod http1;
mod http2;

use crate::config;
use crate::config::document::Health;
use crate::limits::Exhausted;
use std::sync::Arc;
use std::time::Instant;
use weir_http1::Rules;
use weir_http2::{Closed, Scheme};
use weir_preface::proxy;
use weir_reactor::{Key, Net as _, Reactor, Ready};
use weir_tls::{Connector, TlsError};
use weir_transport::{Fault, Transport, Wire};

#[derive(Debug)]
pub(super) struct Check {
    pub service: String,
    pub server: config::Server,
    pub health: Health,
    /// The rules whose violations the check repairs in the response.
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
        probe: Probe,
        until: Instant,
    },
}

/// The step after the connection and the handshake.
#[derive(Debug)]
enum Probe {
    /// No further step: the server passes once the connection is open.
    Connection,
    Http1(http1::Get),
    Http2(Box<http2::Request>),
}

#[derive(Debug)]
pub(super) enum Outcome {
    Passed,
    Failed(String),
}

impl Outcome {
    fn closed() -> Self {
        Self::Failed("closed without a response".to_owned())
    }
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

    /// Whether this check is for `server`, or its predecessor, with the current TLS settings of `service`.
    pub(super) fn is_of(&self, service: &config::Service, server: &config::Server) -> bool {
        self.service == service.name
            && server.continues(&self.server)
            && service.has_tls_of(self.tls.as_ref())
    }

    /// Whether the check uses these settings, so that another configuration need not restart it.
    pub(super) fn has_settings(&self, service: &config::Service, health: &Health) -> bool {
        self.health == *health && self.accept == service.accept
    }

    /// The same check with other settings, due at `at`.
    pub(super) fn again(self, service: &config::Service, health: &Health, at: Instant) -> Self {
        let (health, accept) = (health.clone(), service.accept);
        Self { health, accept, state: State::Waiting { until: at }, streak: 0, ..self }
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    /// The time at which to call [`Check::time`].
    pub(super) fn due(&self) -> Instant {
        match &self.state {
            State::Waiting { until } | State::Running { until, .. } => *until,
        }
    }

    /// Handles the deadline: starts a check, or ends one that has timed out. Returns the outcome of a check that ends.
    pub(super) fn time(&mut self, reactor: &mut Reactor, now: Instant) -> Option<Outcome> {
        if let State::Running { .. } = self.state {
            return Some(Outcome::Failed(format!("no response within {:?}", self.health.timeout)));
        }
        let socket = match reactor.connect(&self.server.address) {
            Ok(socket) => socket,
            // A lack of descriptors is no evidence about the server.
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
        let probe = match self.probe() {
            Ok(probe) => probe,
            Err(error) => return Some(Outcome::Failed(error.to_string())),
        };
        self.state =
            State::Running { transport: Box::new(transport), probe, until: now + self.health.timeout };
        None
    }

    fn probe(&self) -> Result<Probe, Closed> {
        let Health { path, grpc, host, .. } = &self.health;
        let host = host.as_ref().unwrap_or(&self.server.authority);
        let scheme = if self.tls.is_some() { Scheme::Https } else { Scheme::Http };
        Ok(match (path, grpc) {
            (None, None) => Probe::Connection,
            (_, Some(service)) => Probe::Http2(Box::new(http2::Request::grpc(scheme, host, service)?)),
            (Some(path), None) if self.server.http2 => {
                Probe::Http2(Box::new(http2::Request::get(scheme, host, path)?))
            }
            (Some(path), None) => Probe::Http1(http1::Get::new(host, path)),
        })
    }

    /// Handles a poller event for the connection. Returns the outcome, once it is known.
    pub(super) fn ready(&mut self, ready: Ready, wire: &mut Wire) -> Option<Outcome> {
        match self.step(ready, wire) {
            Ok(outcome) => outcome,
            Err(Fault::Tls(TlsError::PeerAlert(NO_APPLICATION_PROTOCOL))) if self.server.http2 => {
                Some(Outcome::Failed(NO_HTTP_2.to_owned()))
            }
            Err(fault) => Some(Outcome::Failed(fault.to_string())),
        }
    }

    fn step(&mut self, ready: Ready, wire: &mut Wire) -> Result<Option<Outcome>, Fault> {
        let State::Running { transport, probe, .. } = &mut self.state else { return Ok(None) };
        if ready.writable {
            transport.advance(wire)?;
        }
        let mut ended = false;
        if ready.readable && !transport.is_connecting() {
            let input = match probe {
                Probe::Connection => &mut Vec::new(),
                Probe::Http1(get) => &mut get.input,
                Probe::Http2(request) => &mut request.input,
            };
            ended = transport.receive(wire, input)?.end.is_some();
        }
        let agreed = transport.facts().is_none_or(|facts| facts.alpn.as_deref() == Some(HTTP_2));
        if self.server.http2 && !agreed {
            return Ok(Some(Outcome::Failed(NO_HTTP_2.to_owned())));
        }
        match probe {
            Probe::Connection if transport.is_open() => Ok(Some(Outcome::Passed)),
            Probe::Connection => Ok(ended.then(|| Outcome::Failed("closed in the handshake".to_owned()))),
            Probe::Http1(get) => {
                if transport.is_open() {
                    get.send(transport, wire)?;
                }
                Ok(get.outcome(&self.health, self.accept, ended))
            }
            Probe::Http2(request) => {
                let outcome = request.outcome(&self.health, ended);
                if outcome.is_none() && transport.is_open() {
                    request.send(transport, wire)?;
                }
                if outcome.is_some() {
                    request.close(transport, wire);
                }
                Ok(outcome)
            }
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

/// The ALPN protocol of HTTP/2 over TLS (RFC 9113 section 3.2).
const HTTP_2: &[u8] = b"h2";
/// The alert of a server that supports none of the offered protocols (RFC 7301 section 3.2).
const NO_APPLICATION_PROTOCOL: u8 = 120;
const NO_HTTP_2: &str = "the server did not agree to HTTP/2 by ALPN; enable `h2` there, or remove `http2`";
