//! The client side: one [`Client`] per process and policy, one [`Connector`] per core.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::{ClientConfig, Resumption, Tls12Resumption};
use rustls::sign::SingleCertAndKey;
use rustls_pki_types::ServerName;

use crate::checked_parameters::{Parameters, checked_alpn, offered, record_size, refused};
use crate::client_sessions::{CoreSessions, Lender, Lending};
use crate::key_log::KeyLogFile;
use crate::resuming::Resuming;
use crate::verifier::{Roots, Verifier};
use crate::{
    Curves, Group, Identity, Presented, Session, SettingsError, Signature, Suite, SystemTime, TimeProvider,
    UnknownName, Version, unbuffered,
};

/// The default of [`ClientSettings::sessions_per_name`]: enough for the connections that one core starts at once.
const SESSIONS_PER_NAME: usize = 64;

/// The parameters that a client offers, and the CAs it trusts.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The trusted CAs. Default: [`Roots::Native`].
    pub roots: Roots,
    /// The versions offered, in any order. Default: both.
    pub versions: Vec<Version>,
    /// The suites offered, most preferred first. Default: [`Suite::ALL`].
    pub suites: Vec<Suite>,
    /// The groups offered, most preferred first. The client sends a key share for the first group, or for the one that
    /// the server chose last time. Default: [`Group::DEFAULT`].
    pub groups: Vec<Group>,
    /// The implementation of curve arithmetic. Default: AWS-LC.
    pub curves: Curves,
    /// The signature schemes for the handshake, most preferred first (RFC 8446 4.2.3); empty: all that the
    /// client can verify. Does not apply to the certificates' signatures. Default: empty.
    pub signatures: Vec<Signature>,
    /// The application protocols offered (RFC 7301), most preferred first; empty: none. Default: empty.
    pub alpn: Vec<Vec<u8>>,
    /// Whether to send a DNS name to the server (RFC 6066 3). The client verifies the name in any case.
    /// Default: true.
    pub sni: bool,
    /// Whether to store sessions and offer to resume them. Default: true.
    pub resumption: bool,
    /// Whether to request TLS 1.2 tickets (RFC 5077). If not, the client resumes TLS 1.2 sessions by session
    /// ID only. Does not affect TLS 1.3. Default: true.
    pub tickets: bool,
    /// Sessions stored per core and server name: this many TLS 1.3 tickets, each used once, and this many TLS
    /// 1.2 sessions, each reused for up to 24 hours (RFC 5246 F.1.4). 0 stores none, as without `resumption`.
    /// Default: 64.
    pub sessions_per_name: usize,
    /// The client certificate. Default: none.
    pub identity: Option<Identity>,
    /// As [`crate::ServerSettings::record_size`].
    pub record_size: usize,
    /// A file to append each session's secrets to, in the NSS key log format (known from `SSLKEYLOGFILE`). The file
    /// allows decrypting the traffic. Created with mode 0600. Default: none.
    pub key_log: Option<PathBuf>,
    /// The wall clock. Default: the system's.
    pub time: Arc<dyn TimeProvider>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            roots: Roots::Native,
            versions: Version::ALL.to_vec(),
            suites: Suite::ALL.to_vec(),
            groups: Group::DEFAULT.to_vec(),
            curves: Curves::default(),
            signatures: Vec::new(),
            alpn: Vec::new(),
            sni: true,
            resumption: true,
            tickets: true,
            sessions_per_name: SESSIONS_PER_NAME,
            identity: None,
            record_size: unbuffered::RECORD_PLAINTEXT,
            key_log: None,
            time: Arc::new(SystemTime),
        }
    }
}

/// The process-wide part of a client: roots, identity and policy. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    /// The rustls configuration, complete except for the per-core parts.
    template: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
    /// The client certificate.
    certificate: Option<Arc<Presented>>,
    /// The maximum number of stored sessions per server name; 0 stores none.
    sessions_per_name: usize,
    tls12_resumption: Tls12Resumption,
}

