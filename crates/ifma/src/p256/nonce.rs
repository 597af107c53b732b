//! Hedged nonces: a weak random generator or repeated random input alone does not reveal the key.
//!
//! A nonce is SHA-512(key, 96 zeros, 64 random bytes, digest) modulo n. The key and the zeros fill one block, which is
//! hashed once per key, as in HMAC (RFC 2104, section 4).
//!
//! FIPS 186-5 (A.3.1) also uses more bits than n has: with 256 extra bits, the probabilities of nonces differ by a
//! factor of at most 1 + 2^-255. Rejection sampling with 256 bits would need a second hash once in 2^32 signatures: a
//! path that tests do not cover.

use sha2::{Digest, Sha512};
use zeroize::{Zeroize, Zeroizing};

use super::modular::N;
use super::words::{Words, from_be};

/// The hash state after the key's block; its memory is zeroed on drop.
pub(super) struct Hedge(Sha512);

impl Hedge {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self(Sha512::new_with_prefix(key).chain_update([0; 96]))
    }

    /// Returns a nonce from 0 to n - 1; zero has the probability 2^-256.
    pub(super) fn nonce(&self, random: &[u8; 64], digest: &[u8; 32]) -> Zeroizing<Words> {
        let mut hash: [u8; 64] = self.0.clone().chain_update(random).chain_update(digest).finalize().into();
        let nonce = Zeroizing::new(modulo_n(&hash));
        hash.zeroize();
        nonce
    }
}

/// Reduces a big-endian number of 64 bytes modulo n.
pub(super) fn modulo_n(bytes: &[u8; 64]) -> Words {
    let [high, low] = bytes.as_chunks::<32>().0 else { unreachable!("64 bytes are twice 32") };
    N.wide(&from_be(high), &from_be(low))
}
