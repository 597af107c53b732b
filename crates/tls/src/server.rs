//! The server side: one [`Server`] per process and identity, one [`Acceptor`] per core.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::server::{NoServerSessionStorage, ServerConfig, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{NoKeyLog, SignatureAlgorithm};
use rustls_pki_types::CertificateDer;

use crate::identity::{self, NotingKey};
use crate::names::joined;
use crate::policy::{Parameters, checked_alpn, refused};
use crate::server_sessions::SessionStore;
use crate::tickets::{CoreTickets, KeySpace};
use crate::{Group, Identity, OfferError, Session, SettingsError, Suite, SystemTime, TimeProvider, Version};

/// More than any client stores, and few enough for one flight.
const MAX_TICKETS: u32 = 16;

/// What a server presents and accepts.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The certificate chain and its key.
    pub identity: Identity,
    /// The versions accepted, in any order; the highest in common is used. Default: both.
    pub versions: Vec<Version>,
    /// The suites accepted. The client's preference decides. Default: [`Suite::ALL`].
    pub suites: Vec<Suite>,
    /// The groups accepted, most preferred first. Default: [`Group::DEFAULT`].
    pub groups: Vec<Group>,
    /// The application protocols (RFC 7301), most preferred first; empty: none is negotiated. Default: empty.
    pub alpn: Vec<Vec<u8>>,
    /// Tickets sent after each TLS 1.3 handshake, full or resumed; at most 16. 0: no tickets in either version, so that
    /// TLS 1.3 clients cannot resume and TLS 1.2 clients resume by session ID.
    ///
    /// Default: 1. Each handshake, full or resumed, gives the client one ticket, so a client that returns with
    /// as many connections as before resumes all of them. Each ticket adds about 3 % to a full handshake's
    /// instructions.
    pub tickets: u32,
    /// Keep the sessions in this process's memory instead of in the tickets: in TLS 1.2, resumption is by session
    /// ID; in TLS 1.3, a ticket is the ID of a stored session, and works once. Default: false.
    pub stateful: bool,
    /// Whether clients can resume at all. Default: true.
    pub resumption: bool,
    /// Require a client certificate issued by one of the CAs in this PEM file. Default: none.
    pub client_roots: Option<PathBuf>,
    /// The wall clock. Default: the system's.
    pub time: Arc<dyn TimeProvider>,
}

impl ServerSettings {
    /// The defaults for a server that presents `identity`.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            versions: Version::ALL.to_vec(),
            suites: Suite::ALL.to_vec(),
            groups: Group::DEFAULT.to_vec(),
            alpn: Vec::new(),
            tickets: 1,
            stateful: false,
            resumption: true,
            client_roots: None,
            time: Arc::new(SystemTime),
        }
    }
}

/// The process-wide part of a server: certificate, ticket key space and stored sessions. Cheap to clone.
///
/// Two servers of one process share ticket keys if and only if they have the same certificates and client
/// CAs. So a reloaded configuration with the same identity still accepts its tickets, and no ticket crosses
/// identities. Stored sessions belong to one `Server` and its clones.
#[derive(Clone, Debug)]
pub struct Server {
    /// Complete except for the per-core part.
    template: Arc<ServerConfig>,
    tickets: Option<(KeySpace, Arc<dyn TimeProvider>)>,
}

impl Server {
    /// Reads certificate, key and client CAs, and checks the settings.
    pub fn new(settings: &ServerSettings) -> Result<Self, SettingsError> {
        let parameters = Parameters::new(&settings.versions, &settings.suites, &settings.groups)?;
        if settings.tickets > MAX_TICKETS {
            return Err(OfferError::TooManyTickets { tickets: settings.tickets, most: MAX_TICKETS }.into());
        }
        let certified = settings.identity.load(&parameters.provider)?;
        check_key_fits(&certified, settings)?;
        let client_roots = settings.client_roots.as_deref().map(identity::load_roots).transpose()?;
        let key_space =
            key_space(&certified.cert, client_roots.as_ref().map(|(_, certificates)| &certificates[..]))?;

        let provider = Arc::new(parameters.provider);
        let builder = ServerConfig::builder_with_details(provider.clone(), settings.time.clone())
            .with_protocol_versions(&parameters.versions)
            .map_err(refused)?;
        let builder = match client_roots {
            None => builder.with_no_client_auth(),
            Some((roots, _)) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| SettingsError::Refused(error.to_string()))?,
            ),
        };
        let certified = CertifiedKey { key: Arc::new(NotingKey(certified.key)), ..certified };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = checked_alpn(&settings.alpn)?;
        config.key_log = Arc::new(NoKeyLog);
        config.session_storage = match settings.resumption {
            true => Arc::new(SessionStore::new(settings.time.clone())),
            false => Arc::new(NoServerSessionStorage {}),
        };
        config.send_tls13_tickets = if settings.resumption { settings.tickets as usize } else { 0 };
        let stateless = settings.resumption && !settings.stateful && settings.tickets > 0;
        Ok(Self {
            template: Arc::new(config),
            tickets: stateless.then(|| (key_space, settings.time.clone())),
        })
    }

    /// One core's part, with its own snapshot of the ticket keys.
    pub fn core(&self) -> Acceptor {
        let mut config = ServerConfig::clone(&self.template);
        if let Some((space, time)) = &self.tickets {
            config.ticketer = Arc::new(CoreTickets::new(space.clone(), time.clone()));
        }
        Acceptor { config: Arc::new(config) }
    }
}

/// One core's part of a [`Server`].
#[derive(Clone, Debug)]
pub struct Acceptor {
    config: Arc<ServerConfig>,
}

impl Acceptor {
    /// The server side of a new connection. It waits for the client's first bytes.
    pub fn accept(&self) -> Session {
        Session::server(self.config.clone())
    }
}

/// Everything that distinguishes identities (tickets that crossed identities have broken gateways): the
/// certificates and the client CAs.
fn key_space(
    chain: &[CertificateDer<'_>],
    client_roots: Option<&[CertificateDer<'_>]>,
) -> Result<KeySpace, SettingsError> {
    let policy: &[u8] = if client_roots.is_some() { b"client certificate required" } else { b"" };
    let parts = chain.iter().chain(client_roots.unwrap_or_default()).map(AsRef::as_ref);
    KeySpace::of_identity(std::iter::once(policy).chain(parts))
        .ok_or_else(|| SettingsError::Refused("the system provides no random bytes".to_owned()))
}

/// With only TLS 1.2, suites of the wrong key type would reject every client.
fn check_key_fits(certified: &CertifiedKey, settings: &ServerSettings) -> Result<(), SettingsError> {
    let algorithm = certified.key.algorithm();
    let usable = |suite: &Suite| {
        suite.version() == Version::Tls13 || suite.rustls().usable_for_signature_algorithm(algorithm)
    };
    if settings.suites.iter().any(usable) {
        return Ok(());
    }
    let fitting = |suite: &&Suite| suite.version() == Version::Tls12 && usable(suite);
    Err(OfferError::SuitesDoNotFitKey {
        key: if algorithm == SignatureAlgorithm::RSA { "RSA" } else { "ECDSA" },
        allowed: joined(Suite::ALL.iter().filter(fitting)),
    }
    .into())
}
