//! Arithmetic modulo an odd number between 2^255 and 2^256, one number at a time.
//!
//! Signing uses this arithmetic modulo the order n, and the build script modulo the prime p, for the table of base
//! multiples.

use super::words::{Words, ZERO, minus, plus, product_plus, selected};

/// A modulus with the constants for Montgomery multiplication.
#[derive(Clone, Copy)]
pub(super) struct Modulus {
    pub(super) words: Words,
    /// -1 / modulus, modulo 2^64.
    inverse: u64,
    /// 2^256 modulo the modulus.
    pub(super) one: Words,
    /// 2^512 modulo the modulus.
    pub(super) square: Words,
}

/// The prime 2^256 - 2^224 + 2^192 + 2^96 - 1 of P-256's field (FIPS 186-5; SP 800-186, section 3.2.1.3).
pub(super) const P: Modulus = Modulus::new([u64::MAX, 0xffff_ffff, 0, 0xffff_ffff_0000_0001]);

/// The order of P-256, a prime.
pub(super) const N: Modulus =
    Modulus::new([0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, u64::MAX, 0xffff_ffff_0000_0000]);

/// The coefficient b of P-256's curve, y^2 = x^3 - 3 x + b (SP 800-186, section 3.2.1.3).
pub(super) const B: Words =
    [0x3bce_3c3e_27d2_604b, 0x651d_06b0_cc53_b0f6, 0xb3eb_bd55_7698_86bc, 0x5ac6_35d8_aa3a_93e7];

impl Modulus {
    const fn new(words: Words) -> Self {
        // Newton's iteration doubles the number of correct bits; an odd number is its own inverse in the lowest three.
        let (mut inverse, mut i) = (words[0], 0);
        while i < 5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(words[0].wrapping_mul(inverse)));
            i += 1;
        }
        // Since the modulus exceeds 2^255, 2^256 minus the modulus equals 2^256 modulo the modulus.
        let one = minus(&ZERO, &words).0;
        let mut modulus = Self { words, inverse: inverse.wrapping_neg(), one, square: one };
        let mut i = 0;
        while i < 256 {
            modulus.square = modulus.sum(&modulus.square, &modulus.square);
            i += 1;
        }
        modulus
    }

    /// Reduces any number below 2^256.
    #[inline(always)]
    pub(super) const fn reduced(&self, a: &Words) -> Words {
        self.less(a, 0)
    }

    /// Reduces a + 2^256 carry, which must be less than twice the modulus.
    #[inline(always)]
    const fn less(&self, a: &Words, carry: u64) -> Words {
        let (less, borrow) = minus(a, &self.words);
        selected(borrow & !carry, a, &less)
    }

    /// a + b for numbers below the modulus.
    #[inline(always)]
    pub(super) const fn sum(&self, a: &Words, b: &Words) -> Words {
        let (sum, carry) = plus(a, b);
        self.less(&sum, carry)
    }

    /// a - b for numbers below the modulus.
    pub(super) const fn difference(&self, a: &Words, b: &Words) -> Words {
        let (difference, borrow) = minus(a, b);
        let (more, _) = plus(&difference, &self.words);
        selected(borrow, &more, &difference)
    }

    /// a b / 2^256, for any a below 2^256 and b below the modulus m (P. Montgomery, 1985).
    ///
    /// Before the last subtraction the result is (a b + q m) / 2^256 with q below 2^256, and so less than 2 m.
    #[inline(always)]
    pub(super) const fn product(&self, a: &Words, b: &Words) -> Words {
        let mut t = [0u64; 6];
        let mut i = 0;
        while i < 4 {
            let (mut carry, mut j) = (0, 0);
            while j < 4 {
                (t[j], carry) = product_plus(a[i], b[j], t[j], carry);
                j += 1;
            }
            let (sum, over) = t[4].overflowing_add(carry);
            (t[4], t[5]) = (sum, over as u64);
            let times = t[0].wrapping_mul(self.inverse);
            (_, carry) = product_plus(times, self.words[0], t[0], 0);
            j = 1;
            while j < 4 {
                (t[j - 1], carry) = product_plus(times, self.words[j], t[j], carry);
                j += 1;
            }
            let (sum, over) = t[4].overflowing_add(carry);
            (t[3], t[4]) = (sum, t[5] + over as u64);
            i += 1;
        }
        self.less(&[t[0], t[1], t[2], t[3]], t[4])
    }

    /// high 2^256 + low, for any two numbers below 2^256.
    #[inline(always)]
    pub(super) const fn wide(&self, high: &Words, low: &Words) -> Words {
        self.sum(&self.product(high, &self.square), &self.reduced(low))
    }

    /// a 2^256, for any a below 2^256: converts a to Montgomery form.
    #[inline(always)]
    pub(super) const fn scaled(&self, a: &Words) -> Words {
        self.product(a, &self.square)
    }

    /// 1 / a for a prime modulus; a and the result are in Montgomery form. The time depends only on the modulus.
    pub(super) const fn inverse(&self, a: &Words) -> Words {
        // By Fermat's little theorem, the inverse is a to the power of the modulus minus 2. The lowest word is at least
        // 2, so there is no borrow.
        let exponent = [self.words[0] - 2, self.words[1], self.words[2], self.words[3]];
        let (mut result, mut bit) = (self.one, 256);
        while bit > 0 {
            bit -= 1;
            result = self.product(&result, &result);
            if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
                result = self.product(&result, a);
            }
        }
        result
    }
}

/// Converts a from Montgomery form (a 2^256) to the number of an element (a 2^260).
pub(super) const fn to_element(a: &Words) -> Words {
    const SIXTEEN: Words = P.scaled(&[16, 0, 0, 0]);
    P.product(a, &SIXTEEN)
}
