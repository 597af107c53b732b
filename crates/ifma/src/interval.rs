//! Interval arithmetic in the lanes: one run covers all inputs within given bounds, and panics if a lane could leave
//! its range.

use crate::lanes::Lanes;

/// All integers from `low` to `high`, inclusive: either within -2^63 to 2^63 - 1, or within 0 to 2^64 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: i128,
    pub(crate) high: i128,
}

/// Four intervals, one per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval(pub(crate) [Range; 4]);

const LOW52: i128 = (1 << 52) - 1;

impl Range {
    pub(crate) fn new(low: i128, high: i128) -> Self {
        assert!(low <= high, "no integer from {low} to {high}");
        let signed = -(1 << 63) <= low && high < 1 << 63;
        let unsigned = 0 <= low && high < 1 << 64;
        assert!(signed || unsigned, "a lane may overflow: from {low:#x} to {high:#x}");
        Self { low, high }
    }

    fn only(x: i128) -> Self {
        Self::new(x, x)
    }

    /// The smallest interval that contains both.
    fn hull(self, other: Self) -> Self {
        Self::new(self.low.min(other.low), self.high.max(other.high))
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// The result of selecting by this mask: `zeros` if it is all zeros, `ones` if it is all ones (-1, or 2^64 - 1 in
    /// unsigned lanes), or the hull of the two if it may be either. `None` if this is not such a mask.
    fn as_mask(self, zeros: Range, ones: Range) -> Option<Range> {
        match (self.low, self.high) {
            (0, 0) => Some(zeros),
            (-1, -1) => Some(ones),
            (-1, 0) => Some(zeros.hull(ones)),
            (low, high) if low == high && low == u64::MAX.into() => Some(ones),
            _ => None,
        }
    }

    fn and(self, other: Self) -> Self {
        let zero = Self::only(0);
        if let Some(masked) = self.as_mask(zero, other).or_else(|| other.as_mask(zero, self)) {
            return masked;
        }
        // The result of `and` is at most each non-negative operand.
        let highs = [self, other].into_iter().filter(|range| range.low >= 0).map(|range| range.high);
        Self::new(0, highs.min().expect("one operand of `and` is not negative"))
    }

    fn xor(self, other: Self) -> Self {
        let complement = |range: Self| Self::new(-1 - range.high, -1 - range.low);
        let masked = |mask: Self, range: Self| {
            // Integers of 2^63 or more have no complement in a signed lane.
            if range.high >= 1 << 63 { None } else { mask.as_mask(range, complement(range)) }
        };
        masked(self, other).or_else(|| masked(other, self)).unwrap_or_else(|| {
            assert!(self.low >= 0 && other.low >= 0, "`xor` of an integer that may be negative");
            let bits = 128 - (self.high | other.high).leading_zeros();
            Self::new(0, (1 << bits) - 1)
        })
    }

    fn shr(self, bits: i32) -> Self {
        assert!(self.low >= 0, "`shr` of an integer that may be negative");
        Self::new(self.low >> bits, self.high >> bits)
    }

    fn sar(self, bits: i32) -> Self {
        assert!(self.high < 1 << 63, "`sar` of an integer that may be 2^63 or more");
        Self::new(self.low >> bits, self.high >> bits)
    }

    fn factor(self) -> Self {
        assert!(0 <= self.low && self.high <= LOW52, "a factor may exceed 52 bits: {self:x?}");
        self
    }

    /// The low 52 bits.
    fn low52(self) -> Self {
        if 0 <= self.low && self.high <= LOW52 { self } else { Self::new(0, LOW52) }
    }

    fn plus(self, other: Self) -> Self {
        Self::new(self.low + other.low, self.high + other.high)
    }

    fn plus_low_product(self, x: Self, y: Self) -> Self {
        let (low, high) = (x.low * y.low, x.high * y.high);
        self.plus(if high <= LOW52 { Self::new(low, high) } else { Self::new(0, LOW52) })
    }

    fn plus_high_product(self, x: Self, y: Self) -> Self {
        self.plus(Self::new((x.low * y.low) >> 52, (x.high * y.high) >> 52))
    }

    /// Whether the integers are certainly equal or unequal (`Some`), or undetermined (`None`).
    fn equals(self, other: Self) -> Option<bool> {
        let unsigned = |range: Self| range.high >= 1 << 63;
        let mixed = unsigned(self) && other.low < 0 || self.low < 0 && unsigned(other);
        assert!(!mixed, "comparison of an integer that may be negative with one of 2^63 or more");
        let apart = self.high < other.low || other.high < self.low;
        if apart { Some(false) } else { (self.low == self.high && self == other).then_some(true) }
    }

    fn below(self, other: Self) -> Option<bool> {
        assert!(self.low >= 0 && other.low >= 0, "comparison of an integer that may be negative");
        if self.high < other.low { Some(true) } else { (self.low >= other.high).then_some(false) }
    }
}

impl Interval {
    /// The same interval in each lane.
    pub(crate) fn within(low: i128, high: i128) -> Self {
        Self([Range::new(low, high); 4])
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.0.into_iter().zip(other.0).all(|(outer, inner)| outer.contains(inner))
    }

