//! Signs with this crate, and verifies the signatures with AWS-LC.

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::digest::{Digest, SHA256};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use weir_ifma::Ifma;
use weir_ifma::p256::SigningKey;

/// Does what [`super::p256`] describes.
pub(super) fn sign(token: Ifma, input: &[u8]) {
    let mut bytes = [0; 128];
    for (to, from) in bytes.iter_mut().zip(input) {
        *to = *from;
    }
    let [scalar, digest, ..] = bytes.as_chunks::<32>().0 else { unreachable!("128 bytes are four times 32") };
    let random = bytes.last_chunk().expect("128 bytes are more than 64");
    let theirs = PrivateKey::from_private_key(&ECDH_P256, scalar).ok();
    let ours = SigningKey::new(token, scalar);
    assert_eq!(ours.is_some(), theirs.is_some());
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
    let public = ours.public();
    assert_eq!(public, *theirs.compute_public_key().expect("a key is valid").as_ref());
    let signature = ours.sign(digest, random).expect("no input is known whose nonce has no signature");
    let digest = Digest::import_less_safe(digest, &SHA256).expect("32 bytes are a digest of SHA-256");
    let verifier = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public);
    verifier.verify_digest(&digest, &signature).expect("AWS-LC verifies a signature");
}
