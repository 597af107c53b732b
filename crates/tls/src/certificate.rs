//! A server's certificate: loading, checking, and sharing it between servers.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs;
use rustls::sign::{CertifiedKey, SigningKey};

use crate::checked_parameters::refused;
use crate::identity::NotingKey;
use crate::portable::KeyCopy;
use crate::{Curves, Identity, KeyName, OfferError, Presented, SettingsError, Staple, TimeProvider, curves};

/// A server's certificate chain with its key, loaded and checked. Clones, and all servers that present the certificate,
/// share one copy.
#[derive(Clone)]
pub struct Certificate(Arc<Loaded>);

struct Loaded {
    signs_with_aws_lc: Chain,
    /// The same chain with a key that signs with weir-ifma; set by [`Certificate::prepare`].
    signs_with_ifma: OnceLock<Chain>,
    presented: Presented,
    /// A copy of the key; `None` unless the certificate is portable.
    key: Option<KeyCopy>,
}

/// A chain with its key.
struct Chain {
    /// The chain without an OCSP response.
    bare: Arc<CertifiedKey>,
    /// The chain with its OCSP response; `None` if there is no response to staple.
    stapled: Option<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Loads a certificate and its key, and checks its OCSP response at the time of `clock`. Fails if a file is
    /// unreadable or has invalid content, or the key does not match the certificate.
    pub fn load(identity: &Identity, clock: &dyn TimeProvider) -> Result<Self, SettingsError> {
        let provider = aws_lc_rs::default_provider();
        let certified = identity.load(&provider)?;
        let response = identity.staple(&certified.cert, &provider, seconds(clock))?;
        Self::new(certified, identity.origin(), response, None)
    }

    /// Creates a certificate from its parts; `origin` is the file of the chain, or a name for PEM in memory.
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
        Ok(Self(Arc::new(Loaded {
            signs_with_aws_lc: Chain { bare: Arc::new(bare), stapled },
            signs_with_ifma: OnceLock::new(),
            presented,
            key: copy,
        })))
    }

    /// Prepares the key so that this certificate and all its clones can sign with `curves` as well as with AWS-LC.
    /// Loads the chain and the key again from `identity`, the certificate's source. Does nothing if the key is already
    /// prepared, or if `curves` leaves this key's signatures to AWS-LC. Fails as [`Certificate::load`] does, if this
    /// process cannot use the curves, or if `identity` now contains another certificate.
    pub fn prepare(&self, identity: &Identity, curves: Curves) -> Result<(), SettingsError> {
        if self.is_prepared(curves) {
            return Ok(());
        }
        let (certified, key) = identity.load_with_key(&aws_lc_rs::default_provider())?;
        if certified.cert != self.bare().cert {
            let origin = identity.origin();
            return Err(SettingsError::Refused(format!("{origin} changed meanwhile; try again")));
        }
        self.prepare_key(&key, curves)
    }

    /// As [`Certificate::prepare`], from the copy of the key in a portable certificate. Also fails if the certificate
    /// is not portable.
    pub(crate) fn prepare_copy(&self, curves: Curves) -> Result<(), SettingsError> {
        match self.key_copy() {
            _ if self.is_prepared(curves) => Ok(()),
            Some(key) => self.prepare_key(key, curves),
            None => {
                let origin = &self.presented().origin;
                let why = format!("the key of {origin} is not prepared for the curves `{curves}`");
                Err(SettingsError::Refused(why))
            }
        }
    }

    fn prepare_key(&self, key: &KeyCopy, curves: Curves) -> Result<(), SettingsError> {
        let chain = &self.0.signs_with_aws_lc;
        if let Some(ifma) = curves.signatures()?
            && let Some(key) = curves::signing_key(ifma, key.der(), &chain.bare.key).map_err(refused)?
        {
            // Another thread may have set it first, with the same key.
            let _ = self.0.signs_with_ifma.set(chain.with_key(Arc::new(NotingKey(key))));
        }
        Ok(())
    }

    fn is_prepared(&self, curves: Curves) -> bool {
        let is_usable = self.presented().key == KeyName::Ecdsa(256) && curves.has_own_signatures();
        !is_usable || self.0.signs_with_ifma.get().is_some()
    }

    /// Facts about the certificate, such as its names and its validity.
    pub fn presented(&self) -> &Presented {
        &self.0.presented
    }

    /// Whether this and `other` are clones of one certificate.
    pub fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether this and `other` have the same chain, and so the same key.
    pub fn has_chain_of(&self, other: &Self) -> bool {
        self.bare().cert == other.bare().cert
    }

    /// The chain without an OCSP response, and the key that signs with AWS-LC.
    pub(crate) fn bare(&self) -> &Arc<CertifiedKey> {
        &self.0.signs_with_aws_lc.bare
    }

    /// The copy of the certificate's key; `None` unless the certificate is portable.
    pub(crate) fn key_copy(&self) -> Option<&KeyCopy> {
        self.0.key.as_ref()
    }

    /// The chain, with its OCSP response if the response is valid at the time of `clock`. Its key signs with `curves`
    /// if it was prepared for them.
    pub(crate) fn certified(&self, curves: Curves, clock: &dyn TimeProvider) -> &Arc<CertifiedKey> {
        let Loaded { signs_with_aws_lc, signs_with_ifma, presented, key: _ } = &*self.0;
        let of_ifma = signs_with_ifma.get().filter(|_| curves.has_own_signatures());
        let Chain { bare, stapled } = of_ifma.unwrap_or(signs_with_aws_lc);
        match (stapled, &presented.ocsp) {
            (Some(stapled), Some(staple)) if staple.is_stapled_at(seconds(clock)) => stapled,
            _ => bare,
        }
    }

    pub(crate) fn algorithm(&self) -> SignatureAlgorithm {
        self.bare().key.algorithm()
    }
}

impl Chain {
    fn with_key(&self, key: Arc<dyn SigningKey>) -> Self {
        let with_key = |certified: &Arc<CertifiedKey>| {
            Arc::new(CertifiedKey { key: Arc::clone(&key), ..CertifiedKey::clone(certified) })
        };
        Self { bare: with_key(&self.bare), stapled: self.stapled.as_ref().map(with_key) }
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate").field(self.presented()).finish()
    }
}

/// The time in seconds since the epoch; 0 if the clock fails.
fn seconds(clock: &dyn TimeProvider) -> i64 {
    clock.current_time().map_or(0, |now| now.as_secs() as i64)
}
