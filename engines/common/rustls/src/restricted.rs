//! The server's key, which signs with one scheme only and records it.

use std::sync::Arc;

use rustls::sign::{Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};
use weir_engine::{Certificate, Error, Named, Side, notes};

use crate::negotiated::code;

/// A signing key for rustls.
#[cfg_attr(not(feature = "until-0-21"), derive(Debug))]
pub(crate) struct Restricted {
    key: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
}

impl Restricted {
    /// The key, if it can sign as the certificate asks.
    pub(crate) fn new(key: Arc<dyn SigningKey>, certificate: Certificate) -> Result<Restricted, Error> {
        let scheme = SignatureScheme::from(certificate.signature());
        match key.choose_scheme(&[scheme]) {
            Some(_) => Ok(Restricted { key, scheme }),
            None => Err(Error::scenario(format!(
                "key: certificate `{}` needs a key that signs with {scheme:?}",
                certificate.name()
            ))),
        }
    }
}

impl SigningKey for Restricted {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let offered = offered.contains(&self.scheme);
        let signer = offered.then(|| self.key.choose_scheme(&[self.scheme])).flatten()?;
        Some(Box::new(Noted(signer)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[cfg_attr(not(feature = "until-0-21"), derive(Debug))]
struct Noted(Box<dyn Signer>);

impl Signer for Noted {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let signature = notes::span(notes::Span::Sign, || self.0.sign(message))?;
        notes::signature(Side::Server, code(self.0.scheme()));
        Ok(signature)
    }

    fn scheme(&self) -> SignatureScheme {
        self.0.scheme()
    }
}
