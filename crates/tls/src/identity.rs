//! Loading certificates and keys from PEM, and checking that they match.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{Error, InconsistentKeys, RootCertStore, SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};

use crate::checked_parameters::refused;
use crate::ocsp::{self, Malformed, Staple};
use crate::pem::{self, File, Item};
use crate::portable::KeyCopy;
use crate::{Curves, FileError, SettingsError, curves, notes};

/// A certificate chain, leaf first, and the leaf's private key.
#[derive(Clone)]
pub enum Identity {
    /// PEM files, read when a [`crate::Certificate`], [`crate::Server`] or [`crate::Client`] is created.
    Files {
        /// The chain, leaf first.
        certificates: PathBuf,
        /// The key: PKCS#8, PKCS#1 or SEC1, not encrypted.
        key: PathBuf,
        /// The CA's OCSP response for the leaf (RFC 6960), in DER, to staple; only for servers.
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

    /// Staples the OCSP response in this file, if any. Has no effect on PEM in memory.
    pub fn with_ocsp(mut self, file: Option<PathBuf>) -> Self {
        if let Self::Files { ocsp, .. } = &mut self {
            *ocsp = file;
        }
        self
    }

    /// The file of the certificates, or a name for PEM in memory.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::Files { certificates, .. } => certificates.display().to_string(),
            Self::Pem { .. } => pem::GIVEN_CHAIN.to_owned(),
        }
    }

    /// Reads the identity and checks that key and certificate match.
    pub(crate) fn load(&self, provider: &CryptoProvider) -> Result<CertifiedKey, SettingsError> {
        Ok(self.load_with_key(provider)?.0)
    }

    /// As [`Identity::load`], with a key that signs with `curves`. Also fails if this process cannot use these curves.
    pub(crate) fn load_for(
        &self,
        provider: &CryptoProvider,
        curves: Curves,
    ) -> Result<CertifiedKey, SettingsError> {
        let (mut certified, copy) = self.load_with_key(provider)?;
        if let Some(ifma) = curves.signatures()?
            && let Some(key) = curves::signing_key(ifma, copy.der(), &certified.key).map_err(refused)?
        {
            certified.key = key;
        }
        Ok(certified)
    }

    /// As [`Identity::load`], with a copy of the key.
    pub(crate) fn load_with_key(
        &self,
        provider: &CryptoProvider,
    ) -> Result<(CertifiedKey, KeyCopy), SettingsError> {
        let (certificates, key) = match self {
            Self::Files { certificates, key, .. } => (File::read(certificates)?, File::read(key)?),
            Self::Pem { certificates, key } => (
                File { origin: pem::GIVEN_CHAIN.to_owned(), content: certificates.clone().into_bytes() },
                File { origin: pem::GIVEN_KEY.to_owned(), content: key.clone().into_bytes() },
            ),
        };
        let chain = certificates.chain(&key)?;
        let (signing_key, copy) = signing_key(&key, &certificates, provider)?;
        let certified = CertifiedKey::new(chain, signing_key);
        match certified.keys_match() {
            Ok(()) => Ok((certified, copy)),
            Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                Err(FileError::KeyMismatch { certificates: certificates.origin, key: key.origin }.into())
            }
            Err(error) => Err(certificates.bad(pem::CERTIFICATE, error.to_string()).into()),
        }
    }

    /// The OCSP response for the leaf of `chain`, with the decision whether to staple it; `None` without a response.
    pub(crate) fn staple(
        &self,
        chain: &[CertificateDer<'_>],
        provider: &CryptoProvider,
        now: i64,
    ) -> Result<Option<(Vec<u8>, Staple)>, SettingsError> {
        let Self::Files { ocsp: Some(path), .. } = self else { return Ok(None) };
        let file = File::read(path)?;
        let algorithms = &provider.signature_verification_algorithms;
        let why = match ocsp::judge(file.origin.clone(), &file.content, chain, algorithms, now) {
            Ok(staple) => return Ok(Some((file.content, staple))),
            Err(Malformed::NotDer) => "expected DER, as `openssl ocsp -respout FILE` writes it".to_owned(),
            Err(Malformed::Status(status)) => {
                format!("the responder refused, with status {status} (RFC 6960 section 4.2.1)")
            }
        };
        Err(file.bad("not a good OCSP response", why).into())
    }
}

/// The private key in a file, ready to sign, and a copy.
fn signing_key(
    key: &File,
    certificates: &File,
    provider: &CryptoProvider,
) -> Result<(Arc<dyn SigningKey>, KeyCopy), FileError> {
    let Item { der, line } = key.key(certificates, provider)?;
    let copy = KeyCopy::of(&der);
    let unusable = pem::why_unusable(der.secret_der());
    let unusable = |_| key.bad_line("no usable private key", line, unusable);
    Ok((provider.key_provider.load_private_key(der).map_err(unusable)?, copy))
}

/// The secrets in a file; see [`secrets_in`].
pub(crate) fn load_secrets(path: &Path) -> Result<Vec<Vec<u8>>, FileError> {
    secrets_in(&File::read(path)?)
}

/// Parses secrets in hexadecimal, one per line. Skips empty lines and those that begin with `#`. Fails on an invalid
/// line, or if there is no secret.
pub(crate) fn secrets_in(source: &File) -> Result<Vec<Vec<u8>>, FileError> {
    let mut secrets = Vec::new();
    let lines = source.content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(b"#")) {
        let digits = line.iter().map(|digit| char::from(*digit).to_digit(16)).collect::<Option<Vec<_>>>();
        let digits = digits.filter(|digits| digits.len() >= 64 && digits.len() % 2 == 0);
        // The error must not quote the line, which is a secret.
        let digits = digits.ok_or_else(|| {
            let expected = "expected at least 64 hexadecimal digits, as `openssl rand -hex 32` prints them";
            source.bad_line(SECRETS, index + 1, expected.to_owned())
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

const SECRETS: &str = "not a file of secrets";
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

/// A server's signing key that records the scheme, which rustls chooses only when signing.
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
