//! The differences of aws-lc-rs from ring.

pub(crate) use aws_lc_rs::{aead, agreement, rand, signature};

use agreement::{EphemeralPrivateKey, UnparsedPublicKey};
use aws_lc_rs::error::{KeyRejected, Unspecified};
use signature::{EcdsaKeyPair, EcdsaSigningAlgorithm, RsaKeyPair};

pub(crate) fn ecdsa(
    algorithm: &'static EcdsaSigningAlgorithm,
    pkcs8: &[u8],
) -> Result<EcdsaKeyPair, KeyRejected> {
    EcdsaKeyPair::from_pkcs8(algorithm, pkcs8)
}

pub(crate) fn modulus(key: &RsaKeyPair) -> usize {
    key.public_modulus_len()
}

pub(crate) fn agree(key: EphemeralPrivateKey, peer: UnparsedPublicKey<&Vec<u8>>) -> Result<(), Unspecified> {
    agreement::agree_ephemeral(key, &peer, Unspecified, |_| Ok(()))
}
