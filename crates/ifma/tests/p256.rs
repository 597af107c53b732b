//! Signatures with random keys, digests and random bytes, which AWS-LC verifies.

use std::thread;

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::digest::{Digest, SHA256};
use aws_lc_rs::rand;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use weir_ifma::Ifma;
use weir_ifma::p256::{SigningKey, self_test};

const THREADS: usize = 2;
const SIGNATURES_OF_A_KEY: usize = 50;

fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    rand::fill(&mut bytes).unwrap();
    bytes
}

fn signatures_of_a_random_key(ifma: Ifma) {
    let scalar = random();
    let Some(key) = SigningKey::new(ifma, &scalar) else { return };
    let theirs = PrivateKey::from_private_key(&ECDH_P256, &scalar).unwrap();
    let public = key.public();
    assert_eq!(public, theirs.compute_public_key().unwrap().as_ref());
    let verifier = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public);
    for _ in 0..SIGNATURES_OF_A_KEY {
        let (digest, random) = (random(), random());
        let signature = key.sign(&digest, &random).expect("a random nonce has a signature");
        assert_eq!(key.sign(&digest, &random), Some(signature), "the same input, the same signature");
        let digest = Digest::import_less_safe(&digest, &SHA256).unwrap();
        verifier
            .verify_digest(&digest, &signature)
            .unwrap_or_else(|_| panic!("{scalar:x?} signs {digest:?} with {random:x?} as {signature:x?}"));
    }
}

fn random_signatures(cases: usize) {
    let Some(ifma) = crate::ifma() else { return };
    let keys = cases.div_ceil(SIGNATURES_OF_A_KEY * THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..keys).for_each(|_| signatures_of_a_random_key(ifma)));
        }
    });
}

#[test]
fn random_signatures_verify() {
    random_signatures(100_000);
}

#[test]
#[ignore = "takes 15 minutes: tests/long/ifma.sh runs it"]
fn ten_million_random_signatures_verify() {
    random_signatures(10_000_000);
}

#[test]
fn the_self_test_passes() {
    let Some(ifma) = crate::ifma() else { return };
    assert_eq!(self_test(ifma), Ok(()));
}
