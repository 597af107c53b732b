//! Certificates and keys from PEM: loaded and checked against each other.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore, SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, SubjectPublicKeyInfoDer,
};

use crate::{FileError, SettingsError, notes, pem};

/// A certificate chain, leaf first, and the leaf's private key.
#[derive(Clone)]
pub enum Identity {
    /// PEM files, read when the [`crate::Server`] or [`crate::Client`] is made.
    Files {
        /// The chain, leaf first.
        certificates: PathBuf,
        /// The key: PKCS#8, PKCS#1 or SEC1, not encrypted.
        key: PathBuf,
        /// The CA's OCSP response about the leaf (RFC 6960), in DER, to staple; only for servers.
        ocsp: Option<PathBuf>,
    },
    /// PEM text in memory.
    Pem {
        /// The chain, leaf first.
        certificates: String,
        /// The key: PKCS#8, PKCS#1 or SEC1, not encrypted.
        key: String,
    },
}

impl Identity {
    /// An identity in two PEM files.
    pub fn files(certificates: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self::Files { certificates: certificates.into(), key: key.into(), ocsp: None }
    }

    /// Staples the OCSP response in this file, if there is one. For an identity in files.
    pub fn with_ocsp(mut self, file: Option<PathBuf>) -> Self {
        if let Self::Files { ocsp, .. } = &mut self {
            *ocsp = file;
        }
        self
    }

    /// The file of the certificates, or its substitute.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::Files { certificates, .. } => certificates.display().to_string(),
            Self::Pem { .. } => "the given certificates".to_owned(),
        }
    }

    /// Reads the identity and checks that key and certificate belong together.
    pub(crate) fn load(&self, provider: &CryptoProvider) -> Result<CertifiedKey, SettingsError> {
        let (certificates, key) = match self {
            Self::Files { certificates, key, .. } => (Source::read(certificates)?, Source::read(key)?),
            Self::Pem { certificates, key } => (
                Source {
                    origin: "the given certificates".to_owned(),
                    pem: certificates.clone().into_bytes(),
                },
                Source { origin: "the given key".to_owned(), pem: key.clone().into_bytes() },
            ),
        };
        let chain = certificates.certificates()?;
        let signing_key = key.signing_key(provider)?;
        let mut certified = CertifiedKey::new(chain, signing_key);
        if let Self::Files { ocsp: Some(path), .. } = self {
            certified.ocsp = Some(ocsp_response(path)?);
        }
        match certified.keys_match() {
            Ok(()) => Ok(certified),
            Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                Err(FileError::KeyMismatch { certificates: certificates.origin, key: key.origin }.into())
            }
            Err(error) => Err(certificates.bad(CERTIFICATE, unreadable(&error))),
        }
    }
}

/// A good OCSP response in DER. Who signed it, and for which certificate, the clients verify.
fn ocsp_response(path: &Path) -> Result<Vec<u8>, SettingsError> {
    let source = Source::read(path)?;
    let body = match &source.pem[..] {
        [0x30, len, body @ ..] if *len < 0x80 && body.len() == usize::from(*len) => Some(body),
        [0x30, 0x81, len, body @ ..] if body.len() == usize::from(*len) => Some(body),
        [0x30, 0x82, high, low, body @ ..]
            if body.len() == usize::from(u16::from_be_bytes([*high, *low])) =>
        {
            Some(body)
        }
        _ => None,
    };
    match body {
        Some([0x0a, 1, 0, _, ..]) => Ok(source.pem),
        Some([0x0a, 1, status, ..]) => {
            Err(source
                .bad(OCSP, format!("the responder refused, with status {status} (RFC 6960 section 4.2.1)")))
        }
        _ => Err(source.bad(OCSP, "expected DER, as `openssl ocsp -respout FILE` writes it".to_owned())),
    }
}

/// The file's certificates as trust anchors, with their DER bytes, to distinguish policies.
pub(crate) fn load_roots(
    path: &Path,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), SettingsError> {
    let source = Source::read(path)?;
    let certificates = source.certificates()?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        let bad = |error| source.bad(CERTIFICATE, unreadable(&error));
        roots.add(certificate.clone()).map_err(bad)?;
    }
    Ok((roots, certificates))
}

