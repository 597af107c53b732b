//! rustls's verifier of certificates, with a watch on it.

use std::sync::Arc;
use std::time::Instant;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use weir_engine::Side;
use weir_engine::notes::{self, Span};

use crate::told::code;

/// Verifies as rustls does, and notes the time and the signature's scheme.
#[derive(Debug)]
pub(super) struct Verifier(pub(super) Arc<WebPkiServerVerifier>);

impl Verifier {
    fn signature(
        &self,
        signed: &DigitallySignedStruct,
        verify: impl FnOnce(&WebPkiServerVerifier) -> Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        let start = Instant::now();
        let valid = verify(&self.0)?;
        notes::span(Span::Verify, start);
        notes::signature(Side::Client, code(signed.scheme));
        Ok(valid)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let start = Instant::now();
        let verified = self.0.verify_server_cert(leaf, intermediates, name, ocsp, now)?;
        notes::span(Span::Verify, start);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(signed, |verifier| verifier.verify_tls12_signature(message, leaf, signed))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(signed, |verifier| verifier.verify_tls13_signature(message, leaf, signed))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
