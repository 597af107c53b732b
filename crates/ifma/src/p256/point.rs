//! Points of P-256 and their sums, four at once. `proofs/p256.py` checks the formulas.

use super::field::{
    Element, carried, difference, minus, mul, negated, plus, plus_product, product, reduced, settled, splat,
    square, times_3,
};
use super::modular::{B, P, to_element};
use super::words::limbs;
use crate::lanes::{Lanes, five};

/// 3, b and 3 b as elements.
const THREE: [u64; 5] = limbs(&to_element(&P.scaled(&[3, 0, 0, 0])));
const B_ELEMENT: [u64; 5] = limbs(&to_element(&P.scaled(&B)));
const THREE_B: [u64; 5] = limbs(&to_element(&P.sum(&P.scaled(&B), &P.sum(&P.scaled(&B), &P.scaled(&B)))));

/// (x, y), not the point at infinity.
pub(super) type Affine<L> = [Element<L>; 2];

/// (x zz, y zzz), zz, zzz, where zz^3 = zzz^2.
#[derive(Clone, Copy)]
pub(super) struct Extended<L> {
    pub(super) x: Element<L>,
    pub(super) y: Element<L>,
    pub(super) zz: Element<L>,
    pub(super) zzz: Element<L>,
}

/// (x z, y z, z), or (0, y, 0) for the point at infinity.
#[derive(Clone, Copy)]
pub(super) struct Projective<L> {
    pub(super) x: Element<L>,
    pub(super) y: Element<L>,
    pub(super) z: Element<L>,
}

/// p + q, each negated in the lanes of its mask. The points must be neither equal nor opposite.
///
/// The formulas are `mmadd-2008-s` of the Explicit-Formulas Database (Sutherland, 2008).
#[inline(always)]
pub(super) fn affine_sum<L: Lanes>(
    token: L::Token,
    [x, y]: &Affine<L>,
    negative: L::Mask,
    [x2, y2]: &Affine<L>,
    negative2: L::Mask,
) -> Extended<L> {
    let y = settled::<8, L>(token, &negated(token, negative, y));
    let h = difference(token, x2, x);
    let r = difference(token, &negated(token, negative2, y2), &y);
    let hh = square(token, &h);
    let hhh = mul(token, &h, &hh);
    let (x, y) = last(token, x, &y, &r, &hh, &hhh);
    Extended { x, y, zz: hh, zzz: hhh }
}

impl<L: Lanes> Extended<L> {
    /// Adds a point, negated in the lanes of the mask. The point must be neither equal nor opposite to `self`, and
    /// neither of the two may be at infinity.
    ///
    /// The formulas are `madd-2008-s` of the Explicit-Formulas Database (Sutherland, 2008).
    #[inline(always)]
    pub(super) fn plus_affine(&self, token: L::Token, [x, y]: &Affine<L>, negative: L::Mask) -> Self {
        let u = mul(token, x, &self.zz);
        let s = negated(token, negative, &mul(token, y, &self.zzz));
        let h = difference(token, &u, &self.x);
        let r = difference(token, &s, &self.y);
        let hh = square(token, &h);
        let hhh = mul(token, &h, &hh);
        let (x, y) = last(token, &self.x, &self.y, &r, &hh, &hhh);
        Self { x, y, zz: mul(token, &self.zz, &hh), zzz: mul(token, &self.zzz, &hhh) }
    }

    #[inline(always)]
    pub(super) fn projective(&self, token: L::Token) -> Projective<L> {
        Projective {
            x: mul(token, &self.x, &self.zzz),
            y: mul(token, &self.y, &self.zz),
            z: mul(token, &self.zz, &self.zzz),
        }
    }
}

/// The sum of two points scaled alike: the first one is (x, y), and the coordinates differ by h and r.
#[inline(always)]
fn last<L: Lanes>(
    token: L::Token,
    x: &Element<L>,
    y: &Element<L>,
    r: &Element<L>,
    hh: &Element<L>,
    hhh: &Element<L>,
) -> (Element<L>, Element<L>) {
    let q = mul(token, x, hh);
    let x3 = settled::<8, L>(token, &minus(&minus(&square(token, r), hhh), &plus(&q, &q)));
    // r (q - x3) - y hhh with one reduction.
    let opposite = settled::<8, L>(token, &five!(i => L::splat(token, 0).sub(hhh[i])));
    let y3 = plus_product(product(token, r, &difference(token, &q, &x3)), y, &opposite);
    (x3, reduced(token, y3))
}

/// The lanes 0, 0, 2, 2.
const EVEN: i32 = 0b10_10_00_00;
/// The lanes 1, 1, 3, 3.
const ODD: i32 = 0b11_11_01_01;
/// The lanes 1, 0, 3, 2.
const OTHER: i32 = 0b10_11_00_01;

