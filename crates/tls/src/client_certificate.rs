//! A client's certificate as texts that fit into a header field.

use std::fmt::Write as _;

use aws_lc_rs::digest;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// What servers behind a gateway want to know of a client's certificate. None of the texts has a control character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject, as in `CN=client, O=Example`.
    pub subject: String,
    /// The serial number in hexadecimal digits.
    pub serial: String,
    /// The SHA-256 digest of the certificate in hexadecimal digits.
    pub fingerprint: String,
}

impl ClientCertificate {
    /// Reads a leaf certificate (DER). `None` if it is none.
    pub fn read(leaf: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(leaf).ok()?;
        Some(Self {
            subject: printable(&certificate.subject().to_string()),
            serial: hex(certificate.raw_serial()),
            fingerprint: hex(digest::digest(&digest::SHA256, leaf).as_ref()),
        })
    }
}

/// What is not printable ASCII becomes `\\xx`, as in RFC 4514 section 2.4: a subject must not end a field.
fn printable(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b' '..=b'~' => out.push(char::from(byte)),
            // Writing to a string does not fail.
            _ => drop(write!(out, "\\{byte:02x}")),
        }
        out
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_end_a_field_is_escaped() {
        assert_eq!(printable("CN=a\r\nX: b, O=\u{fc}"), "CN=a\\0d\\0aX: b, O=\\c3\\bc");
    }
}
