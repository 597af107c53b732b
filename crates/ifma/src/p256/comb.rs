//! Multiples of the base point by a comb: each of four lanes adds up a quarter of the scalar's digits, without
//! doublings.
//!
//! An odd k has 52 odd digits d from -31 to 31 in radix 32: d = 2 v - 31, where v are the digits of (k - 1) / 2 +
//! 2^259. The last v is always 16, so the last d is always 1. The first lane adds up the first 13 digits, and so on.
//!
//! A lane never adds equal or opposite points. Let s 32^(i+1) be the sum so far and d 32^i the digit's term: s is odd,
//! and |d| is at most 31, so the two differ in absolute value. Their sum and difference are less than 2^66 in absolute
//! value, so they are not multiples of the prime n, nor are they after multiplication by the lane's 2^0, 2^65, 2^130 or
//! 2^195.
//!
//! But the sum of the lower two lanes and that of the upper two may be equal modulo n, for example for the scalar n -
//! 2 * (n mod 2^130). So the sums of the lanes are added with complete formulas.

use super::base::STEPS;
use super::faults::{self, Place};
use super::field::Element;
use super::modular::N;
use super::point::{Affine, Projective, affine_sum};
use super::table::TABLE;
use super::words::{Words, minus, selected};
use crate::lanes::{Lanes, five};

/// The digits v of each step, for k if it is odd, else for n - k, whose point is the opposite one. k is from 1 to n -
/// 1.
#[inline(always)]
pub(super) fn digits<L: Lanes>(token: L::Token, k: &Words) -> [L; STEPS] {
    let k = selected(k[0] & 1, k, &minus(&N.words, k).0);
    let half = [k[0] >> 1 | k[1] << 63, k[1] >> 1 | k[2] << 63, k[2] >> 1 | k[3] << 63, k[3] >> 1];
    // The first twelve digits of each lane, from bit 65 * lane on.
    let mut rest =
        L::load(token, [half[0], half[1] >> 1 | half[2] << 63, half[2] >> 2 | half[3] << 62, half[3] >> 3]);
    // The last digit of each lane, from bit 65 * lane + 60 on. The last lane's digit contains the 2^259.
    let last = [half[0] >> 60 | half[1] << 4, half[1] >> 61 | half[2] << 3, half[2] >> 62 | half[3] << 2, 16];
    let low = L::splat(token, 31);
    let mut digits = [L::load(token, last).and(low); STEPS];
    for digit in &mut digits[..STEPS - 1] {
        *digit = rest.and(low);
        rest = rest.shr::<5>();
    }
    digits
}

/// The multiple of the base point for these digits, in each lane.
#[inline(always)]
pub(super) fn base_multiple<L: Lanes>(token: L::Token, digits: &[L; STEPS]) -> Projective<L> {
    let (first, negative) = chosen(token, STEPS - 1, digits[STEPS - 1]);
    let (second, negative2) = chosen(token, STEPS - 2, digits[STEPS - 2]);
    let mut point = affine_sum(token, &first, negative, &second, negative2);
    for step in (0..STEPS - 2).rev() {
        let (entry, negative) = chosen(token, step, digits[step]);
        point = point.plus_affine(token, &entry, negative);
    }
    point.projective(token).sum_of_neighbours(token).evens().sum_of_neighbours(token)
}

/// For each lane's digit v, the point for |2 v - 31|, and whether 2 v - 31 is negative. Reads every entry.
#[inline(always)]
pub(super) fn chosen<L: Lanes>(token: L::Token, step: usize, digit: L) -> (Affine<L>, L::Mask) {
    let half = L::splat(token, 16);
    let negative = digit.below(half);
    // The index: v - 16 for v from 16 on, else 15 - v.
    let index = L::select(negative, L::splat(token, 15).sub(digit), digit.sub(half));
    let mut chosen = [[L::splat(token, 0); 5]; 2];
    for (i, entry) in (0..).zip(&TABLE.0[step]) {
        let this = index.equals(L::splat(token, i));
        for (to, from) in chosen.iter_mut().zip(entry) {
            *to = selected_limbs(token, this, from, to);
        }
    }
    faults::element(token, Place::Entry(step), &mut chosen[0]);
    (chosen, negative)
}

#[inline(always)]
fn selected_limbs<L: Lanes>(
    token: L::Token,
    mask: L::Mask,
    yes: &[[u64; 4]; 5],
    no: &Element<L>,
) -> Element<L> {
    five!(i => L::select(mask, L::load(token, yes[i]), no[i]))
}
