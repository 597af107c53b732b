//! rustls's verifier of certificates, with a watch on it.

use std::time::{Instant, SystemTime};

use rustls::client::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier, WebPkiVerifier};
use rustls::{Certificate, DigitallySignedStruct, Error, ServerName, SignatureScheme};
use weir_engine::Side;
use weir_engine::notes::{self, Span};

use crate::told::code;

/// Verifies as rustls does, and notes the time and the signature's scheme.
pub(super) struct Verifier(pub(super) WebPkiVerifier);

impl Verifier {
    fn signature(
        &self,
        signed: &DigitallySignedStruct,
        verify: impl FnOnce(&WebPkiVerifier) -> Result<HandshakeSignatureValid, Error>,
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
        leaf: &Certificate,
        intermediates: &[Certificate],
        name: &ServerName,
        timestamps: &mut dyn Iterator<Item = &[u8]>,
        ocsp: &[u8],
        now: SystemTime,
    ) -> Result<ServerCertVerified, Error> {
        let start = Instant::now();
        let verified = self.0.verify_server_cert(leaf, intermediates, name, timestamps, ocsp, now)?;
        notes::span(Span::Verify, start);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &Certificate,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(signed, |verifier| verifier.verify_tls12_signature(message, leaf, signed))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &Certificate,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(signed, |verifier| verifier.verify_tls13_signature(message, leaf, signed))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn request_scts(&self) -> bool {
        self.0.request_scts()
    }
}
