//! TLS 1.3 suites that run HKDF-Extract (RFC 5869) once per secret.
//!
//! aws-lc-rs keeps the input of an extraction, copied to the heap, and extracts again for each derived
//! secret: three to five times in each stage of the key schedule (RFC 8446 7.1). This module keeps the
//! pseudorandom key instead. All cryptography is rustls's. docs/decisions/0018-new-connections.md has the
//! figures.

use std::sync::{LazyLock, OnceLock};

use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::crypto::hmac::Tag;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock};
use rustls::crypto::{CipherSuiteCommon, hash::HashAlgorithm};
use rustls::{SupportedCipherSuite, Tls13CipherSuite};

use crate::early_data::Noting;

static ZEROS: [u8; OkmBlock::MAX_LEN] = [0; OkmBlock::MAX_LEN];

static SUITES: LazyLock<Vec<Tls13CipherSuite>> = LazyLock::new(|| {
    [
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ]
    .into_iter()
    .filter_map(with_one_extract)
    .collect()
});

/// Replaces a TLS 1.3 suite by this module's version of it; returns other suites unchanged.
pub(crate) fn extracting_once(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let ours = SUITES.iter().find(|ours| ours.common.suite == suite.suite());
    ours.map_or(suite, SupportedCipherSuite::Tls13)
}

fn with_one_extract(suite: SupportedCipherSuite) -> Option<Tls13CipherSuite> {
    static SHA256: OnceLock<ExtractOnce> = OnceLock::new();
    static SHA384: OnceLock<ExtractOnce> = OnceLock::new();

    let SupportedCipherSuite::Tls13(suite) = suite else { return None };
    let common = &suite.common;
    let hkdf = match common.hash_provider.algorithm() {
        HashAlgorithm::SHA256 => &SHA256,
        HashAlgorithm::SHA384 => &SHA384,
        _ => return None,
    };
    let length = common.hash_provider.output_len();
    Some(Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: common.suite,
            hash_provider: common.hash_provider,
            confidentiality_limit: common.confidentiality_limit,
        },
        hkdf_provider: hkdf.get_or_init(|| ExtractOnce {
            inner: suite.hkdf_provider,
            length,
            start: extract(suite.hkdf_provider, &ZEROS[..length], &ZEROS[..length]),
        }),
        // Leaks three algorithms per process.
        aead_alg: Box::leak(Box::new(Noting(suite.aead_alg))),
        quic: None,
    })
}

struct ExtractOnce {
    inner: &'static dyn Hkdf,
    /// The length of the hash.
    length: usize,
    /// The early secret without a pre-shared key: the same for every connection, so not secret.
    start: OkmBlock,
}

/// HKDF-Extract is the HMAC of the secret, keyed with the salt. In TLS 1.3 a salt fits into one block.
fn extract(hkdf: &dyn Hkdf, salt: &[u8], secret: &[u8]) -> OkmBlock {
    OkmBlock::new(hkdf.hmac_sign(&OkmBlock::new(salt), secret).as_ref())
}

impl Hkdf for ExtractOnce {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        match salt {
            None => self.inner.expander_for_okm(&self.start),
            Some(_) => self.extract_from_secret(salt, &ZEROS[..self.length]),
        }
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        let salt = salt.unwrap_or(&ZEROS[..self.length]);
        if salt.len() > OkmBlock::MAX_LEN {
            return self.inner.extract_from_secret(Some(salt), secret);
        }
        self.inner.expander_for_okm(&extract(self.inner, salt, secret))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        self.inner.expander_for_okm(okm)
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        self.inner.hmac_sign(key, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_extracts_what_rustls_extracts(
            salt in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200)),
            secret in proptest::collection::vec(any::<u8>(), 0..200),
            info in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            for suite in [
                cipher_suite::TLS13_AES_128_GCM_SHA256,
                cipher_suite::TLS13_AES_256_GCM_SHA384,
                cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            ] {
                let [ours, theirs] = [extracting_once(suite), suite].map(|suite| {
                    let SupportedCipherSuite::Tls13(suite) = suite else { panic!("not TLS 1.3") };
                    let hkdf = suite.hkdf_provider;
                    [hkdf.extract_from_zero_ikm(salt.as_deref()), hkdf.extract_from_secret(salt.as_deref(), &secret)]
                        .map(|expander| expander.expand_block(&[&info, b"more"]).as_ref().to_vec())
                });
                prop_assert_eq!(ours, theirs);
            }
        }
    }

    #[test]
    fn the_suites_of_tls12_stay_as_they_are() {
        let suite = cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
        assert!(matches!(extracting_once(suite), SupportedCipherSuite::Tls12(_)));
    }
}
