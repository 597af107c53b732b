//! Verification of the server's certificate and signature.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::{DigitallySignedStruct, Error, PeerMisbehaved, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::pem::File;
use crate::{SettingsError, identity, notes};

/// The CAs that a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The system's trusted CAs.
    Native,
    /// The CAs in a PEM file.
    File(PathBuf),
    /// Skip certificate verification, which allows a man in the middle. For tests only.
    DangerouslyNone,
}

/// The maximum number of cached chains per core, each for one server name; the oldest is evicted first.
const REMEMBERED: usize = 8;

/// Verifies against the roots, and records the server's signature scheme.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// `None` accepts any certificate, but the signature must still prove that the server has the private key.
    roots: Option<Arc<WebPkiServerVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
    /// The schemes offered, most preferred first. They apply only to the handshake's signature, since CAs choose the
    /// schemes of the certificates' signatures.
    schemes: Vec<SignatureScheme>,
    /// The chains verified most recently, oldest first. rustls requires `Sync`; only the owning core locks
    /// the mutex.
    good: Mutex<Vec<Good>>,
}

/// A chain that was verified for a name at one second of the clock.
///
/// The result depends on the roots, the name, the chain and the time in whole seconds (RFC 5280 4.1.2.5), so the result
/// also holds for other connections in that second: the client verifies each chain at most once per second and name.
#[derive(Debug)]
struct Good {
    name: ServerName<'static>,
    /// The chain, leaf first.
    chain: Vec<CertificateDer<'static>>,
    at: UnixTime,
}

impl Good {
    fn is(
        &self,
        leaf: &[u8],
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        at: UnixTime,
    ) -> bool {
        self.at == at
            && self.name == *name
            && self.chain.split_first().is_some_and(|(first, rest)| **first == *leaf && rest == intermediates)
    }
}

impl Verifier {
    /// Creates a verifier without cached chains. Fails if the roots are unusable.
    pub(crate) fn new(
        roots: &Roots,
        provider: &Arc<CryptoProvider>,
        schemes: Vec<SignatureScheme>,
    ) -> Result<Self, SettingsError> {
        let trusted = match roots {
            Roots::Native => Some(identity::native_roots()?),
            Roots::File(path) => Some(File::read(path)?.authorities()?.0),
            Roots::DangerouslyNone => None,
        };
        let webpki = |roots: RootCertStore| {
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()
        };
        let roots = trusted.map(webpki).transpose();
        Ok(Self {
            roots: roots.map_err(|error| SettingsError::Refused(error.to_string()))?,
            algorithms: provider.signature_verification_algorithms,
            schemes,
            good: Mutex::default(),
        })
    }

    /// Creates one core's part, with a separate cache.
    pub(crate) fn core(&self) -> Self {
        Self {
            roots: self.roots.clone(),
            algorithms: self.algorithms,
            schemes: self.schemes.clone(),
            good: Mutex::default(),
        }
    }

    fn good<T>(&self, act: impl FnOnce(&mut Vec<Good>) -> T) -> T {
        act(&mut self.good.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks that the server uses an offered scheme (RFC 8446 4.4.3, RFC 5246 7.4.3).
    fn check_offered(&self, scheme: SignatureScheme) -> Result<(), Error> {
        notes::signature(scheme);
        match self.schemes.contains(&scheme) {
            true => Ok(()),
            false => Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(roots) = &self.roots else { return Ok(ServerCertVerified::assertion()) };
        let is_known = |good: &mut Vec<Good>| {
            good.iter().any(|good| good.is(end_entity, intermediates, server_name, now))
        };
        if self.good(is_known) {
            return Ok(ServerCertVerified::assertion());
        }
        let verified =
            roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        let chain = std::iter::once(end_entity).chain(intermediates).cloned().map(CertificateDer::into_owned);
        let new = Good { name: server_name.to_owned(), chain: chain.collect(), at: now };
        self.good(|good| {
            good.retain(|known| known.name != new.name);
            if good.len() == REMEMBERED {
                good.remove(0);
            }
            good.push(new);
        });
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_offered(signed.scheme)?;
        verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_offered(signed.scheme)?;
        verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
