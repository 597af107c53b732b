//! Four lanes of 64 bits: the operations used by the arithmetic. [`Simd`](crate::simd::Simd) executes them; intervals
//! (in tests) prove that no lane overflows for any input.

/// A lane is an integer from -2^63 to 2^63 - 1, or from 0 to 2^64 - 1; the arithmetic must stay within one of these
/// ranges.
pub(crate) trait Lanes: Copy {
    /// Proof that the processor has the instructions.
    type Token: Copy;
    /// A truth value per lane.
    type Mask: Copy;

    /// The same integer in each lane.
    fn splat(token: Self::Token, x: u64) -> Self;

    fn load(token: Self::Token, lanes: [u64; 4]) -> Self;

    fn add(self, other: Self) -> Self;

    fn sub(self, other: Self) -> Self;

    fn and(self, other: Self) -> Self;

    fn xor(self, other: Self) -> Self;

    /// Divides non-negative integers by 2^`BITS`, rounding down.
    fn shr<const BITS: i32>(self) -> Self;

    /// Divides signed integers by 2^`BITS`, rounding down.
    fn sar<const BITS: i32>(self) -> Self;

    /// Multiplies by 2^`BITS`.
    fn shl<const BITS: i32>(self) -> Self;

    /// Adds the low 52 bits of the product of `x` and `y`, both from 0 to 2^52 - 1.
    fn madd_lo(self, x: Self, y: Self) -> Self;

    /// Adds the product of `x` and `y` divided by 2^52, both from 0 to 2^52 - 1.
    fn madd_hi(self, x: Self, y: Self) -> Self;

    /// As [`Self::madd_lo`], but uses the low 52 bits of an arbitrary `x`.
    fn madd_lo_of_low(self, x: Self, y: Self) -> Self;

    /// As [`Self::madd_hi`], but uses the low 52 bits of an arbitrary `x`.
    fn madd_hi_of_low(self, x: Self, y: Self) -> Self;

    /// Permutes lanes: each two bits of `ORDER`, lowest first, give the source of a lane.
    fn permute<const ORDER: i32>(self) -> Self;

    /// Permutes lanes: each lane of `order`, from 0 to 3, gives the source of a lane.
    fn permute_by(self, order: Self) -> Self;

    /// `other` in the lanes selected by the bits of `LANES`, lowest first; `self` in the others.
    fn blend<const LANES: u8>(self, other: Self) -> Self;

    /// For each lane, whether it equals the other's.
    fn equals(self, other: Self) -> Self::Mask;

    /// Whether each lane is less than the other's; both must be non-negative.
    fn below(self, other: Self) -> Self::Mask;

    /// `yes` in the lanes where the mask is true, else `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
}

/// Builds an array of five from an expression for the indices 0 to 4. A loop rather than a closure: a closure is a
/// separate function without the caller's target features.
macro_rules! five {
    ($i:ident => $limb:expr) => {
        [
            {
                let $i = 0;
                $limb
            },
            {
                let $i = 1;
                $limb
            },
            {
                let $i = 2;
                $limb
            },
            {
                let $i = 3;
                $limb
            },
            {
                let $i = 4;
                $limb
            },
        ]
    };
}
pub(crate) use five;
