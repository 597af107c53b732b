//! Handshakes with rustls, record by record, so that nothing after the handshake is read by mistake.

use crate::dial::{Connection, Dialer};
use crate::names;
use crate::trust::{Trust, Witness};
use crate::wire::take_record;
use crate::{MAX_ANSWER, ProbeError, Version};
use rustls::client::{ClientConfig, ClientConnection, Resumption};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs::ALL_KX_GROUPS};
use rustls::{Error, SupportedProtocolVersion};
use rustls_pki_types::ServerName;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum silence that counts as the end of what a server sends.
const SILENCE: Duration = Duration::from_millis(300);
/// Maximum.
const LONG_SILENCE: Duration = Duration::from_secs(2);

/// The offer of a handshake; an empty list means everything rustls supports.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setup<'a> {
    pub(crate) version: Option<&'static SupportedProtocolVersion>,
    /// The groups; a key share is sent for the first.
    pub(crate) groups: &'a [u16],
    pub(crate) alpn: &'a [&'a str],
}

/// A connection after its handshake.
pub(crate) struct Session {
    pub(crate) tls: ClientConnection,
    pub(crate) connection: Connection,
    /// Bytes received after the handshake, not yet processed.
    pub(crate) received: Vec<u8>,
    /// Bytes received up to the end of the handshake.
    pub(crate) answer: Vec<u8>,
    /// How long a silence means the end: some round trips.
    pub(crate) patience: Duration,
}

/// Shared configuration of the handshakes.
pub(crate) fn config(
    trust: &Trust,
    witness: &Arc<Witness>,
    setup: Setup<'_>,
    resumption: Resumption,
) -> Result<Arc<ClientConfig>, ProbeError> {
    let mut provider = CryptoProvider::clone(&trust.provider);
    provider.kx_groups = match setup.groups {
        [] => groups(&Version::Tls13.groups()),
        some => groups(some),
    };
    let versions = setup.version.map_or_else(|| rustls::ALL_VERSIONS.to_vec(), |version| vec![version]);
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .map_err(|error| ProbeError::Internal(error.to_string()))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(witness.clone());
    let mut config = builder.with_client_cert_resolver(witness.clone());
    config.alpn_protocols = setup.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config.enable_sni = trust.sent_name.is_some();
    config.resumption = resumption;
    // Tickets are parsed separately: see `tickets`.
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

/// Whether rustls supports this group.
pub(crate) fn has_group(number: u16) -> bool {
    !groups(&[number]).is_empty()
}

fn groups(numbers: &[u16]) -> Vec<&'static dyn SupportedKxGroup> {
    let known = |number: &u16| ALL_KX_GROUPS.iter().find(|group| u16::from(group.name()) == *number);
    numbers.iter().filter_map(known).copied().collect()
}

/// Connects and does a handshake.
/// Errors: what went wrong, as text.
pub(crate) fn handshake(
    dialer: &mut Dialer,
    config: &Arc<ClientConfig>,
    name: &ServerName<'static>,
) -> Result<Session, Failed> {
    let started = Instant::now();
    let tls = ClientConnection::new(config.clone(), name.clone())
        .map_err(|error| Failed::Lost(error.to_string()))?;
    let connection = dialer.open().map_err(|error| Failed::Lost(error.to_string()))?;
    let patience = SILENCE;
    let mut session = Session { tls, connection, received: Vec::new(), answer: Vec::new(), patience };
    session.flush().map_err(Failed::of)?;
    while session.tls.is_handshaking() {
        session.step()?;
    }
    session.patience = (started.elapsed() * 3).clamp(SILENCE, LONG_SILENCE);
    Ok(session)
}

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// The server rejected it: an alert, or a closed connection.
    #[error("{0}")]
    Refused(String),
    /// Inconclusive: a timeout, or no connection.
    #[error("{0}")]
    Lost(String),
}

impl Failed {
    fn of(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Lost(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl Session {
    /// Waits for one record.
    fn step(&mut self) -> Result<(), Failed> {
        loop {
            if let Some(record) = take_record(&mut self.received) {
                self.answer.extend_from_slice(&record);
                return self.process(&record).map_err(Failed::Refused);
            }
            match self.connection.receive(&mut self.received).map_err(Failed::of)? {
                0 => {
                    let why = "the server closed the connection during the handshake";
                    return Err(Failed::Refused(why.to_owned()));
                }
                _ if self.answer.len() > MAX_ANSWER => {
                    return Err(Failed::Lost("the handshake does not end".to_owned()));
                }
                _ => {}
            }
        }
    }

    /// Reads until `enough`, or until the server closes or is silent.
    pub(crate) fn read_until(&mut self, enough: impl Fn() -> bool) {
        while !enough() {
            if let Some(record) = take_record(&mut self.received) {
                if self.process(&record).is_err() {
                    return;
                }
                continue;
            }
            match self.connection.receive_within(&mut self.received, self.patience) {
                Ok(length) if length > 0 => {}
                _ => return,
            }
        }
    }

    /// Closes with close_notify (RFC 8446 6.1).
    pub(crate) fn finish(mut self) {
        self.tls.send_close_notify();
        let _ = self.flush();
        self.connection.finish(self.patience);
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut out)?;
        }
        if out.is_empty() { Ok(()) } else { self.connection.send(&out) }
    }

    fn process(&mut self, mut record: &[u8]) -> Result<(), String> {
        while !record.is_empty() {
            self.tls.read_tls(&mut record).map_err(|error| error.to_string())?;
            let state = self.tls.process_new_packets();
            // Our alert goes out first.
            let flushed = self.flush();
            let state = state.map_err(|error| refused(&error))?;
            flushed.map_err(|error| error.to_string())?;
            // Some servers send data first; rustls accepts no more while it holds that.
            let mut unread = vec![0; state.plaintext_bytes_to_read()];
            let _ = self.tls.reader().read(&mut unread);
        }
        Ok(())
    }
}

fn refused(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => format!("alert {}", names::alert(u8::from(*alert))),
        other => other.to_string(),
    }
}
