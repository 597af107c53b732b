//! A server's certificate, loaded and checked.

use std::fmt;
use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs;
use rustls::sign::CertifiedKey;

use crate::identity::NotingKey;
use crate::{Identity, OfferError, Presented, SettingsError, TimeProvider};

/// A server's certificate chain with its key, loaded and checked. Clones share it, and so do all servers that present it.
#[derive(Clone)]
pub struct Certificate(Arc<Loaded>);

struct Loaded {
    /// Without an OCSP response.
    bare: Arc<CertifiedKey>,
    /// With its OCSP response, unless there is none to staple.
    stapled: Option<Arc<CertifiedKey>>,
    presented: Presented,
}

impl Certificate {
    /// Loads a certificate and its key, and judges its OCSP response by the time of `clock`. Errors: a file is unreadable
    /// or has other content, or the key does not match the certificate.
    pub fn load(identity: &Identity, clock: &dyn TimeProvider) -> Result<Self, SettingsError> {
        let provider = aws_lc_rs::default_provider();
        let CertifiedKey { cert, key, .. } = identity.load(&provider)?;
        let leaf = cert.first().ok_or(OfferError::Empty { what: "certificate" })?;
        let mut presented = Presented::of(identity.origin(), leaf);
        let (ocsp, staple) = identity.staple(&cert, &provider, seconds(clock))?.unzip();
        presented.ocsp = staple;
        let is_usable = presented.ocsp.as_ref().is_some_and(|staple| staple.rejected.is_none());
        let bare = CertifiedKey { cert, key: Arc::new(NotingKey(key)), ocsp: None };
        let stapled = is_usable.then(|| Arc::new(CertifiedKey { ocsp, ..bare.clone() }));
        Ok(Self(Arc::new(Loaded { bare: Arc::new(bare), stapled, presented })))
    }

    /// Facts about the certificate.
    pub fn presented(&self) -> &Presented {
        &self.0.presented
    }

    /// Whether both are clones of one certificate.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Without an OCSP response.
    pub(crate) fn bare(&self) -> &Arc<CertifiedKey> {
        &self.0.bare
    }

    /// With its OCSP response if that is valid at the time of `clock`.
    pub(crate) fn certified(&self, clock: &dyn TimeProvider) -> &Arc<CertifiedKey> {
        let Loaded { bare, stapled, presented } = &*self.0;
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
