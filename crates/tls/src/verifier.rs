//! Verification of the server's certificate and signature.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::{DigitallySignedStruct, Error, PeerMisbehaved, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::{SettingsError, identity, notes};

/// The CAs a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The system's trusted CAs.
    Native,
    /// The CAs in a PEM file.
    File(PathBuf),
    /// Skip certificate verification, which allows a man in the middle. For
    /// tests only.
    DangerouslyNone,
}

/// Verifies against the roots, and records the server's signature scheme.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// None trusts any certificate, but still checks that the server has its key.
    roots: Option<Arc<WebPkiServerVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
    /// The schemes offered, most preferred first: only for the handshake's signature, since the
    /// certificates' signatures are up to the CAs.
    schemes: Vec<SignatureScheme>,
}

impl Verifier {
    /// Reads the roots.
    pub(crate) fn new(
        roots: &Roots,
        provider: &Arc<CryptoProvider>,
        schemes: Vec<SignatureScheme>,
    ) -> Result<Self, SettingsError> {
        let trusted = match roots {
            Roots::Native => Some(identity::native_roots()?),
            Roots::File(path) => Some(identity::load_roots(path)?.0),
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
        })
    }

    /// A server may only use an offered scheme (RFC 8446 4.4.3, RFC 5246 7.4.3).
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
        match &self.roots {
            Some(roots) => {
                roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Ok(ServerCertVerified::assertion()),
        }
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
