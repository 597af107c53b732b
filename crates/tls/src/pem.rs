//! Diagnosing PEM files: why they lack a certificate or key, and what to do.

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

pub(crate) use rustls_pki_types::pem::Error;

/// Why `origin` contains no certificate.
pub(crate) fn why_no_certificate(origin: &str, content: &[u8]) -> String {
    if is_certificate(content) {
        return format!(
            "it is DER: expected PEM; `openssl x509 -inform der -in {origin} -out {origin}.pem` converts it"
        );
    }
    match PrivateKeyDer::from_pem_slice(content) {
        Ok(_) => format!("it contains a private key: expected {CERTIFICATE}"),
        Err(_) => format!("{}: expected {CERTIFICATE}", shape(content)),
    }
}

/// Why `origin` contains no private key.
pub(crate) fn why_no_key(origin: &str, content: &[u8], provider: &CryptoProvider) -> String {
    if is_key(content, provider) {
        return format!(
            "it is DER: expected PEM; `openssl pkey -inform der -in {origin} -out {origin}.pem` converts it"
        );
    }
    if ENCRYPTED.iter().any(|mark| contains(content, mark)) {
        return format!("it is encrypted; `openssl pkey -in {origin} -out {origin}.plain` decrypts it");
    }
    match CertificateDer::from_pem_slice(content) {
        Ok(_) => format!("it contains a certificate: expected {KEY}"),
        Err(_) => format!("{}: expected {KEY}", shape(content)),
    }
}

/// What is wrong with a section.
pub(crate) fn why_damaged(error: &Error) -> String {
    match error {
        Error::MissingSectionEnd { end_marker } => {
            format!("missing line -----END {}-----", String::from_utf8_lossy(end_marker))
        }
        Error::IllegalSectionStart { line } => {
            format!("damaged line {}", line.escape_ascii())
        }
        Error::Base64Decode(_) => "the content between its BEGIN and END lines is not base64".to_owned(),
        other => other.to_string(),
    }
}

const CERTIFICATE: &str = "PEM: text that starts with -----BEGIN CERTIFICATE-----";
const KEY: &str =
    "PEM: text that starts with -----BEGIN PRIVATE KEY-----, PKCS#8, PKCS#1 or SEC1, not encrypted";

/// PKCS#8 encryption and the older one of RFC 1421.
const ENCRYPTED: [&[u8]; 2] = [b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED"];

fn is_certificate(der: &[u8]) -> bool {
    RootCertStore::empty().add(CertificateDer::from(der)).is_ok()
}

fn is_key(der: &[u8], provider: &CryptoProvider) -> bool {
    PrivateKeyDer::try_from(der)
        .is_ok_and(|key| provider.key_provider.load_private_key(key.clone_key()).is_ok())
}

fn shape(content: &[u8]) -> &'static str {
    match content {
        [] => "it is empty",
        _ if contains(content, b"-----BEGIN ") => "it contains other PEM",
        _ if std::str::from_utf8(content).is_ok_and(|text| !text.contains('\0')) => "it is other text",
        _ => "it is binary",
    }
}

fn contains(content: &[u8], part: &[u8]) -> bool {
    content.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_instead() {
        for (content, shape) in [
            (&b""[..], "it is empty"),
            (b"no PEM at all", "it is other text"),
            (b"\x7fELF\x02\x01\x01\0", "it is binary"),
            (b"text\0", "it is binary"),
            (b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "it contains other PEM"),
        ] {
            let expected = format!("{shape}: expected {CERTIFICATE}");
            assert_eq!(why_no_certificate("f", content), expected);
        }
    }

    #[test]
    fn damage_is_described() {
        let damage = |pem: &str| match CertificateDer::from_pem_slice(pem.as_bytes()) {
            Ok(_) => panic!("{pem} is a certificate"),
            Err(error) => why_damaged(&error),
        };
        assert_eq!(damage("-----BEGIN CERTIFICATE-----\nAAAA\n"), "missing line -----END CERTIFICATE-----");
        assert_eq!(
            damage("-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n"),
            "the content between its BEGIN and END lines is not base64"
        );
        assert_eq!(damage("-----BEGIN CERTIFICATE\n"), "damaged line -----BEGIN CERTIFICATE");
    }
}
