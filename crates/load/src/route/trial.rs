//! One trial connection of each version before the run, so that an unreachable or unexpected server fails at once.

use crate::h2::trial::Greeting;
use crate::options::{HttpVersion, Options};
use std::io;
use std::time::{Duration, Instant};
use weir_reactor::{Events, Key, Reactor};
use weir_tls::{Connector, Facts, PeerName, TlsError, Version};
use weir_transport::{Address, Fault, Transport, Wire};

#[derive(Debug)]
pub(crate) struct Trial {
    /// The first address that accepted a connection.
    pub(crate) address: Address,
    /// What was negotiated; `None` in cleartext.
    pub(crate) facts: Option<Facts>,
    /// TLS 1.3 tickets received; counted only if the run resumes. TLS 1.2 sessions are in the
    /// connector.
    pub(crate) tickets: u32,
}

impl Trial {
    /// A warning for a run that resumes.
    pub(crate) fn warning(&self, options: &Options) -> Option<String> {
        let none = options.policy.resume > 0.0 && self.is_tls13() && self.tickets == 0;
        none.then(|| {
            format!(
                "the server sent no TLS 1.3 ticket within {TICKETS:?} of a handshake: there is nothing to resume"
            )
        })
    }

    fn is_tls13(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.version == Version::Tls13)
    }
}

/// A server that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error("{url}{}: {why}", shown(address.as_ref(), url))]
pub struct Unreachable {
    pub url: String,
    pub address: Option<Address>,
    pub why: Why,
}

/// What happened to the trial connection, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    #[error(
        "cannot resolve host `{host}`: {why}; correct the name, or give the address with \
         --resolve HOST:PORT:ADDRESS"
    )]
    Unresolved {
        /// The host of the URL, or of `--connect-to`.
        host: String,
        why: String,
    },
    #[error("connection refused; start the server, or correct the host and port")]
    Refused,
    #[error("cannot connect: {0}; check that the server is running and reachable")]
    Connect(io::Error),
    #[error("no connection within {0:?}; check that the server is running and no firewall drops packets")]
    Silent(Duration),
    #[error("no TLS handshake within {0:?}; if the server speaks plain HTTP, use http://")]
    NoHandshake(Duration),
    #[error("the server speaks plain HTTP, not TLS; use http://, or its TLS port")]
    Cleartext,
    #[error("the server does not speak TLS; use its TLS port, or http:// if it speaks HTTP")]
    NotTls,
    #[error(
        "the server closed the connection during the TLS handshake ({0}); if it speaks plain HTTP, use http://"
    )]
    Ended(String),
    #[error("{0}; trust its CA with --cacert FILE, or skip verification with -k")]
    Untrusted(TlsError),
    #[error("TLS handshake failed: {0}; check that the server accepts --tls, --suite, --group and --cert")]
    Tls(TlsError),
    #[error("the server did not agree on h2 by ALPN; enable HTTP/2 on the server, or use --http 1.1")]
    NoAlpn,
    #[error("the server did not agree on http/1.1 by ALPN; enable HTTP/1.1 on the server, or use --http 2")]
    NoHttp1Alpn,
    #[error("{0}")]
    NotHttp2(String),
    #[error("no SETTINGS of HTTP/2 within {0:?}; enable HTTP/2 on the server, or use --http 1.1")]
    NoSettings(Duration),
    #[error("the server closed the connection after the preface of HTTP/2; use --http 1.1")]
    EndedByPreface,
}

impl Why {
    /// Whether another address of the host may work.
    fn is_of_the_address(&self) -> bool {
        matches!(self, Self::Refused | Self::Connect(_) | Self::Silent(_))
    }
}

/// The address, unless it is in the URL.
fn shown(address: Option<&Address>, url: &str) -> String {
    match address.map(ToString::to_string) {
        Some(address) if !url.ends_with(&format!("/{address}")) => format!(" ({address})"),
        _ => String::new(),
    }
}

