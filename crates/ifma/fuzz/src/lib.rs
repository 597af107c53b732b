//! Compares this crate with AWS-LC for any input. The fuzz targets call these functions, and so do the crate's tests,
//! with the committed corpus and with other inputs. On a processor without the instructions, they do nothing.

mod p256;

use std::sync::LazyLock;

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use weir_ifma::Ifma;
use weir_ifma::x25519::{Secret, exchange, public, shared};

static IFMA: LazyLock<Option<Ifma>> = LazyLock::new(|| Ifma::detect().ok());

/// Compares key exchanges. The input is a secret key and a peer's public key, each of 32 bytes; missing bytes are zero.
pub fn x25519(input: &[u8]) {
    let mut bytes = [0; 64];
    for (to, from) in bytes.iter_mut().zip(input) {
        *to = *from;
    }
    let [secret, peer] = bytes.as_chunks::<32>().0 else { unreachable!("64 bytes are twice 32") };
    compare(secret, peer);
}

/// Signs, and verifies the signature with AWS-LC. The input is a private key of 32 bytes, a digest of 32 and random
/// bytes of 64; missing bytes are zero.
pub fn p256(input: &[u8]) {
    if let Some(token) = *IFMA {
        p256::sign(token, input);
    }
}

/// Compares the public key and the shared secret, computed separately and together. Returns whether there is a shared
/// secret.
pub fn compare(secret: &[u8; 32], peer: &[u8; 32]) -> bool {
    let theirs = PrivateKey::from_private_key(&X25519, secret).expect("any 32 bytes are a key");
    let their_peer = UnparsedPublicKey::new(&X25519, peer);
    let their_secret = agree(&theirs, their_peer, (), |bytes| Ok(<[u8; 32]>::try_from(bytes))).ok();
    let their_secret = their_secret.map(|bytes| bytes.expect("a secret has 32 bytes"));
    let Some(token) = *IFMA else { return their_secret.is_some() };
    let ours = Secret::new(secret);
    let our_public = public(token, &ours);
    assert_eq!(our_public, *theirs.compute_public_key().expect("a key is valid").as_ref());
    assert_eq!(shared(token, &ours, peer), their_secret);
    assert_eq!(exchange(token, &ours, peer), their_secret.map(|secret| (our_public, secret)));
    their_secret.is_some()
}

/// Encodes a small number as 32 little-endian bytes.
pub fn le_bytes(number: u8) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0] = number;
    bytes
}
