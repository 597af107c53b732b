//! Inverses modulo p and modulo n together, by division steps in constant time.
//!
//! D. J. Bernstein and B.-Y. Yang, "Fast constant-time gcd computation and modular inversion", 2019, with delta
//! starting at 1/2, as described by P. Wuille for libsecp256k1 ("The safegcd implementation in libsecp256k1 explained",
//! 2021). `proofs/inverse.py` proves the number of steps and the bounds of all integers.

use core::hint::black_box;

use super::modular::{N, P};
use super::words::Words;

const LOW: i64 = (1 << 62) - 1;

/// Division steps per run on packed integers.
const STEPS: usize = 18;
/// Runs on packed integers per transition matrix: 54 division steps.
const PARTS: usize = 3;
/// Division steps per iteration of the unrolled loop.
const UNROLLED: usize = 6;
/// Transition matrices per inversion: 594 division steps. For any f below 2^256, 590 steps reduce any g from 0 to f to
/// zero.
const MATRICES: usize = 11;

/// Limbs of 62 bits, least significant first; only the last may be negative.
type Limbs = [i64; 5];

struct Modulus {
    limbs: Limbs,
    /// 1 / modulus, modulo 2^62.
    inverse: u64,
}

const MODULI: [Modulus; 2] = [Modulus::new(&P.words), Modulus::new(&N.words)];

impl Modulus {
    const fn new(words: &Words) -> Self {
        // Newton's iteration doubles the number of correct bits; an odd number is its own inverse in the lowest three.
        let (mut inverse, mut i) = (words[0], 0);
        while i < 5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(words[0].wrapping_mul(inverse)));
            i += 1;
        }
        Self { limbs: limbs(words), inverse: inverse & LOW.cast_unsigned() }
    }
}

const fn limbs(w: &Words) -> Limbs {
    [
        w[0].cast_signed() & LOW,
        (w[0] >> 62 | w[1] << 2).cast_signed() & LOW,
        (w[1] >> 60 | w[2] << 4).cast_signed() & LOW,
        (w[2] >> 58 | w[3] << 6).cast_signed() & LOW,
        (w[3] >> 56).cast_signed(),
    ]
}

/// u and v in the first row, q and r in the second: f becomes (u f + v g) / 2^steps, and g (q f + r g) / 2^steps.
type Matrix = [[i64; 2]; 2];

/// f and g start as the modulus and the number x, d and e as 0 and 1. Always f = d x and g = e x modulo the modulus.
struct Gcd {
    f: Limbs,
    g: Limbs,
    d: Limbs,
    e: Limbs,
}

impl Gcd {
    #[inline(always)]
    fn new(number: &Words, modulus: &Modulus) -> Self {
        Self { f: modulus.limbs, g: limbs(number), d: [0; 5], e: [1, 0, 0, 0, 0] }
    }

    #[inline(always)]
    fn apply(&mut self, [first, second]: &Matrix, modulus: &Modulus, last: bool) {
        let Self { f, g, d, e } = *self;
        self.f = combined(&f, &g, *first);
        self.d = combined_modulo(&d, &e, *first, modulus);
        // After the last matrix g is zero, and e is not needed.
        if !last {
            self.g = combined(&f, &g, *second);
            self.e = combined_modulo(&d, &e, *second, modulus);
        }
    }

    /// d, or -d if f is -1, reduced to the range from 0 to the modulus. d itself is between -2 times the modulus and
    /// the modulus.
    #[inline(always)]
    fn inverse(&self, modulus: &Modulus) -> Words {
        // Hide the masks from the compiler, which would turn them into branches.
        let sign = black_box(self.f[4] >> 63);
        let mut l = carried(&self.d, black_box(self.d[4] >> 63), modulus);
        for limb in &mut l {
            *limb = (*limb ^ sign) - sign;
        }
        l = carried(&l, 0, modulus);
        l = carried(&l, black_box(l[4] >> 63), modulus);
        let l = [0, 1, 2, 3, 4].map(|i| l[i].cast_unsigned());
        [l[0] | l[1] << 62, l[1] >> 2 | l[2] << 60, l[2] >> 4 | l[3] << 58, l[3] >> 6 | l[4] << 56]
    }
}