#[inline(always)]
fn permuted<const ORDER: i32, L: Lanes>(a: &Element<L>) -> Element<L> {
    five!(i => a[i].permute::<ORDER>())
}

/// `a` in the even lanes and `b` in the odd ones.
#[inline(always)]
fn paired<L: Lanes>(a: &Element<L>, b: &Element<L>) -> Element<L> {
    five!(i => a[i].blend::<0b1010>(b[i]))
}

impl<L: Lanes> Projective<L> {
    /// Adds the first two lanes and the last two lanes; both lanes of a pair get the sum. Accepts any points: on a
    /// curve of odd order these formulas are complete (Renes, Costello and Batina, 2016, algorithm 4 for a = -3).
    ///
    /// The two lanes of a sum share its multiplications.
    #[inline(always)]
    pub(super) fn sum_of_neighbours(&self, token: L::Token) -> Self {
        let t = token;
        // (X1 X2, (X1 + Y1) (X2 + Y2)), and the same for Y, Z and for Z, X.
        let (xx, xy) = crossed(t, &self.x, &self.y);
        let (yy, yz) = crossed(t, &self.y, &self.z);
        let (zz, zx) = crossed(t, &self.z, &self.x);
        // X1 Y2 + X2 Y1, and the corresponding sums for (Y, Z) and (Z, X).
        let xy = difference(t, &xy, &plus(&xx, &yy));
        let yz = difference(t, &yz, &plus(&yy, &zz));
        let zx = difference(t, &zx, &plus(&zz, &xx));
        let by_3b = mul(t, &splat(t, &THREE_B), &paired(&zz, &zx));
        let (zz_3b, zx_3b) = (permuted::<EVEN, L>(&by_3b), permuted::<ODD, L>(&by_3b));
        let s = minus(&times_3(&zx), &zz_3b);
        let (m, p) = (settled::<8, L>(t, &minus(&yy, &s)), settled::<8, L>(t, &plus(&yy, &s)));
        let xx_3 = times_3(&xx);
        let zz_3 = times_3(&zz);
        let w = settled::<16, L>(t, &minus(&zx_3b, &plus(&times_3(&zz_3), &xx_3)));
        let v = settled::<8, L>(t, &minus(&xx_3, &zz_3));
        // xy p - yz w, p m + v w, and yz m + xy v.
        let x = mul(t, &paired(&xy, &yz), &paired(&p, &w));
        let y = mul(t, &paired(&p, &v), &paired(&m, &w));
        let z = mul(t, &paired(&yz, &xy), &paired(&m, &v));
        Self {
            x: settled::<8, L>(t, &minus(&permuted::<EVEN, L>(&x), &permuted::<ODD, L>(&x))),
            y: settled::<8, L>(t, &plus(&y, &permuted::<OTHER, L>(&y))),
            z: settled::<8, L>(t, &plus(&z, &permuted::<OTHER, L>(&z))),
        }
    }

    /// The lanes 0, 2, 0 and 2.
    #[inline(always)]
    pub(super) fn evens(&self) -> Self {
        const ORDER: i32 = 0b10_00_10_00;
        Self {
            x: permuted::<ORDER, L>(&self.x),
            y: permuted::<ORDER, L>(&self.y),
            z: permuted::<ORDER, L>(&self.z),
        }
    }

    /// (x, y) alternating in the lanes, given 1 / z.
    #[inline(always)]
    pub(super) fn affine(&self, token: L::Token, inverse: &Element<L>) -> Element<L> {
        mul(token, &paired(&self.x, &self.y), inverse)
    }
}

/// a a' and (a + c) (a' + c') for each pair of lanes, in both lanes; a dash marks the second point.
#[inline(always)]
fn crossed<L: Lanes>(token: L::Token, a: &Element<L>, c: &Element<L>) -> (Element<L>, Element<L>) {
    let sum = carried(token, plus(a, c));
    let left = paired(&permuted::<EVEN, L>(a), &permuted::<EVEN, L>(&sum));
    let right = paired(&permuted::<ODD, L>(a), &permuted::<ODD, L>(&sum));
    let product = mul(token, &left, &right);
    (permuted::<EVEN, L>(&product), permuted::<ODD, L>(&product))
}

/// y^2 - x^3 + 3 x - b for alternating (x, y): zero on the curve.
#[inline(always)]
pub(super) fn equation<L: Lanes>(token: L::Token, affine: &Element<L>) -> Element<L> {
    let squares = square(token, affine);
    let x = permuted::<EVEN, L>(affine);
    let factor = difference(token, &permuted::<EVEN, L>(&squares), &splat(token, &THREE));
    let right = plus(&mul(token, &x, &factor), &splat(token, &B_ELEMENT));
    difference(token, &permuted::<ODD, L>(&squares), &right)
}
