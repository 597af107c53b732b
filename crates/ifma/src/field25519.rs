//! Arithmetic modulo p = 2^255 - 19: four elements at once, in radix 2^51.

use crate::lanes::{Lanes, five};

/// The low 51 bits of a lane.
pub(crate) const MASK: u64 = (1 << 51) - 1;

/// 2p, limb by limb.
pub(crate) const TWICE_P: [u64; 5] = [2 * (MASK - 18), 2 * MASK, 2 * MASK, 2 * MASK, 2 * MASK];

/// 2^11 p, limb by limb; each limb exceeds the corresponding limb of any product.
const MANY_P: [u64; 5] = five!(i => TWICE_P[i] << 10);

/// The steps of the inversion, as (squarings, factor): each step squares the latest power this many times and
/// multiplies the result by the earlier power with the number `factor`. Powers 0 and 1 are a and a^2; the last one is
/// a^(p - 2).
static INVERSION: [(usize, usize); 11] =
    [(2, 0), (0, 1), (1, 2), (5, 4), (10, 5), (20, 6), (10, 5), (50, 8), (100, 9), (50, 8), (5, 3)];

/// The limbs of 32 little-endian bytes without the highest bit (RFC 7748, section 5). The number may be p or more.
pub(crate) const fn limbs(bytes: &[u8; 32]) -> [u64; 5] {
    let mut w = [0; 4];
    let mut i = 0;
    while i < 32 {
        w[i / 8] |= (bytes[i] as u64) << (8 * (i % 8));
        i += 1;
    }
    [
        w[0] & MASK,
        (w[0] >> 51 | w[1] << 13) & MASK,
        (w[1] >> 38 | w[2] << 26) & MASK,
        (w[2] >> 25 | w[3] << 39) & MASK,
        w[3] >> 12 & MASK,
    ]
}

/// A sum of products of these limbs of two elements, by madd_lo or madd_hi.
macro_rules! products {
    ($start:expr, $madd:ident, $a:ident $b:ident: $($i:literal $j:literal),+) => {
        $start$(.$madd($a[$i], $b[$j]))+
    };
}

/// One element per lane, as five limbs. *Reduced* means limbs below 2^51 + 2^17. Unless its comment says otherwise, a
/// function accepts limbs up to 2^52 - 1 and returns reduced limbs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements<L>(pub(crate) [L; 5]);

impl<L: Lanes> Elements<L> {
    /// Loads elements with these limbs, one per lane.
    #[inline(always)]
    pub(crate) fn load(token: L::Token, [a, b, c, d]: [&[u64; 5]; 4]) -> Self {
        Self(five!(i => L::load(token, [a[i], b[i], c[i], d[i]])))
    }

    /// Reduces limbs below 2^63 in one parallel step: each limb passes its carry to the next.
    #[inline(always)]
    pub(crate) fn carried(token: L::Token, z: [L; 5]) -> Self {
        let mask = L::splat(token, MASK);
        let low = five!(i => z[i].and(mask));
        // 2^255 = 19 modulo p.
        let first = low[0].madd_lo(z[4].shr::<51>(), L::splat(token, 19));
        Self([
            first,
            low[1].add(z[0].shr::<51>()),
            low[2].add(z[1].shr::<51>()),
            low[3].add(z[2].shr::<51>()),
            low[4].add(z[3].shr::<51>()),
        ])
    }

    /// a + b, or a - b in the lanes selected by `MINUS`. The operands may be sums of products, or limbs.
    #[inline(always)]
    pub(crate) fn sum<const MINUS: u8>(token: L::Token, a: &[L; 5], b: &[L; 5]) -> Self {
        let zero = L::splat(token, 0);
        let ones = L::splat(token, u64::MAX);
        // The complement of b is -1 - b, so this subtracts b.
        let flip = zero.blend::<MINUS>(ones);
        Self::carried(
            token,
            five!(i => {
                let offset = zero.blend::<MINUS>(L::splat(token, MANY_P[i] + 1));
                a[i].add(offset).add(b[i].xor(flip))
            }),
        )
    }

    /// a b.
    #[inline(always)]
    pub(crate) fn times(&self, token: L::Token, other: &Self) -> Self {
        Self::carried(token, self.product(token, other, &[L::splat(token, 0); 5]))
    }