    fn with(self, other: Self, op: impl Fn(Range, Range) -> Range) -> Self {
        Self([0, 1, 2, 3].map(|lane| op(self.0[lane], other.0[lane])))
    }

    fn with_two(self, x: Self, y: Self, op: impl Fn(Range, Range, Range) -> Range) -> Self {
        Self([0, 1, 2, 3].map(|lane| op(self.0[lane], x.0[lane], y.0[lane])))
    }
}

impl Lanes for Interval {
    type Token = ();
    /// For each lane, the truth value; `None` if it may be either.
    type Mask = [Option<bool>; 4];

    fn splat((): (), x: u64) -> Self {
        Self([Range::only(x.into()); 4])
    }

    fn load((): (), lanes: [u64; 4]) -> Self {
        Self(lanes.map(|lane| Range::only(lane.into())))
    }

    fn add(self, other: Self) -> Self {
        self.with(other, Range::plus)
    }

    fn sub(self, other: Self) -> Self {
        self.with(other, |a, b| Range::new(a.low - b.high, a.high - b.low))
    }

    fn and(self, other: Self) -> Self {
        self.with(other, Range::and)
    }

    fn xor(self, other: Self) -> Self {
        self.with(other, Range::xor)
    }

    fn shr<const BITS: i32>(self) -> Self {
        Self(self.0.map(|range| range.shr(BITS)))
    }

    fn sar<const BITS: i32>(self) -> Self {
        Self(self.0.map(|range| range.sar(BITS)))
    }

    fn shl<const BITS: i32>(self) -> Self {
        Self(self.0.map(|range| Range::new(range.low << BITS, range.high << BITS)))
    }

    fn madd_lo(self, x: Self, y: Self) -> Self {
        self.with_two(x, y, |z, x, y| z.plus_low_product(x.factor(), y.factor()))
    }

    fn madd_hi(self, x: Self, y: Self) -> Self {
        self.with_two(x, y, |z, x, y| z.plus_high_product(x.factor(), y.factor()))
    }

    fn madd_lo_of_low(self, x: Self, y: Self) -> Self {
        self.with_two(x, y, |z, x, y| z.plus_low_product(x.low52(), y.factor()))
    }

    fn madd_hi_of_low(self, x: Self, y: Self) -> Self {
        self.with_two(x, y, |z, x, y| z.plus_high_product(x.low52(), y.factor()))
    }

    fn permute<const ORDER: i32>(self) -> Self {
        Self([0, 2, 4, 6].map(|bits| self.0[(ORDER >> bits & 3) as usize]))
    }

