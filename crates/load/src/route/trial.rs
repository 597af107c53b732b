//! One connection before the run: a server that is not there, or is not what the URL says, is told at once.

use crate::options::Options;
use std::io;
use std::time::{Duration, Instant};
use weir_reactor::{Events, Key, Reactor};
use weir_tls::{Connector, Facts, PeerName, TlsError, Version};
use weir_transport::{Address, Fault, Transport, Wire};

#[derive(Debug)]
pub(crate) struct Trial {
    /// The first address that took a connection.
    pub(crate) address: Address,
    /// What was negotiated; `None` in cleartext.
    pub(crate) facts: Option<Facts>,
    /// TLS 1.3 tickets that the server gave; counted only if the run is to resume. Sessions of TLS 1.2 are with the
    /// connector.
    pub(crate) tickets: u32,
}

impl Trial {
    /// What a run that is to resume has to know of the server.
    pub(crate) fn warning(&self, options: &Options) -> Option<String> {
        let none = options.policy.resume > 0.0 && self.is_tls13() && self.tickets == 0;
        none.then(|| {
            format!(
                "the server gave no TLS 1.3 ticket within {TICKETS:?} of a handshake: nothing can be resumed"
            )
        })
    }

    fn is_tls13(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.version == Version::Tls13)
    }
}

/// A server that cannot be put under load.
#[derive(Debug, thiserror::Error)]
#[error("{url}{}: {why}", shown(address.as_ref(), url))]
pub struct Unreachable {
    pub url: String,
    pub address: Option<Address>,
    pub why: Why,
}

/// What happened to the trial connection, and what can be done.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    #[error(
        "the host `{host}` cannot be resolved: {why}; correct the name, or tell the address with \
         --resolve HOST:PORT:ADDRESS"
    )]
    Unresolved {
        /// The host of the URL, or of `--connect-to`.
        host: String,
        why: String,
    },
    #[error("connection refused: nobody listens there; start the server, or correct the host and port")]
    Refused,
    #[error("no connection: {0}; see whether the server runs and can be reached from here")]
    Connect(io::Error),
    #[error(
        "no connection within {0:?}; see whether the server runs and whether a firewall drops what is sent"
    )]
    Silent(Duration),
    #[error("no TLS handshake within {0:?}; if the server speaks plain HTTP, write http://")]
    NoHandshake(Duration),
    #[error("the server speaks plain HTTP there, not TLS; write http://, or name its TLS port")]
    Cleartext,
    #[error("the server does not speak TLS there; name its TLS port, or write http:// if it speaks HTTP")]
    NotTls,
    #[error(
        "the server ended the connection in the TLS handshake ({0}); if it speaks plain HTTP, write http://"
    )]
    Ended(String),
    #[error("{0}; -k believes anyone, --cacert FILE names an authority")]
    Untrusted(TlsError),
    #[error(
        "the TLS handshake failed: {0}; see whether the server takes what --tls, --suite, --group, --cert say"
    )]
    Tls(TlsError),
}

impl Why {
    /// Whether another address of the host may do better.
    fn is_of_the_address(&self) -> bool {
        matches!(self, Self::Refused | Self::Connect(_) | Self::Silent(_))
    }
}

/// The address, where the URL does not already say it.
fn shown(address: Option<&Address>, url: &str) -> String {
    match address.map(ToString::to_string) {
        Some(address) if !url.ends_with(&format!("/{address}")) => format!(" ({address})"),
        _ => String::new(),
    }
}

/// Connects once to the first of `addresses` that can be reached; with `tls`, makes a handshake. No request is sent: it
/// might change something at the server. So what is only seen in an answer, such as TLS behind an http URL, is told by
/// the run.
///
/// The sessions that the server gives go to the connector; the run takes another one.
/// Errors: what is wrong with the first address, if all are wrong.
pub(crate) fn trial(
    options: &Options,
    addresses: &[Address],
    tls: Option<(&Connector, &PeerName)>,
) -> Result<Trial, Unreachable> {
    let mut first = None;
    for address in addresses {
        let why = match attempt(options, address, tls) {
            Ok(trial) => return Ok(trial),
            Err(why) => why,
        };
        let another = why.is_of_the_address();
        let unreachable =
            Unreachable { url: options.endpoint.to_string(), address: Some(address.clone()), why };
        if !another {
            return Err(unreachable);
        }
        first.get_or_insert(unreachable);
    }
    Err(first.unwrap_or_else(|| Unreachable {
        url: options.endpoint.to_string(),
        address: None,
        why: Why::Connect(io::ErrorKind::AddrNotAvailable.into()),
    }))
}

