//! AWS-LC's provider with weir-ifma's curves.

use std::sync::{Arc, LazyLock};

use rustls::crypto::aws_lc_rs::{default_provider, sign};
use rustls::crypto::{CryptoProvider, KeyProvider, SupportedKxGroup};
use rustls::sign::SigningKey;
use rustls::{Error, NamedGroup};
use rustls_pki_types::PrivateKeyDer;
use weir_ifma::Ifma;

use crate::{ecdsa, exchange};

/// The processor's permit; the program has checked that there is one.
pub(crate) fn ifma() -> Ifma {
    static IFMA: LazyLock<Ifma> = LazyLock::new(|| Ifma::detect().expect("the program has checked it"));
    *IFMA
}

pub(crate) fn provider() -> CryptoProvider {
    let provider = default_provider();
    let kx_groups = provider.kx_groups.iter().map(|group| group_of(*group)).collect();
    CryptoProvider { kx_groups, key_provider: &Keys, ..provider }
}

fn group_of(aws_lc: &'static dyn SupportedKxGroup) -> &'static dyn SupportedKxGroup {
    match aws_lc.name() {
        NamedGroup::X25519 => exchange::x25519(ifma()),
        NamedGroup::X25519MLKEM768 => exchange::x25519_mlkem768(ifma()),
        _ => aws_lc,
    }
}

/// Keys on P-256 sign with weir-ifma, others with AWS-LC.
#[derive(Debug)]
struct Keys;

impl KeyProvider for Keys {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        let aws_lc = sign::any_supported_type(&key)?;
        Ok(ecdsa::signing_key(ifma(), key.secret_der(), &aws_lc)?.unwrap_or(aws_lc))
    }
}