impl Client {
    /// Reads the roots and the identity, opens the key log and checks the settings. Fails if a file is unusable or a
    /// setting is invalid.
    pub fn new(settings: &ClientSettings) -> Result<Self, SettingsError> {
        let curves = settings.curves;
        let parameters = Parameters::new(&settings.versions, &settings.suites, &settings.groups, curves)?;
        let provider = Arc::new(parameters.provider);
        let supported = provider.signature_verification_algorithms.supported_schemes();
        let schemes = offered(&settings.signatures, &settings.suites, supported)?;
        let verifier = Arc::new(Verifier::new(&settings.roots, &provider, schemes)?);
        let builder = ClientConfig::builder_with_details(provider.clone(), settings.time.clone())
            .with_protocol_versions(&parameters.versions)
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone());
        let mut certificate = None;
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let certified = identity.load_for(&provider, curves)?;
                let leaf = certified.cert.first();
                certificate = leaf.map(|leaf| Arc::new(Presented::of(identity.origin(), leaf)));
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
            }
        };
        config.alpn_protocols = checked_alpn(&settings.alpn)?;
        config.enable_sni = settings.sni;
        config.max_fragment_size = Some(record_size(settings.record_size)?);
        config.resumption = Resumption::disabled();
        if let Some(path) = &settings.key_log {
            config.key_log = Arc::new(KeyLogFile::open(path)?);
        }
        Ok(Self {
            template: Arc::new(config),
            verifier,
            certificate,
            sessions_per_name: if settings.resumption { settings.sessions_per_name } else { 0 },
            tls12_resumption: match settings.tickets {
                true => Tls12Resumption::SessionIdOrTickets,
                false => Tls12Resumption::SessionIdOnly,
            },
        })
    }

    /// The client certificate, if any.
    pub fn certificate(&self) -> Option<&Presented> {
        self.certificate.as_deref()
    }

    /// Creates one core's part, with a separate session store and a separate cache of verified chains.
    pub fn core(&self) -> Connector {
        let mut template = ClientConfig::clone(&self.template);
        template.dangerous().set_certificate_verifier(Arc::new(self.verifier.core()));
        if self.sessions_per_name == 0 {
            let config = Arc::new(template);
            return Connector { any: config.clone(), full: config, resuming: None };
        }
        let sessions =
            Arc::new(CoreSessions::new(self.sessions_per_name, self.template.time_provider.clone()));
        let config = |lending| {
            let store = Arc::new(Lender { sessions: sessions.clone(), lending });
            let mut config = template.clone();
            config.resumption = Resumption::store(store).tls12_resumption(self.tls12_resumption);
            Arc::new(config)
        };
        Connector {
            any: config(Lending::Newest),
            full: config(Lending::Nothing),
            resuming: Some(Resuming { config: config(Lending::InTurn), sessions }),
        }
    }
}

/// One core's part of a [`Client`]: three rustls configurations that share one session store. Each configuration offers
/// different sessions.
#[derive(Clone, Debug)]
pub struct Connector {
    any: Arc<ClientConfig>,
    full: Arc<ClientConfig>,
    resuming: Option<Resuming>,
}

impl Connector {
    /// The client side of a new connection to `peer`. Offers the newest stored session, if any. Call
    /// [`Session::receive`] without bytes to get the first flight.
    pub fn connect(&self, peer: &PeerName) -> Session {
        Session::client(self.any.clone(), peer.0.clone())
    }

    /// As [`Connector::connect`], but offers no session, which forces a full handshake. Stores new sessions.
    pub fn connect_full(&self, peer: &PeerName) -> Session {
        Session::client(self.full.clone(), peer.0.clone())
    }

    /// As [`Connector::connect`], but always offers a session; `None` if the store has no unexpired session. Offers TLS
    /// 1.2 sessions in turn. The server may still decline: see [`crate::Facts::kind`].
    pub fn connect_resuming(&self, peer: &PeerName) -> Option<Session> {
        self.resuming.as_ref()?.connect(&peer.0)
    }

    /// The number of stored sessions of `peer`, TLS 1.3 tickets and TLS 1.2 sessions; some may have expired.
    pub fn sessions(&self, peer: &PeerName) -> usize {
        self.resuming.as_ref().map_or(0, |resuming| resuming.sessions.count(&peer.0))
    }
}

/// The name to verify in the server's certificate, and the key under which the client stores sessions: a DNS name or an
/// IP address. The client sends a DNS name as SNI, but never an IP address (RFC 6066 section 3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerName(ServerName<'static>);

impl FromStr for PeerName {
    type Err = UnknownName;

    /// Parses the host of a URL: `example.org`, `127.0.0.1`, `::1` or `[::1]`.
    fn from_str(host: &str) -> Result<Self, UnknownName> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        ServerName::try_from(bare.to_owned()).map(Self).map_err(|_| UnknownName {
            what: "host",
            value: host.to_owned(),
            allowed: "a DNS name or an IP address".to_owned(),
        })
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_str())
    }
}
