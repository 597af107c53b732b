//! X25519 (RFC 7748, section 5): public keys by the Edwards curve and a table, shared secrets by the ladder.

mod ladder;
mod multiple;
mod self_test;
mod table;

#[cfg(test)]
mod bounds;

use zeroize::Zeroizing;

use crate::Ifma;
use crate::field25519::{Elements, blended, permuted};
use crate::lanes::Lanes;
use crate::simd::{Simd, kernel};

pub use self_test::self_test;

const ZERO: [u64; 5] = [0; 5];
const ONE: [u64; 5] = [1, 0, 0, 0, 0];

/// A secret key. Its memory is zeroed when it is dropped.
pub struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    /// Creates a secret key from 32 random bytes (RFC 7748, section 6.1), five bits of which it overwrites. The caller
    /// must zero its own copy.
    pub fn new(random: &[u8; 32]) -> Self {
        let mut k = Zeroizing::new(*random);
        k[0] &= 248;
        k[31] = k[31] & 127 | 64;
        Self(k)
    }
}

/// The secret's public key.
#[inline(never)]
pub fn public(token: Ifma, secret: &Secret) -> [u8; 32] {
    let [_, key, ..] = public_key(token, &secret.0);
    bytes(&key)
}

/// The secret shared with the owner of this public key. `None` if the shared secret is zero (RFC 7748, section 6.1),
/// since the "public key" is then a point of small order. The caller must zero the result after use.
#[inline(never)]
pub fn shared(token: Ifma, secret: &Secret, peer: &[u8; 32]) -> Option<[u8; 32]> {
    let [shared, ..] = &*Zeroizing::new(shared_secret(token, &secret.0, peer));
    nonzero(bytes(shared))
}

/// The secret's public key, and the secret shared with the peer: both with a single inversion. `None` as for
/// [`shared`].
#[inline(never)]
pub fn exchange(token: Ifma, secret: &Secret, peer: &[u8; 32]) -> Option<([u8; 32], [u8; 32])> {
    let [_, public, shared, _] = &*Zeroizing::new(both(token, &secret.0, peer));
    nonzero(bytes(shared)).map(|shared| (bytes(public), shared))
}

fn bytes(words: &[u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}

/// The secret, or `None` if it is zero. Reads all bytes before the decision, which the caller makes public anyway.
fn nonzero(secret: [u8; 32]) -> Option<[u8; 32]> {
    (secret.iter().fold(0, |or, byte| or | byte) != 0).then_some(secret)
}

kernel! {
    /// Computes a public key. Its words are in the second lane.
    fn public_key(k: &[u8; 32]) -> [[u64; 4]; 4] = multiplied;
}

kernel! {
    /// Computes a shared secret. Its words are in the first lane.
    fn shared_secret(k: &[u8; 32], peer: &[u8; 32]) -> [[u64; 4]; 4] = agreed;
}

kernel! {
    /// Computes a public key and a shared secret. The words are in the second and in the third lane.
    fn both(k: &[u8; 32], peer: &[u8; 32]) -> [[u64; 4]; 4] = exchanged;
}

#[inline(always)]
fn multiplied(token: Ifma, k: &[u8; 32]) -> [[u64; 4]; 4] {
    let fraction = public_fraction(token, &multiple::base_multiple(token, k));
    let inverse = Elements(permuted::<0, Simd>(&fraction.0)).inverted(token);
    words(token, &fraction.times(token, &inverse))
}

#[inline(always)]
fn agreed(token: Ifma, k: &[u8; 32], peer: &[u8; 32]) -> [[u64; 4]; 4] {
    let point = ladder::ladder(token, k, peer);
    let inverse = Elements(permuted::<0b01_01_01_01, Simd>(&point.0)).inverted(token);
    words(token, &point.times(token, &inverse))
}

/// Computes the base multiple and the ladder one after the other. A loop that alternates between them is as fast, but
/// exceeds the processor's instruction caches: depending on the addresses of its code, it took 1.5 or 3 times as long.
#[inline(always)]
fn exchanged(token: Ifma, k: &[u8; 32], peer: &[u8; 32]) -> [[u64; 4]; 4] {
    let multiple = multiple::base_multiple(token, k);
    let point = ladder::ladder(token, k, peer);
    let products = crossed(token, &public_fraction(token, &multiple), &point);
    let inverse = Elements(permuted::<0, Simd>(&products.0)).inverted(token);
    words(token, &products.times(token, &inverse))
}

/// (Z - Y, Z + Y, ..) of (X, Y, Z, T): the public key is u = (Z + Y) / (Z - Y) (RFC 7748, section 4.1).
#[inline(always)]
fn public_fraction<L: Lanes>(token: L::Token, point: &[L; 5]) -> Elements<L> {
    let z = permuted::<0b10_10_10_10, L>(point);
    Elements::sum::<0b0001>(token, &z, &permuted::<0b01_01_01_01, L>(point))
}

/// (D Z, N Z, X D, ..) of (D, N, ..) and (X, Z, ..): with the inverse of D Z, they are 1, N/D and X/Z. D is not zero,
/// so a zero product means Z = 0, for which X/Z must be zero, too.
#[inline(always)]
fn crossed<L: Lanes>(token: L::Token, fraction: &Elements<L>, point: &Elements<L>) -> Elements<L> {
    let (d, x) = (permuted::<0, L>(&fraction.0), permuted::<0, L>(&point.0));
    let z = permuted::<0b01_01_01_01, L>(&point.0);
    let dnx = Elements(blended::<0b0100, L>(&fraction.0, &x));
    dnx.times(token, &Elements(blended::<0b0100, L>(&z, &d)))
}

/// The canonical words of each lane.
#[inline(always)]
fn words(token: Ifma, elements: &Elements<Simd>) -> [[u64; 4]; 4] {
    let [a, b, c, d] = elements.canonical(token).map(Simd::store);
    [0, 1, 2, 3].map(|lane| [a[lane], b[lane], c[lane], d[lane]])
}