    fn permute_by(self, order: Self) -> Self {
        Self(order.0.map(|at| {
            assert!(0 <= at.low && at.high <= 3, "a lane's number may exceed 3: {at:?}");
            let lanes = &self.0[at.low as usize..=at.high as usize];
            lanes.iter().copied().reduce(Range::hull).expect("a range has an integer")
        }))
    }

    fn blend<const LANES: u8>(self, other: Self) -> Self {
        Self([0, 1, 2, 3].map(|lane| if LANES >> lane & 1 == 1 { other.0[lane] } else { self.0[lane] }))
    }

    fn equals(self, other: Self) -> Self::Mask {
        [0, 1, 2, 3].map(|lane| self.0[lane].equals(other.0[lane]))
    }

    fn below(self, other: Self) -> Self::Mask {
        [0, 1, 2, 3].map(|lane| self.0[lane].below(other.0[lane]))
    }

    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self {
        Self([0, 1, 2, 3].map(|lane| match mask[lane] {
            Some(true) => yes.0[lane],
            Some(false) => no.0[lane],
            None => yes.0[lane].hull(no.0[lane]),
        }))
    }
}

/// Tests that for lanes within given intervals, the processor's results lie within the intervals that this module
/// computes.
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Interval, Range};
    use crate::Ifma;
    use crate::lanes::Lanes;
    use crate::simd::Simd;

    /// Intervals, and a lane value within each.
    #[derive(Clone, Copy, Debug)]
    struct Sample {
        range: Range,
        lane: i128,
    }

    /// A sample with bounds of at most `bits` bits, negative ones only if `signed`.
    fn sample(bits: u32, signed: bool) -> impl Strategy<Value = Sample> {
        let bound = (any::<u64>(), 0..bits).prop_map(move |(x, shift)| i128::from(x >> (64 - bits + shift)));
        (bound.clone(), bound.clone(), bound, any::<bool>()).prop_map(move |(a, b, c, negative)| {
            let sign = if signed && negative { -1 } else { 1 };
            let mut three = [sign * a, b, c];
            three.sort_unstable();
            Sample { range: Range::new(three[0], three[2]), lane: three[1] }
        })
    }

    fn samples(bits: u32, signed: bool) -> impl Strategy<Value = [Sample; 4]> {
        prop::array::uniform4(sample(bits, signed))
    }

    fn interval(samples: &[Sample; 4]) -> Interval {
        Interval(samples.map(|sample| sample.range))
    }

    fn simd(token: Ifma, samples: &[Sample; 4]) -> Simd {
        Simd::load(token, samples.map(|sample| sample.lane as u64))
    }

    #[track_caller]
    fn assert_within(lanes: Simd, interval: Interval) {
        for (lane, range) in lanes.store().into_iter().zip(interval.0) {
            let readings = [i128::from(lane), i128::from(lane.cast_signed())];
            assert!(readings.iter().any(|x| range.low <= *x && *x <= range.high), "{lane:#x} in {range:x?}");
        }
    }

    fn assert_mask(lanes: Simd, mask: [Option<bool>; 4]) {
        for (lane, truth) in lanes.store().into_iter().zip(mask) {
            assert!(truth.is_none_or(|truth| truth == (lane == 1)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn sums_and_masks_are_within(a in samples(61, true), b in samples(61, true), c in samples(61, false)) {
            let Ok(token) = Ifma::detect() else { return Ok(()) };
            let (x, y, z) = (simd(token, &a), simd(token, &b), simd(token, &c));
            let (i, j, k) = (interval(&a), interval(&b), interval(&c));
            assert_within(x.add(y), i.add(j));
            assert_within(x.sub(y), i.sub(j));
            assert_within(x.sar::<52>(), i.sar::<52>());
            assert_within(z.shr::<13>(), k.shr::<13>());
            assert_within(x.shl::<2>(), i.shl::<2>());
            assert_within(x.and(z), i.and(k));
            assert_within(z.xor(z.shr::<3>()), k.xor(k.shr::<3>()));
            for mask in [0, u64::MAX] {
                let (simd, interval) = (Simd::splat(token, mask), Interval::splat((), mask));
                assert_within(x.xor(simd), i.xor(interval));
                assert_within(x.and(simd), i.and(interval));
            }
            // The signs, as masks that the interval leaves undetermined.
            assert_within(y.xor(x.sar::<63>()), j.xor(i.sar::<63>()));
            assert_within(y.and(x.sar::<63>()), j.and(i.sar::<63>()));
        }

        #[test]
        fn products_are_within(a in samples(60, true), b in samples(52, false), c in samples(52, false), d in samples(64, false)) {
            let Ok(token) = Ifma::detect() else { return Ok(()) };
            let (w, x, y, z) = (simd(token, &a), simd(token, &b), simd(token, &c), simd(token, &d));
            let (h, i, j, k) = (interval(&a), interval(&b), interval(&c), interval(&d));
            assert_within(w.madd_lo(x, y), h.madd_lo(i, j));
            assert_within(w.madd_hi(x, y), h.madd_hi(i, j));
            assert_within(w.madd_lo_of_low(z, y), h.madd_lo_of_low(k, j));
            assert_within(w.madd_hi_of_low(z, y), h.madd_hi_of_low(k, j));
        }

        #[test]
        fn choices_are_within(a in samples(64, false), b in samples(64, false), order in samples(2, false)) {
            let Ok(token) = Ifma::detect() else { return Ok(()) };
            let (x, y) = (simd(token, &a), simd(token, &b));
            let (i, j) = (interval(&a), interval(&b));
            assert_within(x.permute::<0b01_11_00_10>(), i.permute::<0b01_11_00_10>());
            assert_within(x.permute_by(simd(token, &order)), i.permute_by(interval(&order)));
            assert_within(x.blend::<0b0110>(y), i.blend::<0b0110>(j));
            let (below, equal) = (i.below(j), i.equals(j));
            assert_within(Simd::select(x.below(y), x, y), Interval::select(below, i, j));
            assert_within(Simd::select(x.equals(y), x, y), Interval::select(equal, i, j));
            let [zero, one] = [0, 1].map(|bit| Simd::splat(token, bit));
            assert_mask(Simd::select(x.below(y), one, zero), below);
            assert_mask(Simd::select(x.equals(y), one, zero), equal);
        }
    }

    /// The proofs rely on a panic when an interval leaves both ranges of a lane.
    #[test]
    fn overflows_panic() {
        fn panics<T>(run: fn() -> T) {
            assert!(std::panic::catch_unwind(run).is_err());
        }
        let zero = || Interval::splat((), 0);
        panics(|| Interval::within(0, u64::MAX.into()).add(Interval::splat((), 1)));
        panics(|| Interval::within(0, 1).sub(Interval::within(0, u64::MAX.into())));
        panics(|| Interval::within(0, 1 << 13).shl::<51>());
        panics(|| Interval::within(-1, 1).shr::<1>());
        panics(|| Interval::within(0, 1 << 63).sar::<1>());
        panics(|| Interval::splat((), 0).madd_lo(Interval::within(0, 1 << 52), Interval::splat((), 1)));
        panics(|| Interval::splat((), 0).madd_hi(Interval::splat((), 1), Interval::within(-1, 1)));
        panics(|| Interval::within(0, 1).permute_by(Interval::within(0, 4)));
        panics(|| Interval::within(-1, 1).below(Interval::within(0, 1)));
        panics(|| Interval::within(-1, 1).equals(Interval::within(0, u64::MAX.into())));
        // The largest values that stay in range.
        let (factor, most) = (Interval::within(0, (1 << 52) - 1), Interval::within(0, u64::MAX.into()));
        assert_eq!(most.sub(zero()), most);
        assert_eq!(zero().madd_lo(factor, factor), factor);
        assert_eq!(
            Interval::within(0, i64::MAX.into()).add(Interval::splat((), 1 << 63)).0[0].high,
            u64::MAX.into()
        );
    }
}