    /// a b + c without carries. The limbs of a b are below 2^61; those of c must be, too.
    #[inline(always)]
    pub(crate) fn product(&self, token: L::Token, other: &Self, c: &[L; 5]) -> [L; 5] {
        let zero = L::splat(token, 0);
        let (a, b) = (&self.0, &other.0);
        let h5 = products!(zero, madd_hi, a b: 0 4, 1 3, 2 2, 3 1, 4 0);
        let l5 = products!(zero, madd_lo, a b: 1 4, 2 3, 3 2, 4 1);
        let h6 = products!(zero, madd_hi, a b: 1 4, 2 3, 3 2, 4 1);
        let l6 = products!(zero, madd_lo, a b: 2 4, 3 3, 4 2);
        let h7 = products!(zero, madd_hi, a b: 2 4, 3 3, 4 2);
        let l7 = products!(zero, madd_lo, a b: 3 4, 4 3);
        let h8 = products!(zero, madd_hi, a b: 3 4, 4 3);
        let l8 = products!(zero, madd_lo, a b: 4 4);
        let h9 = products!(zero, madd_hi, a b: 4 4);
        let h4 = products!(zero, madd_hi, a b: 0 3, 1 2, 2 1, 3 0);
        let l4 = products!(c[4], madd_lo, a b: 0 4, 1 3, 2 2, 3 1, 4 0);
        let h3 = products!(zero, madd_hi, a b: 0 2, 1 1, 2 0);
        let l3 = products!(c[3], madd_lo, a b: 0 3, 1 2, 2 1, 3 0);
        let h2 = products!(zero, madd_hi, a b: 0 1, 1 0);
        let l2 = products!(c[2], madd_lo, a b: 0 2, 1 1, 2 0);
        let h1 = products!(zero, madd_hi, a b: 0 0);
        let l1 = products!(c[1], madd_lo, a b: 0 1, 1 0);
        let l0 = products!(c[0], madd_lo, a b: 0 0);
        folded(&[l0, l1, l2, l3, l4, l5, l6, l7, l8, zero], &[zero, h1, h2, h3, h4, h5, h6, h7, h8, h9])
    }

    /// a a.
    #[inline(always)]
    pub(crate) fn squared(&self, token: L::Token) -> Self {
        let zero = L::splat(token, 0);
        let a = &self.0;
        let h5 = products!(zero, madd_hi, a a: 0 4, 1 3);
        let h5 = products!(h5.add(h5), madd_hi, a a: 2 2);
        let l5 = products!(zero, madd_lo, a a: 1 4, 2 3);
        let l5 = l5.add(l5);
        let h6 = products!(zero, madd_hi, a a: 1 4, 2 3);
        let h6 = h6.add(h6);
        let l6 = products!(zero, madd_lo, a a: 2 4);
        let l6 = products!(l6.add(l6), madd_lo, a a: 3 3);
        let h7 = products!(zero, madd_hi, a a: 2 4);
        let h7 = products!(h7.add(h7), madd_hi, a a: 3 3);
        let l7 = products!(zero, madd_lo, a a: 3 4);
        let l7 = l7.add(l7);
        let h8 = products!(zero, madd_hi, a a: 3 4);
        let h8 = h8.add(h8);
        let l8 = products!(zero, madd_lo, a a: 4 4);
        let h9 = products!(zero, madd_hi, a a: 4 4);
        let h4 = products!(zero, madd_hi, a a: 0 3, 1 2);
        let h4 = h4.add(h4);
        let l4 = products!(zero, madd_lo, a a: 0 4, 1 3);
        let l4 = products!(l4.add(l4), madd_lo, a a: 2 2);
        let h3 = products!(zero, madd_hi, a a: 0 2);
        let h3 = products!(h3.add(h3), madd_hi, a a: 1 1);
        let l3 = products!(zero, madd_lo, a a: 0 3, 1 2);
        let l3 = l3.add(l3);
        let h2 = products!(zero, madd_hi, a a: 0 1);
        let h2 = h2.add(h2);
        let l2 = products!(zero, madd_lo, a a: 0 2);
        let l2 = products!(l2.add(l2), madd_lo, a a: 1 1);
        let h1 = products!(zero, madd_hi, a a: 0 0);
        let l1 = products!(zero, madd_lo, a a: 0 1);
        let l1 = l1.add(l1);
        let l0 = products!(zero, madd_lo, a a: 0 0);
        let (low, high) =
            ([l0, l1, l2, l3, l4, l5, l6, l7, l8, zero], [zero, h1, h2, h3, h4, h5, h6, h7, h8, h9]);
        Self::carried(token, folded(&low, &high))
    }

    /// The inverses, a^(p - 2); zero for zero. Expects reduced limbs.
    #[inline(always)]
    pub(crate) fn inverted(&self, token: L::Token) -> Self {
        // The size is a power of 2, so that masked indices need no bounds check.
        let mut powers = [*self; 16];
        let mut power = self.squared(token);
        powers[1] = power;
        for (step, (squarings, by)) in INVERSION.iter().enumerate() {
            for _ in 0..*squarings {
                power = power.squared(token);
            }
            power = power.times(token, &powers[by % 16]);
            powers[step + 2] = power;
        }
        power
    }

