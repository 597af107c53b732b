//! A client certificate as texts for header fields.

use std::fmt::Write as _;

use aws_lc_rs::digest;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::distinguished_name;

/// The parts of a client certificate that servers behind a gateway need. No text contains a control
/// character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject, as in `CN=client,O=Example` (RFC 4514).
    pub subject: String,
    /// The serial number in hexadecimal digits.
    pub serial: String,
    /// The SHA-256 digest of the certificate in hexadecimal digits.
    pub fingerprint: String,
}

impl ClientCertificate {
    /// Parses a leaf certificate (DER). `None` if it is invalid.
    pub fn read(leaf: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
        Some(Self {
            subject: distinguished_name::text(certificate.subject()),
            serial: hex(certificate.raw_serial()),
            fingerprint: hex(digest::digest(&digest::SHA256, leaf).as_ref()),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
