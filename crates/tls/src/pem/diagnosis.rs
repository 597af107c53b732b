//! Advice on PEM files that lack the expected content.

use rustls::crypto::CryptoProvider;
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem};
use x509_parser::prelude::{CertificateRevocationList, FromDer as _};

use super::blocks::{self, Block, contains};
use super::{GIVEN_CHAIN, GIVEN_KEY};

pub(super) const NOT_X509: &str = "its content is not X.509";

/// The reason why `origin` contains no certificate.
pub(super) fn why_no_certificate(origin: &str, content: &[u8]) -> String {
    if is_certificate(content) {
        let file = file_of(origin);
        return format!(
            "it is DER: expected PEM; `openssl x509 -inform der -in {file} -out {file}.pem` converts it"
        );
    }
    format!("{}: expected {CERTIFICATE}", shape(content))
}

/// The reason why `origin` contains no private key.
pub(super) fn why_no_key(origin: &str, content: &[u8], provider: &CryptoProvider) -> String {
    if is_key(content, provider) {
        let file = file_of(origin);
        return format!(
            "it is DER: expected PEM; `openssl pkey -inform der -in {file} -out {file}.pem` converts it"
        );
    }
    format!("{}: expected {KEY}", shape(content))
}

/// The reason why `origin` contains no revocation list.
pub(super) fn why_no_list(origin: &str, content: &[u8]) -> String {
    if CertificateRevocationList::from_der(content).is_ok() {
        let file = file_of(origin);
        return format!(
            "it is DER: expected PEM; `openssl crl -inform der -in {file} -out {file}.pem` converts it"
        );
    }
    format!("{}: expected {LIST}", shape(content))
}

/// The reason why the library cannot sign with a key (DER), based on the algorithm in the key.
pub(crate) fn why_unusable(der: &[u8]) -> String {
    let kind = KINDS.iter().find(|(oid, _)| contains(der, oid)).map_or("", |(_, kind)| kind);
    format!(
        "{kind}expected an RSA key of 2048 to 8192 bits, or an ECDSA key on P-256, P-384 or P-521, or an Ed25519 key"
    )
}

/// The encoded OIDs of algorithms whose keys are unusable, always or in some sizes.
const KINDS: [(&[u8], &str); 6] = [
    (
        b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a",
        "an RSA-PSS key (id-RSASSA-PSS), which is not supported; RSA keys sign with PSS, too: ",
    ),
    (b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", "an RSA key of an unsupported size: "),
    (b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01", "an ECDSA key on an unsupported curve: "),
    (b"\x06\x03\x2b\x65\x71", "an Ed448 key, which is not supported: "),
    (b"\x06\x03\x2b\x65\x6e", "an X25519 key, which cannot sign: "),
    (b"\x06\x07\x2a\x86\x48\xce\x38\x04\x01", "a DSA key, which is not supported: "),
];

/// Advice to decrypt the key in `origin`.
pub(super) fn encrypted(origin: &str) -> String {
    let file = file_of(origin);
    format!("it is encrypted; `openssl pkey -in {file} -out {file}.plain` decrypts it")
}

/// The reason why a block is unusable where blocks with the label `expected` belong.
pub(super) fn why_not_used(origin: &str, block: &Block<'_>, expected: &str) -> String {
    let (label, file) = (block.label, file_of(origin));
    let next = match (label, expected) {
        ("TRUSTED CERTIFICATE", blocks::CERTIFICATE) => {
            format!("; `openssl x509 -in {file} -out {file}.pem` converts one")
        }
        ("X509 CERTIFICATE", blocks::CERTIFICATE) => "; change its label".to_owned(),
        ("PKCS7", blocks::CERTIFICATE) => {
            format!("; `openssl pkcs7 -print_certs -in {file} -out {file}.pem` converts it")
        }
        (blocks::LIST, blocks::CERTIFICATE) => "; revocation lists have a file of their own".to_owned(),
        (blocks::CERTIFICATE, blocks::LIST) => "; CAs have a file of their own".to_owned(),
        (blocks::CERTIFICATE, blocks::KEY) => {
            "; give the key a file of its own, or name the same file as the chain's".to_owned()
        }
        (_, blocks::CERTIFICATE) if block.is_key() || block.is_encrypted() => {
            "; a private key has a file of its own, or a chain's and its key's file are the same".to_owned()
        }
        _ => String::new(),
    };
    format!("-----BEGIN {label}----- has no use here: expected -----BEGIN {expected}-----{next}")
}

/// The reason why a block cannot be decoded.
pub(super) fn why_damaged(error: &pem::Error) -> String {
    match error {
        pem::Error::Base64Decode(_) => "the content between its BEGIN and END lines is not base64".to_owned(),
        other => other.to_string(),
    }
}

/// The reason why the decoded bytes are not a certificate.
pub(super) fn unreadable(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::BadEncoding) => NOT_X509.to_owned(),
        other => other.to_string(),
    }
}

/// The file in a command for `origin`, a placeholder for PEM in memory.
fn file_of(origin: &str) -> &str {
    if [GIVEN_CHAIN, GIVEN_KEY].contains(&origin) { "FILE" } else { origin }
}

const CERTIFICATE: &str = "PEM: text that starts with -----BEGIN CERTIFICATE-----";
const KEY: &str =
    "PEM: text that starts with -----BEGIN PRIVATE KEY-----, PKCS#8, PKCS#1 or SEC1, not encrypted";
const LIST: &str = "PEM: text that starts with -----BEGIN X509 CRL-----";

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
}
