//! The Montgomery ladder (RFC 7748, section 5), with three times four parallel products per step.

use core::hint::black_box;

use super::{ONE, ZERO};
use crate::Ifma;
use crate::field25519::{Elements, blended, limbs, permuted, without};
use crate::lanes::{Lanes, five};
use crate::simd::Simd;

/// (A - 2) / 4 of Curve25519, v^2 = u^3 + A u^2 + u.
const A24: [u64; 5] = [121_665, 0, 0, 0, 0];

/// The number of scalar bits that the ladder reads, from the highest, which is 0.
const STEPS: usize = 256;

/// X and Z, in the first two lanes, of the scalar multiple of the point with u = X/Z. The scalar's lowest bit must be
/// 0.
#[inline(always)]
pub(super) fn ladder(token: Ifma, k: &[u8; 32], u: &[u8; 32]) -> Elements<Simd> {
    let u = limbs(u);
    let base = Elements::load(token, [&ONE, &ONE, &ONE, &u]);
    // (X2, Z2, X3, Z3), without carries: n and n + 1 times the point, where the bits read so far form n.
    let mut points = Elements::load(token, [&ONE, &ZERO, &u, &ONE]).0;
    // Whether the two points are exchanged.
    let mut previous = 0;
    for t in (0..STEPS).rev() {
        let bit = k[t / 8] >> (t % 8) & 1;
        // Hide from the compiler that `swap` has only two values, which it might turn into a branch.
        let swap = black_box(u64::from(bit ^ previous) << 1);
        previous = bit;
        let (n, q) = second(token, &first(token, &points, Simd::splat(token, swap)));
        points = third(token, &n, &q, &base);
    }
    // Since the lowest bit is 0, the two points are not exchanged here.
    Elements::carried(token, points)
}

/// The squares and products (AA, BB, DA, CB) of A = X2 + Z2, B = X2 - Z2, C = X3 + Z3 and D = X3 - Z3, with both points
/// exchanged if `swap` is 2 instead of 0 in each lane.
#[inline(always)]
pub(super) fn first<L: Lanes>(token: L::Token, points: &[L; 5], swap: L) -> [L; 5] {
    // (A, B, C, D), or (C, D, A, B)
    let p = Elements::sum::<0b1010>(token, &evens(points), &odds(points));
    // (A, B, D, C) (A, B, A, B)
    let left = L::load(token, [0, 1, 3, 2]).xor(swap);
    let right = L::load(token, [0, 1, 0, 1]).xor(swap);
    permuted_by(&p, left).product(token, &permuted_by(&p, right), &[L::splat(token, 0); 5])
}

/// n = (AA, E, DA + CB, DA - CB) with E = AA - BB, and q = (X2, AA + 121665 E, X3, (DA - CB)^2).
#[inline(always)]
pub(super) fn second<L: Lanes>(token: L::Token, m: &[L; 5]) -> (Elements<L>, Elements<L>) {
    let (even, odd) = (evens(m), odds(m));
    let n = Elements::sum::<0b1010>(token, &even, &without::<0b0001, L>(token, &odd));
    let bb = Elements::carried(token, odd);
    // (AA, E, DA + CB, DA - CB) (BB, 121665, DA + CB, DA - CB) + (0, AA, 0, 0)
    let a24 = five!(i => L::splat(token, A24[i]));
    let by = Elements(blended::<0b0010, L>(&blended::<0b0001, L>(&n.0, &bb.0), &a24));
    let q = n.product(token, &by, &without::<0b1101, L>(token, &even));
    (n, Elements::carried(token, q))
}

/// (X2, Z2, X3, Z3) of twice the first point and of the sum: q (1, E, 1, u), where `base` is (1, 1, 1, u).
#[inline(always)]
pub(super) fn third<L: Lanes>(
    token: L::Token,
    n: &Elements<L>,
    q: &Elements<L>,
    base: &Elements<L>,
) -> [L; 5] {
    let by = Elements(blended::<0b0010, L>(&base.0, &n.0));
    q.product(token, &by, &[L::splat(token, 0); 5])
}

/// (a, a, c, c) of (a, b, c, d).
#[inline(always)]
fn evens<L: Lanes>(limbs: &[L; 5]) -> [L; 5] {
    permuted::<0b10_10_00_00, L>(limbs)
}

/// (b, b, d, d) of (a, b, c, d).
#[inline(always)]
fn odds<L: Lanes>(limbs: &[L; 5]) -> [L; 5] {
    permuted::<0b11_11_01_01, L>(limbs)
}

/// Permutes lanes: each lane of `order` gives the source of a lane.
#[inline(always)]
fn permuted_by<L: Lanes>(a: &Elements<L>, order: L) -> Elements<L> {
    Elements(five!(i => a.0[i].permute_by(order)))
}
