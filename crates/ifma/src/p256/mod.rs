//! ECDSA signing over P-256 (FIPS 186-5) for digests of 32 bytes, such as SHA-256's.
//!
//! A nonce is hashed from the key, random bytes and the digest, and is never stored. Each signature is checked before
//! it is returned: its point is on the curve, r is the point's x, and s k = h + r d modulo n, with a second copy of the
//! nonce and the key. A fault that changes one of these values yields no signature. The check does not detect a wrong
//! digit or table entry that yields another point of the curve: such a signature does not verify, and may leak one bit
//! of its nonce.
//!
//! Keys, nonces and their inverses are zeroed in memory. Copies that the compiler makes in registers and on the stack
//! are not.

// The build script also includes this file, and only it calls some functions.
#[allow(dead_code)]
mod base;
#[cfg(test)]
mod bounds;
mod comb;
mod faults;
mod field;
#[cfg(target_arch = "x86_64")]
mod inverse;
mod modular;
mod nonce;
mod point;
mod self_test;
#[cfg(target_arch = "x86_64")]
mod sign;
mod table;
#[cfg(test)]
mod tests;
mod words;

use core::fmt;

use zeroize::Zeroize;

pub use self_test::self_test;

use crate::Ifma;
use crate::simd::kernel;
use modular::N;
use nonce::Hedge;
use words::{Words, from_be, is_zero, minus};

/// A private key; its memory is zeroed on drop.
pub struct SigningKey {
    token: Ifma,
    hedge: Hedge,
    scalar: Words,
    /// The scalar times 2^256 modulo n.
    scaled: Words,
}

impl SigningKey {
    /// Creates a key from a big-endian integer. `None` unless it is from 1 to n - 1, where n is the order of the curve.
    pub fn new(token: Ifma, scalar: &[u8; 32]) -> Option<Self> {
        let words = from_be(scalar);
        let (_, below) = minus(&words, &N.words);
        let valid = below & !is_zero(&words) == 1;
        valid.then(|| Self { token, hedge: Hedge::new(scalar), scalar: words, scaled: N.scaled(&words) })
    }

    /// The public key, uncompressed: the byte 4, x and y, big-endian (SEC 1, section 2.3.3).
    pub fn public(&self) -> [u8; 65] {
        public(self.token, &self.scalar)
    }

    /// Signs a digest with a nonce hashed from the key, 64 random bytes and the digest: r and s, 32 bytes each,
    /// big-endian.
    ///
    /// `None` if the nonce has no signature (one in 2^255), or if the signature fails the check because the processor
    /// or the memory is faulty: try once more with other random bytes, and report a second failure.
    pub fn sign(&self, digest: &[u8; 32], random: &[u8; 64]) -> Option<[u8; 64]> {
        let nonce = self.hedge.nonce(random, digest);
        signature(self.token, self, digest, &nonce)
    }
}

impl Drop for SigningKey {
    fn drop(&mut self) {
        self.scalar.zeroize();
        self.scaled.zeroize();
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("SigningKey")
    }
}

kernel! {
    fn signature(key: &SigningKey, digest: &[u8; 32], nonce: &Words) -> Option<[u8; 64]> = sign::signature;
}

kernel! {
    fn public(scalar: &Words) -> [u8; 65] = sign::public;
}
