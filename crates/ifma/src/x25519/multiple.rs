//! Multiples of the base point on the Edwards curve that is birationally equivalent to Curve25519 (RFC 7748, section
//! 4.1).

use core::hint::black_box;

use zeroize::Zeroizing;

use super::table::{Entry, TABLE, TWICE_D, WINDOWS};
use super::{ONE, ZERO};
use crate::Ifma;
use crate::field25519::{Elements, TWICE_P, permuted, without};
use crate::lanes::{Lanes, five};
use crate::simd::Simd;

const TWO: [u64; 5] = [2, 0, 0, 0, 0];

/// The additions of a base multiple, one per digit.
const ADDITIONS: usize = 2 * WINDOWS;

/// X, Y, Z and T of a multiple of the base point: x = X/Z, y = Y/Z, x y = T/Z.
///
/// A scalar prepared by [`Secret`](super::Secret) is a multiple of 8 below 2^255. So it is not a multiple of eight
/// times the point's order, and the result is never the neutral point.
#[inline(always)]
pub(super) fn base_multiple(token: Ifma, k: &[u8; 32]) -> [Simd; 5] {
    let digits = Digits::new(k);
    let mut p = neutral(token);
    for nth in 0..ADDITIONS {
        if nth == ADDITIONS / 2 {
            p = times16(token, &p);
        }
        p = plus(token, &p, &digits.multiple(token, nth));
    }
    p
}

/// The neutral point.
#[inline(always)]
fn neutral(token: Ifma) -> [Simd; 5] {
    Elements::load(token, [&ZERO, &ONE, &ONE, &ZERO]).0
}

/// Doubles four times.
#[inline(always)]
fn times16(token: Ifma, p: &[Simd; 5]) -> [Simd; 5] {
    let mut p = *p;
    for _ in 0..4 {
        p = plus(token, &p, &cached(token, &p));
    }
    p
}

/// The signed digits of a scalar.
struct Digits(Zeroizing<[i64; ADDITIONS]>);

impl Digits {
    #[inline(always)]
    fn new(k: &[u8; 32]) -> Self {
        Self(signed_digits(k))
    }

    /// The multiple to add in the nth of 64 additions: first for the upper digits of all windows and, after
    /// [`times16`], for the lower digits.
    #[inline(always)]
    fn multiple(&self, token: Ifma, nth: usize) -> Elements<Simd> {
        let (window, upper) = (nth % WINDOWS, (nth / WINDOWS) ^ 1);
        // Hide from the compiler that a mask has only two values, which it would turn into a branch.
        let digit = black_box(self.0[2 * window + upper].cast_unsigned());
        chosen(token, &TABLE[window], Simd::splat(token, digit))
    }
}

/// 64 digits from -8 to 8 in radix 16, lowest first, for a scalar below 2^255.
#[inline(always)]
fn signed_digits(k: &[u8; 32]) -> Zeroizing<[i64; ADDITIONS]> {
    let mut digits = Zeroizing::new([0; 64]);
    let mut carry = 0;
    for (i, digit) in digits.iter_mut().enumerate() {
        let value = i64::from(k[i / 2] >> (4 * (i % 2)) & 15) + carry;
        carry = if i == 63 { 0 } else { (value + 8) >> 4 };
        *digit = value - (carry << 4);
    }
    digits
}

/// The multiple for a digit from -8 to 8, in each lane. Reads every entry.
#[inline(always)]
pub(super) fn chosen<L: Lanes>(token: L::Token, multiples: &[Entry; 8], digit: L) -> Elements<L> {
    let zero = L::splat(token, 0);
    let sign = digit.sar::<63>();
    let magnitude = digit.xor(sign).sub(sign);
    let neutral = Elements::load(token, [&ONE, &ONE, &TWO, &ZERO]);
    let is_zero = magnitude.equals(zero);
    let mut chosen = five!(i => L::select(is_zero, neutral.0[i], zero));
    for (number, entry) in (1..).zip(multiples) {
        let is_it = magnitude.equals(L::splat(token, number));
        chosen = five!(i => L::select(is_it, L::load(token, entry.0[i]), chosen[i]));
    }
    // The opposite of (x, y) is (-x, y): swap the first two lanes, and negate the last one.
    let order = L::load(token, [0, 1, 2, 3]).xor(sign.and(L::load(token, [1, 1, 0, 0])));
    let positive = sign.equals(zero);
    Elements(five!(i => {
        let limb = chosen[i].permute_by(order);
        let negated = L::splat(token, TWICE_P[i]).sub(limb);
        limb.blend::<0b1000>(L::select(positive, limb, negated))
    }))
}

/// (X, Y, Z, T) plus a point as (y - x, y + x, 2z, 2dt), times any factor: complete on this curve (Hisil, Wong, Carter
/// and Dawson, 2008, section 3.1).
#[inline(always)]
pub(super) fn plus<L: Lanes>(token: L::Token, p: &[L; 5], other: &Elements<L>) -> [L; 5] {
    let abdc = turned(token, p).product(token, other, &[L::splat(token, 0); 5]);
    // (E, F, G, H) = (B - A, D - C, D + C, B + A)
    let bddb = permuted::<0b01_10_10_01, L>(&abdc);
    let acca = permuted::<0b00_11_11_00, L>(&abdc);
    let s = Elements::sum::<0b0011>(token, &bddb, &acca);
    // (E F, G H, F G, E H)
    let egfe = Elements(permuted::<0b00_01_10_00, L>(&s.0));
    let fhgh = Elements(permuted::<0b11_10_11_01, L>(&s.0));
    egfe.product(token, &fhgh, &[L::splat(token, 0); 5])
}

/// (Y - X, Y + X, 2Z, 2dT) of (X, Y, Z, T).
#[inline(always)]
pub(super) fn cached<L: Lanes>(token: L::Token, p: &[L; 5]) -> Elements<L> {
    turned(token, p).times(token, &Elements::load(token, [&ONE, &ONE, &TWO, &TWICE_D]))
}

/// (Y - X, Y + X, Z, T) of (X, Y, Z, T).
#[inline(always)]
fn turned<L: Lanes>(token: L::Token, p: &[L; 5]) -> Elements<L> {
    let yyzt = permuted::<0b11_10_01_01, L>(p);
    let xx = without::<0b1100, L>(token, &permuted::<0, L>(p));
    Elements::sum::<0b0001>(token, &yyzt, &xx)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::signed_digits;

    proptest! {
        #[test]
        fn digits_are_small_and_sum_up_to_the_scalar(mut k: [u8; 32]) {
            k[31] &= 127;
            let digits = signed_digits(&k);
            prop_assert!(digits.iter().all(|digit| (-8..=8).contains(digit)));
            // Combine the digits from the top, byte by byte; a prefix of the signed digits is the prefix of the bytes,
            // or one more.
            let mut carry = 0;
            for i in (0..32).rev() {
                let value = 256 * carry + 16 * digits[2 * i + 1] + digits[2 * i];
                carry = value - i64::from(k[i]);
                prop_assert!((-1..=1).contains(&carry));
            }
            prop_assert_eq!(carry, 0);
        }
    }
}
