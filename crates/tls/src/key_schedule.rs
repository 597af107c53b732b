//! TLS 1.3 suites with a cheaper key schedule (RFC 8446 section 7.1).
//!
//! aws-lc-rs keeps the input of an HKDF-Extract (RFC 5869), copied to the heap, and extracts again for each derived
//! secret: three to five times in each stage. This module keeps the pseudorandom key instead
//! (docs/decisions/0018-new-connections.md), and hashes with [`sha256`] where that is faster.

use std::sync::LazyLock;

use rustls::crypto::CipherSuiteCommon;
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::crypto::hash::{Hash, HashAlgorithm};
use rustls::crypto::hmac::Tag;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock};
use rustls::{SupportedCipherSuite, Tls13CipherSuite};

use crate::early_data::Noting;
use crate::sha256;

static ZEROS: [u8; OkmBlock::MAX_LEN] = [0; OkmBlock::MAX_LEN];

static SUITES: LazyLock<Vec<Tls13CipherSuite>> = LazyLock::new(|| {
    [
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ]
    .into_iter()
    .filter_map(|suite| with_one_extract(suite, sha256::is_fast()))
    .collect()
});

/// Replaces a TLS 1.3 suite by this module's version of it; returns other suites unchanged.
pub(crate) fn extracting_once(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let ours = SUITES.iter().find(|ours| ours.common.suite == suite.suite());
    ours.map_or(suite, SupportedCipherSuite::Tls13)
}

/// Returns this module's version of a suite; `None` unless it is a TLS 1.3 suite with SHA-256 or SHA-384. With `fast`,
/// the suite hashes with [`sha256`] in place of AWS-LC's SHA-256.
fn with_one_extract(suite: SupportedCipherSuite, fast: bool) -> Option<Tls13CipherSuite> {
    let SupportedCipherSuite::Tls13(suite) = suite else { return None };
    let common = &suite.common;
    let (hash, inner): (&'static dyn Hash, &'static dyn Hkdf) = match common.hash_provider.algorithm() {
        HashAlgorithm::SHA256 if fast => (&sha256::HASH, &sha256::HKDF),
        HashAlgorithm::SHA256 | HashAlgorithm::SHA384 => (common.hash_provider, suite.hkdf_provider),
        _ => return None,
    };
    let length = hash.output_len();
    let start = extract(inner, &ZEROS[..length], &ZEROS[..length]);
    // rustls needs references to algorithms for the life of the process. So this leaks two algorithms for each suite.
    Some(Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: common.suite,
            hash_provider: hash,
            confidentiality_limit: common.confidentiality_limit,
        },
        hkdf_provider: Box::leak(Box::new(ExtractOnce { inner, length, start })),
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

/// Computes HKDF-Extract: the HMAC of the secret, keyed with the salt. In TLS 1.3 a salt fits into one block.
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

    const SUITES: [SupportedCipherSuite; 3] = [
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];

    fn tls13(suite: SupportedCipherSuite) -> &'static Tls13CipherSuite {
        let SupportedCipherSuite::Tls13(suite) = suite else { panic!("not TLS 1.3") };
        suite
    }

    /// The suite of rustls, and this module's with and without instructions for SHA-256.
    fn variants(suite: SupportedCipherSuite) -> [&'static Tls13CipherSuite; 3] {
        let ours = |fast| &*Box::leak(Box::new(with_one_extract(suite, fast).expect("a suite of TLS 1.3")));
        [tls13(suite), ours(false), ours(true)]
    }

    fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..longest)
    }

    proptest! {
        #[test]
        fn it_extracts_and_expands_as_rustls_does(
            salt in proptest::option::of(bytes(200)),
            secret in bytes(200),
            info in bytes(100),
            length in 0..300_usize,
        ) {
            for suite in SUITES {
                let [theirs, ours @ ..] = variants(suite).map(|suite| {
                    let hkdf = suite.hkdf_provider;
                    [hkdf.extract_from_zero_ikm(salt.as_deref()), hkdf.extract_from_secret(salt.as_deref(), &secret)].map(
                        |expander| {
                            let info: [&[u8]; 2] = [&info, b"more"];
                            let mut long = vec![0; length];
                            expander.expand_slice(&info, &mut long).unwrap();
                            (expander.hash_len(), expander.expand_block(&info).as_ref().to_vec(), long)
                        },
                    )
                });
                prop_assert!(ours.iter().all(|ours| *ours == theirs));
            }
        }

        #[test]
        fn it_signs_as_rustls_does(key in bytes(OkmBlock::MAX_LEN), message in bytes(300)) {
            for suite in SUITES {
                let [theirs, ours @ ..] = variants(suite)
                    .map(|suite| suite.hkdf_provider.hmac_sign(&OkmBlock::new(&key), &message).as_ref().to_vec());
                prop_assert!(ours.iter().all(|ours| *ours == theirs));
            }
        }

        #[test]
        fn it_hashes_transcripts_as_rustls_does(parts in proptest::collection::vec(bytes(200), 0..6)) {
            for suite in SUITES {
                let [theirs, ours @ ..] = variants(suite).map(|suite| {
                    let hash = suite.common.hash_provider;
                    let mut transcript = hash.start();
                    let mut hashes = Vec::new();
                    for part in &parts {
                        transcript.update(part);
                        hashes.push(transcript.fork_finish().as_ref().to_vec());
                        hashes.push(hash.hash(part).as_ref().to_vec());
                    }
                    let mut fork = transcript.fork();
                    fork.update(b"more");
                    hashes.extend([fork, transcript].map(|end| end.finish().as_ref().to_vec()));
                    hashes
                });
                prop_assert!(ours.iter().all(|ours| *ours == theirs));
            }
        }
    }

    #[test]
    fn the_suites_of_tls12_stay_as_they_are() {
        let suite = cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
        assert!(matches!(extracting_once(suite), SupportedCipherSuite::Tls12(_)));
    }
}
