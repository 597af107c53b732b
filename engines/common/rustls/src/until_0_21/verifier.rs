//! rustls's certificate verifier, timed.

use std::time::SystemTime;

use rustls::client::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier, WebPkiVerifier};
use rustls::{Certificate, DigitallySignedStruct, Error, ServerName, SignatureScheme};
use weir_engine::notes::{self, Span};

use crate::verification::signature;

/// Verifies as rustls does.
pub(super) struct Verifier(pub(super) WebPkiVerifier);

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
        notes::span(Span::Verify, || {
            self.0.verify_server_cert(leaf, intermediates, name, timestamps, ocsp, now)
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &Certificate,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature(signed, || self.0.verify_tls12_signature(message, leaf, signed))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &Certificate,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature(signed, || self.0.verify_tls13_signature(message, leaf, signed))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn request_scts(&self) -> bool {
        self.0.request_scts()
    }
}