/// The certificate revocation lists of a PEM file.
pub(crate) fn load_crls(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, SettingsError> {
    let source = Source::read(path)?;
    let lists = CertificateRevocationListDer::pem_slice_iter(&source.pem).collect::<Result<Vec<_>, _>>();
    let lists = lists.map_err(|error| source.bad(CRL, pem::why_damaged(&error)))?;
    match lists.is_empty() {
        true => Err(source.bad(CRL, "expected `-----BEGIN X509 CRL-----`".to_owned())),
        false => Ok(lists),
    }
}

/// The secrets in a file: one in a line, in hexadecimal. Empty lines and those that begin with `#` are skipped.
pub(crate) fn load_secrets(path: &Path) -> Result<Vec<Vec<u8>>, SettingsError> {
    let source = Source::read(path)?;
    let mut secrets = Vec::new();
    let lines = source.pem.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(b"#")) {
        let digits = line.iter().map(|digit| char::from(*digit).to_digit(16)).collect::<Option<Vec<_>>>();
        let digits = digits.filter(|digits| digits.len() >= 64 && digits.len() % 2 == 0);
        // The line itself is a secret, so the message does not have it.
        let digits = digits.ok_or_else(|| {
            let expected = "expected at least 64 hexadecimal digits, as `openssl rand -hex 32` prints them";
            source.bad(SECRETS, format!("line {}: {expected}", index + 1))
        })?;
        secrets.push(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect());
    }
    match secrets.is_empty() {
        true => Err(source.bad(SECRETS, "expected at least one line".to_owned())),
        false => Ok(secrets),
    }
}

/// The system's trusted CAs.
pub(crate) fn native_roots() -> Result<RootCertStore, SettingsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let detail = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(FileError::NoNativeRoots { detail }.into());
    }
    Ok(roots)
}

struct Source {
    origin: String,
    pem: Vec<u8>,
}

const CERTIFICATE: &str = "not a valid certificate";
const OCSP: &str = "not a good OCSP response";
const SECRETS: &str = "not a file of secrets";
const CRL: &str = "not a certificate revocation list";

impl Source {
    fn read(path: &Path) -> Result<Self, SettingsError> {
        match fs::read(path) {
            Ok(pem) => Ok(Self { origin: path.display().to_string(), pem }),
            Err(source) => Err(FileError::System { what: "read", path: path.to_owned(), source }.into()),
        }
    }

    fn bad(&self, what: &'static str, detail: String) -> SettingsError {
        FileError::Bad { origin: self.origin.clone(), what, detail }.into()
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
        let chain = CertificateDer::pem_slice_iter(&self.pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| self.bad(CERTIFICATE, pem::why_damaged(&error)))?;
        if chain.is_empty() {
            return Err(
                self.bad("it contains no certificate", pem::why_no_certificate(&self.origin, &self.pem))
            );
        }
        Ok(chain)
    }

    fn signing_key(&self, provider: &CryptoProvider) -> Result<Arc<dyn SigningKey>, SettingsError> {
        let bad = |detail| self.bad("no usable private key", detail);
        let der = PrivateKeyDer::from_pem_slice(&self.pem).map_err(|error| match error {
            pem::Error::NoItemsFound => bad(pem::why_no_key(&self.origin, &self.pem, provider)),
            damage => bad(pem::why_damaged(&damage)),
        })?;
        let unusable =
            |_| bad("expected an RSA key of at least 2048 bits, or an ECDSA or Ed25519 key".to_owned());
        provider.key_provider.load_private_key(der).map_err(unusable)
    }
}

/// Why the decoded bytes are not a certificate.
fn unreadable(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::BadEncoding) => "its content is not X.509".to_owned(),
        other => other.to_string(),
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files { certificates, key, ocsp } => f
                .debug_struct("Files")
                .field("certificates", certificates)
                .field("key", key)
                .field("ocsp", ocsp)
                .finish(),
            Self::Pem { .. } => f.debug_struct("Pem").finish_non_exhaustive(),
        }
    }
}

/// A server's signing key that records the scheme: rustls only chooses it when signing.
#[derive(Debug)]
pub(crate) struct NotingKey(pub(crate) Arc<dyn SigningKey>);

impl SigningKey for NotingKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.0.choose_scheme(offered)?;
        notes::signature(signer.scheme());
        Some(signer)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.0.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}
