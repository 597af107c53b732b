//! Four lanes of 64 bits: the operations that the arithmetic is written in. [`Simd`](crate::simd::Simd) runs them; intervals
//! (in tests) prove that no lane overflows, whatever the inputs.

/// A lane is an integer from -2^63 to 2^63 - 1 or from 0 to 2^64 - 1; the arithmetic must never leave either range.
pub(crate) trait Lanes: Copy {
    /// Proof that the processor has the instructions.
    type Token: Copy;
    /// A truth value a lane.
    type Mask: Copy;

    /// The same integer in each lane.
    fn splat(token: Self::Token, x: u64) -> Self;

    fn load(token: Self::Token, lanes: [u64; 4]) -> Self;

    fn add(self, other: Self) -> Self;

    fn sub(self, other: Self) -> Self;

    fn and(self, other: Self) -> Self;

    fn xor(self, other: Self) -> Self;

    /// Divides integers that are not negative by 2^`BITS`, rounding down.
    fn shr<const BITS: i32>(self) -> Self;

    /// Divides by 2^`BITS`, rounding down; keeps the sign.
    fn sar<const BITS: i32>(self) -> Self;

    /// Multiplies by 2^`BITS`.
    fn shl<const BITS: i32>(self) -> Self;

    /// Plus the low 52 bits of the product of `x` and `y`, both from 0 to 2^52 - 1.
    fn madd_lo(self, x: Self, y: Self) -> Self;

    /// Plus the product of `x` and `y` divided by 2^52, both from 0 to 2^52 - 1.
    fn madd_hi(self, x: Self, y: Self) -> Self;

    /// As [`Self::madd_lo`], with the low 52 bits of any `x`.
    fn madd_lo_of_low(self, x: Self, y: Self) -> Self;

    /// As [`Self::madd_hi`], with the low 52 bits of any `x`.
    fn madd_hi_of_low(self, x: Self, y: Self) -> Self;

    /// The lanes that two bits each of `ORDER` number, the lowest bits first.
    fn permute<const ORDER: i32>(self) -> Self;

    /// The lanes that `order`, from 0 to 3 a lane, numbers.
    fn permute_by(self, order: Self) -> Self;

    /// `other` in the lanes of the bits of `LANES`, the lowest bit first; `self` in the others.
    fn blend<const LANES: u8>(self, other: Self) -> Self;

    /// Whether the lanes are equal.
    fn equals(self, other: Self) -> Self::Mask;

    /// Whether the lanes are below the other's; both are not negative.
    fn below(self, other: Self) -> Self::Mask;

    /// `yes` in the lanes where the mask is true, else `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
}

/// The array of five that an expression makes of the numbers 0 to 4: a loop without a closure, since a closure is a function
/// of its own, which lacks the caller's target features.
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
