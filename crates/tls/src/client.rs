//! The client's side: one [`Client`] per process and policy, one [`Connector`] per core.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::sign::SingleCertAndKey;
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::client_sessions::CoreSessions;
use crate::parameters::Parameters;
use crate::server::{checked_alpn, refused};
use crate::{Group, Identity, Session, SettingsError, Suite, SystemTime, TimeProvider, UnknownName, Version};
use crate::{identity, notes};

/// Whom a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The authorities that the system trusts.
    Native,
    /// The authorities in a PEM file.
    File(PathBuf),
    /// Anyone: nothing about the certificate is checked, so that the connection is open to anyone in the middle. For
    /// tests only.
    DangerouslyNone,
}

/// What a client offers and whom it trusts.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Whom to trust. Default: [`Roots::Native`].
    pub roots: Roots,
    /// The versions offered, in any order. Default: both.
    pub versions: Vec<Version>,
    /// The suites offered, most preferred first. Default: [`Suite::ALL`].
    pub suites: Vec<Suite>,
    /// The groups offered, most preferred first; a key share is sent for the first, or for the one that the server
    /// took last time. Default: [`Group::DEFAULT`].
    pub groups: Vec<Group>,
    /// The application protocols offered (RFC 7301), most preferred first; empty: none. Default: empty.
    pub alpn: Vec<Vec<u8>>,
    /// Whether to remember sessions and to offer to resume them. Default: true.
    pub resumption: bool,
    /// What to present when the server asks for a certificate. Default: none.
    pub identity: Option<Identity>,
    /// Where the wall clock's time comes from. Default: the system.
    pub time: Arc<dyn TimeProvider>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            roots: Roots::Native,
            versions: Version::ALL.to_vec(),
            suites: Suite::ALL.to_vec(),
            groups: Group::DEFAULT.to_vec(),
            alpn: Vec::new(),
            resumption: true,
            identity: None,
            time: Arc::new(SystemTime),
        }
    }
}

/// The process-wide part of a client: roots, identity and policy. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    template: Arc<ClientConfig>,
    resumption: bool,
}

impl Client {
    /// Reads the roots and the identity, and checks the settings.
    pub fn new(settings: &ClientSettings) -> Result<Self, SettingsError> {
        let parameters = Parameters::new(&settings.versions, &settings.suites, &settings.groups)?;
        let provider = Arc::new(parameters.provider);
        let trust = match &settings.roots {
            Roots::Native => Trust::Roots(webpki(identity::native_roots()?, &provider)?),
            Roots::File(path) => Trust::Roots(webpki(identity::load_roots(path)?.0, &provider)?),
            Roots::DangerouslyNone => Trust::Anyone(provider.clone()),
        };
        let builder = ClientConfig::builder_with_details(provider.clone(), settings.time.clone())
            .with_protocol_versions(&parameters.versions)
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(NotingVerifier(trust)));
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let certified = identity.load(&provider)?;
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
            }
        };
        config.alpn_protocols = checked_alpn(&settings.alpn)?;
        config.resumption = Resumption::disabled();
        Ok(Self { template: Arc::new(config), resumption: settings.resumption })
    }

    /// One core's part, with a session store of its own.
    pub fn core(&self) -> Connector {
        let mut config = ClientConfig::clone(&self.template);
        if self.resumption {
            config.resumption = Resumption::store(Arc::new(CoreSessions::default()));
        }
        Connector { config: Arc::new(config) }
    }
}

/// One core's part of a [`Client`].
#[derive(Clone, Debug)]
pub struct Connector {
    config: Arc<ClientConfig>,
}

impl Connector {
    /// The client's side of a new connection to `peer`. Calling [`Session::receive`] with no bytes gives what must be
    /// sent first.
    pub fn connect(&self, peer: &PeerName) -> Session {
        Session::client(self.config.clone(), peer.0.clone())
    }
}

/// The name that the server's certificate must have, and under which sessions are remembered: a DNS name or an IP
/// address. Only a DNS name is sent to the server (RFC 6066 3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerName(ServerName<'static>);

impl FromStr for PeerName {
    type Err = UnknownName;

    /// Takes the host of a URL: `example.org`, `127.0.0.1`, `::1` or `[::1]`.
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

fn webpki(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, SettingsError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| SettingsError::Refused(error.to_string()))
}

/// Verifies as its `Trust` says, and notes the scheme by which the server signed.
#[derive(Debug)]
struct NotingVerifier(Trust);

#[derive(Debug)]
enum Trust {
    Roots(Arc<WebPkiServerVerifier>),
    /// Still checks that the server has the key of the certificate that it shows.
    Anyone(Arc<CryptoProvider>),
}

impl ServerCertVerifier for NotingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.0 {
            Trust::Roots(roots) => {
                roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            Trust::Anyone(_) => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        notes::signature(signed.scheme);
        match &self.0 {
            Trust::Roots(roots) => roots.verify_tls12_signature(message, cert, signed),
            Trust::Anyone(provider) => {
                verify_tls12_signature(message, cert, signed, &provider.signature_verification_algorithms)
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        notes::signature(signed.scheme);
        match &self.0 {
            Trust::Roots(roots) => roots.verify_tls13_signature(message, cert, signed),
            Trust::Anyone(provider) => {
                verify_tls13_signature(message, cert, signed, &provider.signature_verification_algorithms)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match &self.0 {
            Trust::Roots(roots) => roots.supported_verify_schemes(),
            Trust::Anyone(provider) => provider.signature_verification_algorithms.supported_schemes(),
        }
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        None
    }
}
