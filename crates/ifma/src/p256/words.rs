//! Integers below 2^256, without branches on their values.

use core::hint::black_box;

/// Four words, the least significant first.
pub(super) type Words = [u64; 4];

pub(super) const ZERO: Words = [0; 4];

/// The low 52 bits.
pub(super) const LOW: u64 = (1 << 52) - 1;

/// Parses 32 bytes, the most significant first.
#[inline(always)]
pub(super) const fn from_be(bytes: &[u8; 32]) -> Words {
    let [a, b, c, d] = bytes.as_chunks::<8>().0 else { unreachable!() };
    [u64::from_be_bytes(*d), u64::from_be_bytes(*c), u64::from_be_bytes(*b), u64::from_be_bytes(*a)]
}

pub(super) fn to_be(words: &Words) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words.iter().rev()) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// The number in limbs of 52 bits.
pub(super) const fn limbs(w: &Words) -> [u64; 5] {
    [
        w[0] & LOW,
        (w[0] >> 52 | w[1] << 12) & LOW,
        (w[1] >> 40 | w[2] << 24) & LOW,
        (w[2] >> 28 | w[3] << 36) & LOW,
        w[3] >> 16,
    ]
}

/// Converts five limbs below 2^52 to a number, which must be below 2^256.
pub(super) const fn from_limbs(l: &[u64; 5]) -> Words {
    [l[0] | l[1] << 52, l[1] >> 12 | l[2] << 40, l[2] >> 24 | l[3] << 28, l[3] >> 36 | l[4] << 16]
}

/// a + b modulo 2^256, and the carry.
#[inline(always)]
pub(super) const fn plus(a: &Words, b: &Words) -> (Words, u64) {
    let (mut out, mut carry, mut i) = (ZERO, 0, 0);
    while i < 4 {
        (out[i], carry) = split(a[i] as u128 + b[i] as u128 + carry as u128);
        i += 1;
    }
    (out, carry)
}

/// a - b modulo 2^256, and the borrow: 1 if b > a.
#[inline(always)]
pub(super) const fn minus(a: &Words, b: &Words) -> (Words, u64) {
    let (mut out, mut borrow, mut i) = (ZERO, 0, 0);
    while i < 4 {
        (out[i], borrow) = split((a[i] as u128).wrapping_sub(b[i] as u128 + borrow as u128));
        borrow &= 1;
        i += 1;
    }
    (out, borrow)
}

/// a b + c + d as low and high word: at most 2^128 - 1.
#[inline(always)]
pub(super) const fn product_plus(a: u64, b: u64, c: u64, d: u64) -> (u64, u64) {
    split(a as u128 * b as u128 + c as u128 + d as u128)
}

#[inline(always)]
const fn split(a: u128) -> (u64, u64) {
    (a as u64, (a >> 64) as u64)
}

/// `yes` if the bit is 1, `no` if it is 0.
#[inline(always)]
pub(super) const fn selected(bit: u64, yes: &Words, no: &Words) -> Words {
    // Hide the mask from the compiler, which would turn it into a branch.
    let mask = black_box(bit.wrapping_neg());
    let (mut out, mut i) = (ZERO, 0);
    while i < 4 {
        out[i] = yes[i] & mask | no[i] & !mask;
        i += 1;
    }
    out
}

/// Zero if and only if the numbers are equal.
#[inline(always)]
pub(super) const fn differences(a: &Words, b: &Words) -> u64 {
    (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])
}

/// 1 for zero, 0 for other numbers.
#[inline(always)]
pub(super) fn is_zero(a: &Words) -> u64 {
    let any = differences(a, &ZERO);
    // The highest bit of x or of -x is set unless x is zero.
    black_box((any | any.wrapping_neg()) >> 63 ^ 1)
}