/// The inverse modulo p of a number up to p, and the inverse modulo n of a number below n; the inverse of zero is zero.
///
/// Within an inversion each step depends on the previous one, so the two inversions alternate: the processor executes
/// their steps in parallel. The function is not inlined into code with AVX-512: the compiler would put the two
/// inversions into one vector, and on some processors dependent vector operations take twice as long.
#[inline(never)]
pub(super) fn inverses(of_p: &Words, of_n: &Words) -> [Words; 2] {
    let mut first = Gcd::new(of_p, &MODULI[0]);
    let mut second = Gcd::new(of_n, &MODULI[1]);
    let mut zeta = [-1; 2];
    for matrix in 1..=MATRICES {
        let [one, two] = division_steps(&mut zeta, [first.f[0], second.f[0]], [first.g[0], second.g[0]]);
        first.apply(&one, &MODULI[0], matrix == MATRICES);
        second.apply(&two, &MODULI[1], matrix == MATRICES);
    }
    [first.inverse(&MODULI[0]), second.inverse(&MODULI[1])]
}

/// Makes 54 division steps on the low 62 bits of two pairs of f and g. Returns their matrices times 2^8, so that
/// applying them divides by 2^62. zeta is -(delta + 1/2).
#[inline(always)]
fn division_steps(zeta: &mut [i64; 2], f: [i64; 2], g: [i64; 2]) -> [Matrix; 2] {
    let (mut low, mut matrices) = ([[f[0], g[0]], [f[1], g[1]]], [[[0; 2]; 2]; 2]);
    for part in 0..PARTS {
        let parts = packed_steps(zeta, low);
        for i in 0..2 {
            matrices[i] = if part == 0 { scaled(&parts[i]) } else { product(&parts[i], &matrices[i]) };
            low[i] = [shifted(parts[i][0], low[i]), shifted(parts[i][1], low[i])];
        }
    }
    matrices
}

/// The first part's matrix times 2^8.
#[inline(always)]
fn scaled([[u, v], [q, r]]: &Matrix) -> Matrix {
    const BITS: usize = 62 - STEPS * PARTS;
    [[u << BITS, v << BITS], [q << BITS, r << BITS]]
}

/// The low bits of (u f + v g) / 2^18. Each run leaves 18 fewer correct bits.
#[inline(always)]
fn shifted([u, v]: [i64; 2], [f, g]: [i64; 2]) -> i64 {
    u.wrapping_mul(f).wrapping_add(v.wrapping_mul(g)) >> STEPS
}

#[inline(always)]
fn product([[a, b], [c, d]]: &Matrix, [[u, v], [q, r]]: &Matrix) -> Matrix {
    [[a * u + b * q, a * v + b * r], [c * u + d * q, c * v + d * r]]
}

/// The bit position of a matrix's first column in a packed integer before the halvings.
const FIRST: usize = 2 * STEPS + 2;
/// The bit position of the second column.
const SECOND: usize = 3 * STEPS + 4;

/// Makes 18 division steps on the low 18 bits of two pairs of f and g.
///
/// f and g carry the rows of their matrix, which starts as the identity: f starts as f + 2^38, and g as g + 2^58. After
/// 18 steps, f is (u f + v g) / 2^18 of these start values, and g is (q f + r g) / 2^18, so the columns are at 2^20 and
/// 2^40.
#[inline(always)]
fn packed_steps(zeta: &mut [i64; 2], low: [[i64; 2]; 2]) -> [Matrix; 2] {
    const LOW: i64 = (1 << STEPS) - 1;

    let mut f = [(low[0][0] & LOW) + (1 << FIRST), (low[1][0] & LOW) + (1 << FIRST)];
    let mut g = [(low[0][1] & LOW) + (1 << SECOND), (low[1][1] & LOW) + (1 << SECOND)];
    for _ in 0..STEPS / UNROLLED {
        for _ in 0..UNROLLED {
            for i in 0..2 {
                step(&mut zeta[i], &mut f[i], &mut g[i]);
            }
        }
    }
    [[unpacked(f[0]), unpacked(g[0])], [unpacked(f[1]), unpacked(g[1])]]
}