fn attempt(options: &Options, address: &Address, tls: Option<(&Connector, &PeerName)>) -> Result<Trial, Why> {
    let session = tls.map(|(connector, name)| connector.connect(name));
    let patience = options.timeout.clamp(LEAST_PATIENCE, MOST_PATIENCE);
    let mut peer = Peer::connect(options, address, session)?;
    let deadline = Instant::now() + patience;
    while !peer.transport.is_open() {
        if !peer.turn(deadline)? {
            let connecting = peer.transport.is_connecting();
            return Err(if connecting { Why::Silent(patience) } else { Why::NoHandshake(patience) });
        }
        if peer.ended && !peer.transport.is_open() {
            return Err(Why::Ended("the end of the stream".to_string()));
        }
    }
    let facts = peer.transport.facts().cloned();
    let mut trial = Trial { address: address.clone(), facts, tickets: 0 };
    if options.policy.resume > 0.0 && trial.is_tls13() {
        // Tickets follow the handshake. A server that fails now has made it, which is all that is told here.
        let deadline = Instant::now() + TICKETS;
        while peer.transport.tickets_received() == 0 && !peer.ended && peer.turn(deadline).unwrap_or(false) {}
    }
    trial.tickets = peer.transport.tickets_received();
    // Its end is a courtesy.
    let _ = peer.transport.finish();
    Ok(trial)
}

/// A run's own time-out may be a part of what it measures; the trial's is not.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
const MOST_PATIENCE: Duration = Duration::from_secs(10);
/// How long the first ticket may take.
const TICKETS: Duration = Duration::from_secs(1);

/// The connection and what drives it.
struct Peer {
    transport: Transport,
    reactor: Reactor,
    events: Events,
    wire: Wire,
    ended: bool,
}

impl Peer {
    fn connect(
        options: &Options,
        address: &Address,
        session: Option<weir_tls::Session>,
    ) -> Result<Self, Why> {
        let source = options.route.sources.first().copied();
        Ok(Self {
            transport: Transport::connect_from(source, address, session)?,
            reactor: Reactor::new().map_err(Why::Connect)?,
            events: Events::default(),
            wire: Wire::default(),
            ended: false,
        })
    }

    /// Takes up what comes next; `false` when nothing came in time.
    fn turn(&mut self, deadline: Instant) -> Result<bool, Why> {
        self.transport.watch(&self.reactor, Key::fixed(0, 0), true).map_err(Why::Connect)?;
        self.reactor.turn(&mut self.events, Some(deadline)).map_err(Why::Connect)?;
        let Some(ready) = self.events.ready().next() else { return Ok(self.reactor.now() < deadline) };
        if ready.writable {
            self.transport.advance(&mut self.wire)?;
        }
        if ready.readable && !self.transport.is_connecting() {
            self.ended |= self.transport.receive(&mut self.wire, &mut Vec::new())?.end.is_some();
        }
        Ok(true)
    }
}

impl From<Fault> for Why {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => Self::Refused,
            Fault::Connect(error) => Self::Connect(error),
            // Nothing is sent before the handshake.
            Fault::Socket(error) => Self::Ended(error.to_string()),
            Fault::Tls(TlsError::NotTls { http: true }) => Self::Cleartext,
            Fault::Tls(TlsError::NotTls { http: false }) => Self::NotTls,
            Fault::Tls(error @ TlsError::CertificateNotTrusted { .. }) => Self::Untrusted(error),
            Fault::Tls(error) => Self::Tls(error),
        }
    }
}
