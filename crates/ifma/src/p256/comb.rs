//! Multiples of the base point, by a comb: each of four lanes adds up a quarter of the scalar's digits, without doublings.
//!
//! An odd k has 52 odd digits d from -31 to 31 in radix 32: d = 2 v - 31, where v are the digits of (k - 1) / 2 + 2^259, and the
//! last one is always 1. The first lane adds up the first 13 digits, and so on.
//!
//! No addition in a lane is of equal or of opposite points: the sum so far is an odd multiple of 32^(i+1), less than
//! 2^66, and the digit's point a multiple of 32^i of at most 31 (all times the lane's 2^0, 2^65, 2^130 or 2^195, which is no
//! multiple of n). Of the sums of lanes this is not true: the scalar n - 2 (n modulo 2^130) has two equal halves modulo n. So
//! their formulas are complete.

use super::base::STEPS;
use super::faults::{self, Place};
use super::field::Element;
use super::modular::N;
use super::point::{Affine, Projective, affine_sum};
use super::table::TABLE;
use super::words::{Words, minus, selected};
use crate::lanes::{Lanes, five};

/// The digits v of each step, of k, or of n - k if k is even: the same point, or its opposite. k is from 1 to n - 1.
#[inline(always)]
pub(super) fn digits<L: Lanes>(token: L::Token, k: &Words) -> [L; STEPS] {
    let k = selected(k[0] & 1, k, &minus(&N.words, k).0);
    let half = [k[0] >> 1 | k[1] << 63, k[1] >> 1 | k[2] << 63, k[2] >> 1 | k[3] << 63, k[3] >> 1];
    // From bit 65 lane on, the first twelve digits.
    let mut rest =
        L::load(token, [half[0], half[1] >> 1 | half[2] << 63, half[2] >> 2 | half[3] << 62, half[3] >> 3]);
    // From bit 65 lane + 60 on, the last ones, with 2^259.
    let last = [half[0] >> 60 | half[1] << 4, half[1] >> 61 | half[2] << 3, half[2] >> 62 | half[3] << 2, 16];
    let low = L::splat(token, 31);
    let mut digits = [L::load(token, last).and(low); STEPS];
    for digit in &mut digits[..STEPS - 1] {
        *digit = rest.and(low);
        rest = rest.shr::<5>();
    }
    digits
}

/// The base point's multiple that digits describe, in each lane.
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

/// The point of each lane's digit v, 2 v - 31 without its sign, and whether it is negative. Every entry is read.
#[inline(always)]
pub(super) fn chosen<L: Lanes>(token: L::Token, step: usize, digit: L) -> (Affine<L>, L::Mask) {
    let half = L::splat(token, 16);
    let negative = digit.below(half);
    // From 16 on, v - 16; below, 15 - v.
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