    /// The canonical value of reduced elements, from 0 to p - 1, as four words, lowest first.
    #[inline(always)]
    pub(crate) fn canonical(&self, token: L::Token) -> [L; 4] {
        let (mask, nineteen) = (L::splat(token, MASK), L::splat(token, 19));
        // Reduced elements are below 2p. An element is at least p if and only if adding 19 carries into bit 255.
        let mut above = nineteen;
        for limb in self.0 {
            above = limb.add(above).shr::<51>();
        }
        // Subtracting p is adding 19 and subtracting 2^255.
        let mut l = self.0;
        l[0] = l[0].madd_lo(above, nineteen);
        for i in 0..4 {
            l[i + 1] = l[i + 1].add(l[i].shr::<51>());
            l[i] = l[i].and(mask);
        }
        l[4] = l[4].and(mask);
        // The parts of a word do not overlap.
        let [low13, low26, low39] = [13, 26, 39].map(|bits| (1 << bits) - 1);
        [
            l[0].xor(l[1].and(L::splat(token, low13)).shl::<51>()),
            l[1].shr::<13>().xor(l[2].and(L::splat(token, low26)).shl::<38>()),
            l[2].shr::<26>().xor(l[3].and(L::splat(token, low39)).shl::<25>()),
            l[3].shr::<39>().xor(l[4].shl::<12>()),
        ]
    }
}

/// The sum of `low[i]` 2^(51 i) and `high[i]` 2^(51 i + 1) modulo p.
#[inline(always)]
fn folded<L: Lanes>(low: &[L; 10], high: &[L; 10]) -> [L; 5] {
    five!(i => {
        let far = low[i + 5].add(high[i + 5].add(high[i + 5]));
        // 2^255 = 19 = 16 + 2 + 1 modulo p.
        let folded = far.add(far.add(far).add(far.shl::<4>()));
        low[i].add(folded.add(high[i].add(high[i])))
    })
}

/// Permutes lanes: each two bits of `ORDER`, lowest first, give the source of a lane.
#[inline(always)]
pub(crate) fn permuted<const ORDER: i32, L: Lanes>(limbs: &[L; 5]) -> [L; 5] {
    five!(i => limbs[i].permute::<ORDER>())
}

/// `others` in the lanes selected by the bits of `LANES`, `limbs` in the other lanes.
#[inline(always)]
pub(crate) fn blended<const LANES: u8, L: Lanes>(limbs: &[L; 5], others: &[L; 5]) -> [L; 5] {
    five!(i => limbs[i].blend::<LANES>(others[i]))
}

