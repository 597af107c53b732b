//! A test of this processor with known signatures.

use sha2::{Digest, Sha256, Sha512};

use super::SigningKey;
use super::nonce::modulo_n;
use super::words::to_be;
use crate::{Failed, Ifma};

const FAILED: Failed = Failed("ECDSA P-256");

/// The number of signatures in a self-test.
pub(super) const VECTORS: u32 = 1000;

/// SHA-256 of all signatures. This crate's tests verify each of them with AWS-LC.
pub(super) const EXPECTED: [u8; 32] = [
    0x70, 0x0a, 0xb3, 0xd3, 0x3f, 0xfa, 0x01, 0x5c, 0x32, 0xe2, 0xb3, 0x19, 0x57, 0x7c, 0xa1, 0x57, 0x4c,
    0xe6, 0xad, 0xfd, 0x4e, 0x63, 0xc7, 0x70, 0xcf, 0xc3, 0xe1, 0x92, 0x4b, 0xae, 0xfb, 0x5c,
];

/// Signs 1000 known digests with known keys and random bytes; this takes about 7 ms. Run it before the first use.
///
/// # Errors
///
/// A signature differs from the known one or failed its check.
pub fn self_test(token: Ifma) -> Result<(), Failed> {
    let mut all = Sha256::new();
    for number in 0..VECTORS {
        let (key, digest, random) = vector(token, number);
        all.update(key.and_then(|key| key.sign(&digest, &random)).ok_or(FAILED)?);
    }
    if <[u8; 32]>::from(all.finalize()) == EXPECTED { Ok(()) } else { Err(FAILED) }
}

/// The key, the digest and the random bytes of the signature with this number.
pub(super) fn vector(token: Ifma, number: u32) -> (Option<SigningKey>, [u8; 32], [u8; 64]) {
    let hash = |part: u8| -> [u8; 64] {
        Sha512::new_with_prefix([part]).chain_update(number.to_be_bytes()).finalize().into()
    };
    let mut digest = [0; 32];
    digest.copy_from_slice(&hash(1)[..32]);
    (SigningKey::new(token, &to_be(&modulo_n(&hash(0)))), digest, hash(2))
}