/// Connects to the first reachable address; with `tls`, also does a handshake. Sends no request, as that
/// might have side effects. So what only a response shows, such as TLS behind an http URL, is reported by
/// the run.
///
/// Sessions from the server go to this connector; the run uses another one.
/// Errors: if all addresses fail, why the first one does.
pub(crate) fn trial(
    options: &Options,
    version: HttpVersion,
    addresses: &[Address],
    tls: Option<(&Connector, &PeerName)>,
) -> Result<Trial, Unreachable> {
    let mut first = None;
    for address in addresses {
        let why = match attempt(options, version, address, tls) {
            Ok(trial) => return Ok(trial),
            Err(Why::NoAlpn) if version == HttpVersion::Http1 => Why::NoHttp1Alpn,
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

fn attempt(
    options: &Options,
    version: HttpVersion,
    address: &Address,
    tls: Option<(&Connector, &PeerName)>,
) -> Result<Trial, Why> {
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
            return Err(Why::Ended("end of stream".to_string()));
        }
    }
    let facts = peer.transport.facts().cloned();
    if version == HttpVersion::Http2 {
        check_http2(options, &mut peer, Instant::now() + patience, patience)?;
    }
    let mut trial = Trial { address: address.clone(), facts, tickets: 0 };
    if options.policy.resume > 0.0 && trial.is_tls13() {
        // Tickets follow the handshake. If the server fails now, the handshake still succeeded, which is all we check.
        let deadline = Instant::now() + TICKETS;
        while peer.transport.tickets_received() == 0 && !peer.ended && peer.turn(deadline).unwrap_or(false) {}
    }
    trial.tickets = peer.transport.tickets_received();
    // A clean close is a courtesy.
    let _ = peer.transport.finish(&mut peer.wire);
    Ok(trial)
}

/// Checks the protocol by ALPN, or in cleartext by the exchange of prefaces alone.
fn check_http2(options: &Options, peer: &mut Peer, deadline: Instant, patience: Duration) -> Result<(), Why> {
    if peer.transport.facts().is_some_and(|facts| facts.alpn.as_deref() != Some(b"h2")) {
        return Err(Why::NoAlpn);
    }
    let mut greeting = Greeting::new(options);
    peer.transport.send(&greeting.output(), &mut peer.wire)?;
    while !greeting.receive(&mut peer.input).map_err(Why::NotHttp2)? {
        if peer.ended {
            return Err(Why::EndedByPreface);
        }
        if !peer.turn(deadline)? {
            return Err(Why::NoSettings(patience));
        }
    }
    Ok(())
}

/// A run's timeout may be part of the measurement; the trial's is not.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
const MOST_PATIENCE: Duration = Duration::from_secs(10);
/// Timeout for the first ticket.
const TICKETS: Duration = Duration::from_secs(1);

/// The alert of a server that supports ALPN, but no protocol offered (RFC 7301, section 3.2).
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The connection and what drives it.
struct Peer {
    transport: Transport,
    reactor: Reactor,
    events: Events,
    wire: Wire,
    /// Received bytes.
    input: Vec<u8>,
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
            input: Vec::new(),
            ended: false,
        })
    }

    /// Handles the next events; `false` on a timeout.
    fn turn(&mut self, deadline: Instant) -> Result<bool, Why> {
        self.transport.watch(&self.reactor, Key::fixed(0, 0), true).map_err(Why::Connect)?;
        self.reactor.turn(&mut self.events, Some(deadline)).map_err(Why::Connect)?;
        let Some(ready) = self.events.ready().next() else { return Ok(self.reactor.now() < deadline) };
        if ready.writable {
            self.transport.advance(&mut self.wire)?;
        }
        if ready.readable && !self.transport.is_connecting() {
            self.ended |= self.transport.receive(&mut self.wire, &mut self.input)?.end.is_some();
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
            Fault::Tls(TlsError::NoApplicationProtocol | TlsError::PeerAlert(NO_APPLICATION_PROTOCOL)) => {
                Self::NoAlpn
            }
            Fault::Tls(error @ TlsError::CertificateNotTrusted { .. }) => Self::Untrusted(error),
            Fault::Tls(error) => Self::Tls(error),
        }
    }
}