/// Adds f to an odd g; if delta is positive, subtracts f instead, and f becomes the old g. The operations are ordered
/// to keep dependency chains short.
#[inline(always)]
fn step(zeta: &mut i64, f: &mut i64, g: &mut i64) {
    let swap = *zeta >> 63;
    let odd = *g << 63 >> 63;
    let both = swap & odd;
    let signed = (*f ^ swap) - swap;
    *f ^= (*f ^ *g) & both;
    *g = (*g + (signed & odd)) >> 1;
    *zeta = (*zeta ^ both) - 1;
}

/// The matrix row in a packed integer after its steps. Rounds, since the part below a column may be negative.
#[inline(always)]
fn unpacked(packed: i64) -> [i64; 2] {
    const PLACE: usize = FIRST - STEPS;
    const WIDTH: usize = SECOND - FIRST;

    let second = (packed + (1 << (PLACE + WIDTH - 1))) >> (PLACE + WIDTH);
    let first = (packed - (second << (PLACE + WIDTH)) + (1 << (PLACE - 1))) >> PLACE;
    [first, second]
}

/// Adds the modulus if the mask is set, and carries.
#[inline(always)]
fn carried(limbs: &Limbs, mask: i64, modulus: &Modulus) -> Limbs {
    let (mut out, mut carry) = ([0; 5], 0);
    for i in 0..4 {
        carry += limbs[i] + (modulus.limbs[i] & mask);
        out[i] = carry & LOW;
        carry >>= 62;
    }
    out[4] = carry + limbs[4] + (modulus.limbs[4] & mask);
    out
}

/// (u f + v g) / 2^62, exactly.
#[inline(always)]
fn combined(f: &Limbs, g: &Limbs, [u, v]: [i64; 2]) -> Limbs {
    let mut out = [0; 5];
    let mut sum = 0i128;
    for i in 0..5 {
        sum += i128::from(u) * i128::from(f[i]) + i128::from(v) * i128::from(g[i]);
        if i > 0 {
            out[i - 1] = low(sum);
        }
        sum >>= 62;
    }
    out[4] = whole(sum);
    out
}

/// (u d + v e) / 2^62 modulo the modulus. Inputs and output are between -2 times the modulus and the modulus.
#[inline(always)]
fn combined_modulo(d: &Limbs, e: &Limbs, [u, v]: [i64; 2], modulus: &Modulus) -> Limbs {
    let mut out = [0; 5];
    // Add the modulus for each negative operand, and subtract the multiple that makes the lowest limb zero.
    let mut times = (u & d[4] >> 63) + (v & e[4] >> 63);
    let mut sum = i128::from(u) * i128::from(d[0]) + i128::from(v) * i128::from(e[0]);
    let lowest = low(sum).wrapping_add(times.wrapping_mul(modulus.limbs[0])).cast_unsigned();
    times -= lowest.wrapping_mul(modulus.inverse).cast_signed() & LOW;
    sum += i128::from(times) * i128::from(modulus.limbs[0]);
    for i in 1..5 {
        sum >>= 62;
        sum += i128::from(u) * i128::from(d[i]) + i128::from(v) * i128::from(e[i]);
        sum += i128::from(times) * i128::from(modulus.limbs[i]);
        out[i - 1] = low(sum);
    }
    out[4] = whole(sum >> 62);
    out
}

/// Returns the low 62 bits of `sum`.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
fn low(sum: i128) -> i64 {
    sum as i64 & LOW
}

/// Returns `sum`, which must fit into a word.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
fn whole(sum: i128) -> i64 {
    debug_assert!(i64::try_from(sum).is_ok());
    sum as i64
}
