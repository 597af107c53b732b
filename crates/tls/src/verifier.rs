//! How a client judges the server's certificate and signature.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, RootCertStore, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::client::Roots;
use crate::{SettingsError, identity, notes};

/// Verifies as its `Trust` says, and notes the scheme by which the server signed.
///
/// The schemes are those of the handshake's signature alone: what signed the certificates is the authorities' affair.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) trust: Trust,
    /// The schemes offered, most preferred first.
    pub(crate) schemes: Vec<SignatureScheme>,
}

#[derive(Debug)]
pub(crate) enum Trust {
    Roots(Arc<WebPkiServerVerifier>),
    /// Still checks that the server has the key of the certificate that it shows.
    Anyone(Arc<CryptoProvider>),
}

impl Trust {
    /// Reads the roots.
    pub(crate) fn new(roots: &Roots, provider: &Arc<CryptoProvider>) -> Result<Self, SettingsError> {
        match roots {
            Roots::Native => webpki(identity::native_roots()?, provider),
            Roots::File(path) => webpki(identity::load_roots(path)?.0, provider),
            Roots::DangerouslyNone => Ok(Self::Anyone(provider.clone())),
        }
    }

    /// The schemes that can be verified.
    pub(crate) fn schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Self::Roots(roots) => roots.supported_verify_schemes(),
            Self::Anyone(provider) => provider.signature_verification_algorithms.supported_schemes(),
        }
    }
}

fn webpki(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Trust, SettingsError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map(Trust::Roots)
        .map_err(|error| SettingsError::Refused(error.to_string()))
}

impl Verifier {
    /// A server may sign only by what was offered (RFC 8446 4.4.3, RFC 5246 7.4.3).
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
        match &self.trust {
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
        self.check_offered(signed.scheme)?;
        match &self.trust {
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
        self.check_offered(signed.scheme)?;
        match &self.trust {
            Trust::Roots(roots) => roots.verify_tls13_signature(message, cert, signed),
            Trust::Anyone(provider) => {
                verify_tls13_signature(message, cert, signed, &provider.signature_verification_algorithms)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        None
    }
}
