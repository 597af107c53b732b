//! A server's certificate, loaded and checked.

use std::fmt;
use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs;
use rustls::sign::CertifiedKey;

use crate::identity::NotingKey;
use crate::portable::KeyCopy;
use crate::{Identity, OfferError, Presented, SettingsError, Staple, TimeProvider};

/// A server's certificate chain with its key, loaded and checked. Clones share it, and so do all servers that present it.
#[derive(Clone)]
pub struct Certificate(Arc<Loaded>);

struct Loaded {
    /// Without an OCSP response.
    bare: Arc<CertifiedKey>,
    /// With its OCSP response, unless there is none to staple.
    stapled: Option<Arc<CertifiedKey>>,
    presented: Presented,
    /// `None` unless the certificate is portable.
    key: Option<KeyCopy>,
}

impl Certificate {
    /// Loads a certificate and its key, and judges its OCSP response by the time of `clock`. Errors: a file is unreadable
    /// or has other content, or the key does not match the certificate.
    pub fn load(identity: &Identity, clock: &dyn TimeProvider) -> Result<Self, SettingsError> {
        let provider = aws_lc_rs::default_provider();
        let certified = identity.load(&provider)?;
        let response = identity.staple(&certified.cert, &provider, seconds(clock))?;
        Self::new(certified, identity.origin(), response, None)
    }

    /// A certificate from its parts. `origin`: the file of the chain, or its substitute.
    pub(crate) fn new(
        certified: CertifiedKey,
        origin: String,
        response: Option<(Vec<u8>, Staple)>,
        copy: Option<KeyCopy>,
    ) -> Result<Self, SettingsError> {
        let CertifiedKey { cert, key, .. } = certified;
        let leaf = cert.first().ok_or(OfferError::Empty { what: "certificate" })?;
        let mut presented = Presented::of(origin, leaf);
        let (ocsp, staple) = response.unzip();
        presented.ocsp = staple;
        let is_usable = presented.ocsp.as_ref().is_some_and(|staple| staple.rejected.is_none());
        let bare = CertifiedKey { cert, key: Arc::new(NotingKey(key)), ocsp: None };
        let stapled = is_usable.then(|| Arc::new(CertifiedKey { ocsp, ..bare.clone() }));
        Ok(Self(Arc::new(Loaded { bare: Arc::new(bare), stapled, presented, key: copy })))
    }

    /// Facts about the certificate.
    pub fn presented(&self) -> &Presented {
        &self.0.presented
    }

    /// Whether both are clones of one certificate.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether both have the same chain, and so the same key.
    pub fn has_chain_of(&self, other: &Self) -> bool {
        self.0.bare.cert == other.0.bare.cert
    }

    /// Without an OCSP response.
    pub(crate) fn bare(&self) -> &Arc<CertifiedKey> {
        &self.0.bare
    }

    /// The copy of its key; `None` unless the certificate is portable.
    pub(crate) fn key_copy(&self) -> Option<&KeyCopy> {
        self.0.key.as_ref()
    }

    /// With its OCSP response if that is valid at the time of `clock`.
    pub(crate) fn certified(&self, clock: &dyn TimeProvider) -> &Arc<CertifiedKey> {
        let Loaded { bare, stapled, presented, key: _ } = &*self.0;
        match (stapled, &presented.ocsp) {
            (Some(stapled), Some(staple)) if staple.is_stapled_at(seconds(clock)) => stapled,
            _ => bare,
        }
    }

    pub(crate) fn algorithm(&self) -> SignatureAlgorithm {
        self.0.bare.key.algorithm()
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate").field(self.presented()).finish()
    }
}

/// The time in seconds since the epoch.
fn seconds(clock: &dyn TimeProvider) -> i64 {
    clock.current_time().map_or(0, |now| now.as_secs() as i64)
}
