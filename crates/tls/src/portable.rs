//! A certificate with its key as bytes, for another process on this machine.
//!
//! The bytes are DER values, each preceded by its length as four bytes, big-endian: the key, then the chain, leaf
//! first.

use std::fmt;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::{Zeroize as _, Zeroizing};

use crate::{Certificate, FileError, Identity, SettingsError};

/// A copy of a private key, since a loaded key does not expose its value. Dropping the copy overwrites it with zeros.
pub(crate) struct KeyCopy(PrivateKeyDer<'static>);

impl KeyCopy {
    pub(crate) fn of(key: &PrivateKeyDer<'_>) -> Self {
        Self(key.clone_key())
    }

    /// The key in DER.
    pub(crate) fn der(&self) -> &[u8] {
        self.0.secret_der()
    }
}

impl Drop for KeyCopy {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for KeyCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyCopy")
    }
}

impl Certificate {
    /// Loads a certificate without an OCSP response, and keeps a copy of its key for [`Certificate::to_bytes`].
    /// `origin` names the certificate's source in errors. Errors: those of [`Certificate::load`].
    pub fn load_portable(identity: &Identity, origin: String) -> Result<Self, SettingsError> {
        let (certified, key) = identity.load_with_key(&aws_lc_rs::default_provider())?;
        Self::new(certified, origin, None, Some(key))
    }

    /// The certificate with its key, for [`Certificate::of_bytes`] in another process. `None` unless it is portable.
    pub fn to_bytes(&self) -> Option<Zeroizing<Vec<u8>>> {
        let key = self.key_copy()?.der();
        let values = || std::iter::once(key).chain(self.bare().cert.iter().map(AsRef::as_ref));
        // Reserve the full size: growing the buffer would leave copies of the key in freed memory.
        let length = values().map(|value| PREFIX + value.len()).sum();
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        for value in values() {
            bytes.extend_from_slice(&u32::try_from(value.len()).ok()?.to_be_bytes());
            bytes.extend_from_slice(value);
        }
        Some(bytes)
    }

    /// Reads the portable certificate in `bytes`, and checks it as [`Certificate::load`] does. Fails if the bytes do
    /// not come from [`Certificate::to_bytes`], or this process does not support the key.
    pub fn of_bytes(bytes: &[u8], origin: String) -> Result<Self, SettingsError> {
        let bad = |why: String| FileError::Bad { origin: origin.clone(), what: BAD, detail: why };
        let [key, chain @ ..] = &values(bytes).ok_or_else(|| bad("damaged lengths".to_owned()))?[..] else {
            return Err(bad("no key".to_owned()).into());
        };
        let key = PrivateKeyDer::try_from(*key).map_err(|why| bad(format!("the key: {why}")))?;
        if chain.iter().any(|der| !matches!(X509Certificate::from_der(der), Ok(([], _)))) {
            return Err(bad("a certificate of the chain is not X.509".to_owned()).into());
        }
        let chain = chain.iter().map(|der| CertificateDer::from(der.to_vec())).collect();
        let CryptoProvider { key_provider, .. } = aws_lc_rs::default_provider();
        let signing = key_provider.load_private_key(key.clone_key());
        let signing = signing.map_err(|error| bad(format!("the key: {error}")))?;
        let certified = CertifiedKey::new(chain, signing);
        certified.keys_match().map_err(|error| bad(error.to_string()))?;
        Self::new(certified, origin, None, Some(KeyCopy::of(&key)))
    }
}

/// Splits bytes into values; `None` if a length is invalid.
fn values(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<PREFIX>()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        values.push(value);
        bytes = rest;
    }
    Some(values)
}

/// The size of a value's length prefix, in bytes.
const PREFIX: usize = 4;

const BAD: &str = "not a certificate with its key";