/// Clears the lanes selected by the bits of `LANES`.
#[inline(always)]
pub(crate) fn without<const LANES: u8, L: Lanes>(token: L::Token, limbs: &[L; 5]) -> [L; 5] {
    blended::<LANES, L>(limbs, &[L::splat(token, 0); 5])
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use proptest::prelude::*;

    use super::{Elements, MANY_P, MASK, TWICE_P, limbs};
    use crate::Ifma;
    use crate::interval::Interval;
    use crate::lanes::Lanes;
    use crate::simd::{Simd, kernel};

    /// All valid factors.
    fn factor() -> Elements<Interval> {
        Elements([Interval::within(0, (1 << 52) - 1); 5])
    }

    fn reduced() -> Elements<Interval> {
        Elements([Interval::within(0, (1 << 51) + (1 << 17) - 1); 5])
    }

    #[track_caller]
    fn assert_reduced(elements: &Elements<Interval>) {
        assert!(
            elements.0.iter().zip(reduced().0).all(|(limb, bound)| bound.contains(*limb)),
            "{elements:x?}"
        );
    }

    #[test]
    fn products_of_all_factors_are_reduced() {
        assert_reduced(&factor().times((), &factor()));
        let once = factor().product((), &factor(), &[Interval::splat((), 0); 5]);
        let twice = factor().product((), &factor(), &once);
        assert_reduced(&Elements::carried((), twice));
        assert_reduced(&factor().squared(()));
    }

    #[test]
    fn sums_and_differences_are_reduced() {
        let wide = factor().product((), &factor(), &[Interval::within(0, (1 << 61) - 1); 5]);
        assert_reduced(&Elements::sum::<0>((), &wide, &wide));
        assert_reduced(&Elements::sum::<0b1111>((), &wide, &wide));
    }

    #[test]
    fn the_limit_of_carries_is_as_stated() {
        let limit = Elements::carried((), [Interval::within(0, (1 << 63) - 1); 5]);
        assert_reduced(&limit);
    }

    #[test]
    fn inverses_of_all_factors_are_reduced() {
        assert_reduced(&factor().inverted(()));
    }

    /// No word overflows, and values stay below 2p, as [`Elements::canonical`] requires.
    #[test]
    fn words_hold_reduced_elements() {
        let words = reduced().canonical(());
        assert!(Interval::within(0, i64::MAX.into()).contains(words[3]));
        let most = reduced().0.map(|limb| limb.0[0].high.try_into().unwrap());
        assert!(value(&most) < 2u8 * p());
    }

    #[test]
    fn offsets_of_differences_are_multiples_of_p() {
        assert_eq!(value(&TWICE_P), 2u8 * p());
        assert_eq!(value(&MANY_P), 2048u16 * p());
    }

    fn p() -> BigUint {
        (BigUint::from(1u8) << 255) - 19u8
    }

    fn value(limbs: &[u64; 5]) -> BigUint {
        limbs.iter().rev().fold(BigUint::ZERO, |sum, limb| (sum << 51) + *limb)
    }

    /// Limbs of a factor: random, or extreme values.
    fn any_limbs() -> impl Strategy<Value = [u64; 5]> {
        let most = (1 << 52) - 1;
        let extremes = [0, 1, 18, 19, MASK - 19, MASK - 18, MASK, MASK + 1, MASK + (1 << 17), most - 1, most];
        prop::array::uniform5(prop_oneof![0..=most, prop::sample::select(extremes.to_vec())])
    }

    fn any_lanes() -> impl Strategy<Value = [[u64; 5]; 4]> {
        prop::array::uniform4(any_limbs())
    }

    fn elements(token: Ifma, lanes: &[[u64; 5]; 4]) -> Elements<Simd> {
        Elements::load(token, lanes.each_ref())
    }

    kernel! { fn products(a: &[[u64; 5]; 4], b: &[[u64; 5]; 4], c: &[u64; 5]) -> [[u64; 4]; 4] = multiply; }
    kernel! { fn squares(a: &[[u64; 5]; 4]) -> [[u64; 4]; 4] = square; }
    kernel! { fn differences(a: &[[u64; 5]; 4], b: &[[u64; 5]; 4]) -> [[u64; 4]; 4] = subtract; }
    kernel! { fn inverses(a: &[[u64; 5]; 4]) -> [[u64; 4]; 4] = invert; }

    fn multiply(token: Ifma, a: &[[u64; 5]; 4], b: &[[u64; 5]; 4], c: &[u64; 5]) -> [[u64; 4]; 4] {
        let c = c.map(|limb| Simd::splat(token, limb));
        canonical(
            token,
            &Elements::carried(token, elements(token, a).product(token, &elements(token, b), &c)),
        )
    }

    fn square(token: Ifma, a: &[[u64; 5]; 4]) -> [[u64; 4]; 4] {
        canonical(token, &elements(token, a).squared(token))
    }

    /// Computes sums in the first two lanes and differences in the last two.
    fn subtract(token: Ifma, a: &[[u64; 5]; 4], b: &[[u64; 5]; 4]) -> [[u64; 4]; 4] {
        canonical(token, &Elements::sum::<0b1100>(token, &elements(token, a).0, &elements(token, b).0))
    }

    fn invert(token: Ifma, a: &[[u64; 5]; 4]) -> [[u64; 4]; 4] {
        canonical(token, &elements(token, a).inverted(token))
    }

    fn canonical(token: Ifma, a: &Elements<Simd>) -> [[u64; 4]; 4] {
        let words = a.canonical(token).map(Simd::store);
        [0, 1, 2, 3].map(|lane| words.map(|word| word[lane]))
    }

    /// Whether these words are the canonical form of a number modulo p.
    fn are(words: &[u64; 4], number: &BigUint) -> bool {
        let digits = words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
        BigUint::new(digits) == number % p()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn arithmetic_agrees_with_big_integers(a in any_lanes(), b in any_lanes(), c in any_limbs()) {
            let Ok(token) = Ifma::detect() else { return Ok(()) };
            let products = products(token, &a, &b, &c);
            let squares = squares(token, &a);
            let sums = differences(token, &a, &b);
            let inverses = inverses(token, &a);
            for lane in 0..4 {
                let (a, b) = (value(&a[lane]), value(&b[lane]));
                prop_assert!(are(&products[lane], &(&a * &b + value(&c))));
                prop_assert!(are(&squares[lane], &(&a * &a)));
                let sum = if lane < 2 { &a + b } else { &a + 4u8 * p() - b };
                prop_assert!(are(&sums[lane], &sum));
                prop_assert!(are(&inverses[lane], &a.modpow(&(p() - 2u8), &p())));
            }
        }

        #[test]
        fn limbs_are_the_bytes_without_the_highest_bit(bytes: [u8; 32]) {
            let mut expected = BigUint::from_bytes_le(&bytes);
            expected.set_bit(255, false);
            prop_assert_eq!(value(&limbs(&bytes)), expected);
        }
    }
}
