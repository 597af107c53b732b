//! Arithmetic modulo P-256's prime p, in four lanes at once.
//!
//! An [`Element`] is a number below 1.25 2^256 in radix 2^52. It represents this number divided by 2^260 modulo p
//! (Montgomery form). This module's tests prove over intervals that the operations keep these bounds and that no lane
//! overflows.

use super::words::{LOW, limbs};
use crate::lanes::{Lanes, five};

/// Limbs of 52 bits, the least significant first; all are below 2^52, and the last is at most [`TOP`].
pub(super) type Element<L> = [L; 5];

/// A sum of elements before its carries, with limbs of any sign.
pub(super) type Loose<L> = [L; 5];

/// A product before its reduction.
pub(super) type Wide<L> = [L; 10];

/// The bound of an element's last limb: 1.25 2^256 / 2^208.
#[cfg(test)]
pub(super) const TOP: u64 = 5 << 46;

/// p in radix 2^52.
const P: [u64; 5] = limbs(&super::modular::P.words);

/// The same limbs in each lane.
#[inline(always)]
pub(super) fn splat<L: Lanes>(token: L::Token, limbs: &[u64; 5]) -> Element<L> {
    five!(i => L::splat(token, limbs[i]))
}

#[inline(always)]
pub(super) fn plus<L: Lanes>(a: &Loose<L>, b: &Loose<L>) -> Loose<L> {
    five!(i => a[i].add(b[i]))
}

#[inline(always)]
pub(super) fn minus<L: Lanes>(a: &Loose<L>, b: &Loose<L>) -> Loose<L> {
    five!(i => a[i].sub(b[i]))
}

#[inline(always)]
pub(super) fn times_3<L: Lanes>(a: &Loose<L>) -> Loose<L> {
    plus(&plus(a, a), a)
}

/// -a in the lanes of the mask, a in the others.
#[inline(always)]
pub(super) fn negated<L: Lanes>(token: L::Token, mask: L::Mask, a: &Loose<L>) -> Loose<L> {
    let zero = L::splat(token, 0);
    five!(i => L::select(mask, zero.sub(a[i]), a[i]))
}

/// Moves the bits of a limb above 52, or a borrow, to the next limb; the sum must not be negative.
#[inline(always)]
pub(super) fn carried<L: Lanes>(token: L::Token, mut a: Loose<L>) -> [L; 5] {
    let low = L::splat(token, LOW);
    for i in 0..4 {
        a[i + 1] = a[i + 1].add(a[i].sar::<52>());
        a[i] = a[i].and(low);
    }
    a
}

/// a + `MULTIPLE` p, which must not be negative, as an element below 2^256 + 2^230.
#[inline(always)]
pub(super) fn settled<const MULTIPLE: u64, L: Lanes>(token: L::Token, a: &Loose<L>) -> Element<L> {
    let mut a = five!(i => a[i].add(L::splat(token, MULTIPLE * P[i])));
    // 2^256 = 2^224 - 2^192 - 2^96 + 1 modulo p, so add the bits above 2^256 there.
    let above = a[4].shr::<48>();
    a[0] = a[0].add(above);
    a[1] = a[1].sub(above.shl::<44>());
    a[3] = a[3].sub(above.shl::<36>());
    a[4] = a[4].and(L::splat(token, (1 << 48) - 1)).add(above.shl::<16>());
    carried(token, a)
}

/// a - b.
#[inline(always)]
pub(super) fn difference<L: Lanes>(token: L::Token, a: &Element<L>, b: &Element<L>) -> Element<L> {
    settled::<8, L>(token, &minus(a, b))
}

/// t + a b.
#[inline(always)]
pub(super) fn plus_product<L: Lanes>(mut t: Wide<L>, a: &Element<L>, b: &Element<L>) -> Wide<L> {
    for i in 0..5 {
        for j in 0..5 {
            t[i + j] = t[i + j].madd_lo(a[i], b[j]);
            t[i + j + 1] = t[i + j + 1].madd_hi(a[i], b[j]);
        }
    }
    t
}

#[inline(always)]
pub(super) fn product<L: Lanes>(token: L::Token, a: &Element<L>, b: &Element<L>) -> Wide<L> {
    plus_product([L::splat(token, 0); 10], a, b)
}

/// t / 2^260. Since p is 2^256 - 2^224 + 2^192 + 2^96 - 1, adding a limb times p cancels the limb.
#[inline(always)]
pub(super) fn reduced<L: Lanes>(token: L::Token, mut t: Wide<L>) -> Element<L> {
    let low = L::splat(token, LOW);
    let low_8 = L::splat(token, (1 << 8) - 1);
    let at_192 = L::splat(token, 1 << 36);
    let at_224 = L::splat(token, (1 << 48) - (1 << 16));
    for i in 0..5 {
        let limb = t[i];
        // Multiply by 2^96 with shifts, to spare the multipliers, the busiest units of the processor.
        t[i + 1] = t[i + 1].add(limb.shr::<52>()).add(limb.and(low_8).shl::<44>());
        t[i + 2] = t[i + 2].add(limb.and(low).shr::<8>());
        t[i + 3] = t[i + 3].madd_lo_of_low(limb, at_192);
        t[i + 4] = t[i + 4].madd_hi_of_low(limb, at_192).madd_lo_of_low(limb, at_224);
        t[i + 5] = t[i + 5].madd_hi_of_low(limb, at_224);
    }
    carried(token, [t[5], t[6], t[7], t[8], t[9]])
}

/// a b.
#[inline(always)]
pub(super) fn mul<L: Lanes>(token: L::Token, a: &Element<L>, b: &Element<L>) -> Element<L> {
    reduced(token, product(token, a, b))
}

/// a a.
#[inline(always)]
pub(super) fn square<L: Lanes>(token: L::Token, a: &Element<L>) -> Element<L> {
    let mut t = [L::splat(token, 0); 10];
    for i in 0..5 {
        for j in i + 1..5 {
            t[i + j] = t[i + j].madd_lo(a[i], a[j]);
            t[i + j + 1] = t[i + j + 1].madd_hi(a[i], a[j]);
        }
    }
    for i in 0..5 {
        t[2 * i] = t[2 * i].add(t[2 * i]).madd_lo(a[i], a[i]);
        t[2 * i + 1] = t[2 * i + 1].add(t[2 * i + 1]).madd_hi(a[i], a[i]);
    }
    reduced(token, t)
}

/// The number that an element represents, from 0 to p (zero may yield p): (a + q p) / 2^260 with q below 2^260 is below
/// p + 1.
#[inline(always)]
pub(super) fn plain<L: Lanes>(token: L::Token, a: &Element<L>) -> Element<L> {
    let zero = L::splat(token, 0);
    reduced(token, [a[0], a[1], a[2], a[3], a[4], zero, zero, zero, zero, zero])
}
