//! The differences of ring from aws-lc-rs.

pub(crate) use ring::{aead, agreement, rand, signature};

use agreement::{EphemeralPrivateKey, UnparsedPublicKey};
use ring::error::{KeyRejected, Unspecified};
use signature::{EcdsaKeyPair, EcdsaSigningAlgorithm, RsaKeyPair};

pub(crate) fn ecdsa(
    algorithm: &'static EcdsaSigningAlgorithm,
    pkcs8: &[u8],
) -> Result<EcdsaKeyPair, KeyRejected> {
    EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &rand::SystemRandom::new())
}

pub(crate) fn modulus(key: &RsaKeyPair) -> usize {
    key.public().modulus_len()
}

pub(crate) fn agree(key: EphemeralPrivateKey, peer: UnparsedPublicKey<&Vec<u8>>) -> Result<(), Unspecified> {
    agreement::agree_ephemeral(key, &peer, |_| ())
}
