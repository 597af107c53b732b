//! Multiples of the base point, computed at compile time.

use crate::field25519::{MASK, TWICE_P, limbs};
use crate::lanes::five;

/// The number of eight-bit windows of a scalar, one for each pair of four-bit digits.
pub(super) const WINDOWS: usize = 32;

/// A point (x, y) of the Edwards curve as y - x, y + x, 2 and 2dxy: the first limbs of all four, then the second ones,
/// and so on.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Entry(pub(super) [[u64; 4]; 5]);

/// For each window, 1 to 8 times 256^window times the base point.
pub(super) static TABLE: [[Entry; 8]; WINDOWS] = table();

/// 2d, of the curve -x^2 + y^2 = 1 + d x^2 y^2 (RFC 8032, section 5.1).
pub(super) const TWICE_D: [u64; 5] = sum(&D, &D);

const D: [u64; 5] = element("a3785913ca4deb75abd841414d0a700098e879777940c78c73fe6f2bee6c0352");
const BASE_X: [u64; 5] = element("1ad5258f602d56c9b2a7259560c72c695cdcd6fd31e2a4c0fe536ecdd3366921");
const BASE_Y: [u64; 5] = element("5866666666666666666666666666666666666666666666666666666666666666");
const ONE: [u64; 5] = [1, 0, 0, 0, 0];
const TWO: [u64; 5] = [2, 0, 0, 0, 0];

/// Limbs of 32 little-endian bytes in hexadecimal.
const fn element(hex: &str) -> [u64; 5] {
    let mut bytes = [0; 32];
    let mut at = 0;
    while at < 64 {
        let digit = hex.as_bytes()[at];
        bytes[at / 2] = bytes[at / 2] << 4 | if digit < b'a' { digit - b'0' } else { digit - b'a' + 10 };
        at += 1;
    }
    limbs(&bytes)
}

/// A point in extended coordinates: x = X/Z, y = Y/Z, x y = T/Z.
#[derive(Clone, Copy)]
struct Point {
    x: [u64; 5],
    y: [u64; 5],
    z: [u64; 5],
    t: [u64; 5],
}

const fn table() -> [[Entry; 8]; WINDOWS] {
    let points = multiples();
    // One inversion for all (Montgomery's trick): the inverse of a product, times all factors but one, is the inverse
    // of that factor.
    let mut products = [ONE; 8 * WINDOWS];
    let mut i = 1;
    while i < points.len() {
        products[i] = product(&products[i - 1], &points[i - 1].z);
        i += 1;
    }
    let mut inverse = inverse(&product(&products[i - 1], &points[i - 1].z));
    let mut table = [[Entry([[0; 4]; 5]); 8]; WINDOWS];
    while i > 0 {
        i -= 1;
        table[i / 8][i % 8] = entry(&points[i], &product(&inverse, &products[i]));
        inverse = product(&inverse, &points[i].z);
    }
    table
}

/// The table's points, in table order.
const fn multiples() -> [Point; 8 * WINDOWS] {
    let mut first = Point { x: BASE_X, y: BASE_Y, z: ONE, t: product(&BASE_X, &BASE_Y) };
    let mut points = [first; 8 * WINDOWS];
    let mut i = 0;
    while i < points.len() {
        points[i] = first;
        let mut multiple = 1;
        while multiple < 8 {
            points[i + multiple] = plus(&points[i + multiple - 1], &first);
            multiple += 1;
        }
        i += 8;
        // The first point of the next window is 256 times that of this window: double the last point, 8 times the first
        // one, five times.
        first = points[i - 1];
        let mut doubling = 0;
        while doubling < 5 {
            first = plus(&first, &first);
            doubling += 1;
        }
    }
    points
}

const fn entry(point: &Point, inverse: &[u64; 5]) -> Entry {
    let (x, y) = (product(&point.x, inverse), product(&point.y, inverse));
    let (minus, plus) = (difference(&y, &x), sum(&y, &x));
    let product = product(&TWICE_D, &product(&x, &y));
    Entry(five!(i => [minus[i], plus[i], TWO[i], product[i]]))
}

/// The sum of any two points: the formulas are complete on this curve (Hisil, Wong, Carter and Dawson, 2008, section
/// 3.1).
const fn plus(p: &Point, q: &Point) -> Point {
    let a = product(&difference(&p.y, &p.x), &difference(&q.y, &q.x));
    let b = product(&sum(&p.y, &p.x), &sum(&q.y, &q.x));
    let c = product(&product(&p.t, &TWICE_D), &q.t);
    let z = product(&p.z, &q.z);
    let d = sum(&z, &z);
    let (e, f, g, h) = (difference(&b, &a), difference(&d, &c), sum(&d, &c), sum(&b, &a));
    Point { x: product(&e, &f), y: product(&g, &h), z: product(&f, &g), t: product(&e, &h) }
}

/// a^(p - 2): all bits of the exponent are ones except bits 2 and 4.
const fn inverse(a: &[u64; 5]) -> [u64; 5] {
    let mut power = ONE;
    let mut bit = 255;
    while bit > 0 {
        bit -= 1;
        power = product(&power, &power);
        if bit != 2 && bit != 4 {
            power = product(&power, a);
        }
    }
    power
}

const fn sum(a: &[u64; 5], b: &[u64; 5]) -> [u64; 5] {
    let mut wide = [0; 5];
    let mut i = 0;
    while i < 5 {
        wide[i] = (a[i] + b[i]) as u128;
        i += 1;
    }
    carried(wide)
}

const fn difference(a: &[u64; 5], b: &[u64; 5]) -> [u64; 5] {
    let mut wide = [0; 5];
    let mut i = 0;
    while i < 5 {
        wide[i] = (a[i] + TWICE_P[i] - b[i]) as u128;
        i += 1;
    }
    carried(wide)
}

const fn product(a: &[u64; 5], b: &[u64; 5]) -> [u64; 5] {
    let mut wide = [0; 5];
    let mut i = 0;
    while i < 5 {
        let mut j = 0;
        while j < 5 {
            // 2^255 = 19 modulo p.
            let times = if i + j < 5 { 1 } else { 19 };
            wide[(i + j) % 5] += a[i] as u128 * (times * b[j]) as u128;
            j += 1;
        }
        i += 1;
    }
    carried(wide)
}

/// Carries between limbs. The results are below 2^51, except the second, which is below 2^51 + 2^13.
const fn carried(mut wide: [u128; 5]) -> [u64; 5] {
    let mut i = 0;
    while i < 4 {
        wide[i + 1] += wide[i] >> 51;
        wide[i] &= MASK as u128;
        i += 1;
    }
    wide[0] += 19 * (wide[4] >> 51);
    wide[4] &= MASK as u128;
    wide[1] += wide[0] >> 51;
    wide[0] &= MASK as u128;
    [wide[0] as u64, wide[1] as u64, wide[2] as u64, wide[3] as u64, wide[4] as u64]
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::{BASE_X, BASE_Y, D, TABLE};

    /// Tests every entry with the affine addition law (RFC 8032, section 5.1.4) and big integers.
    #[test]
    fn entries_are_the_base_points_multiples() {
        let base = (number(&BASE_X), number(&BASE_Y));
        let mut first = base;
        for window in &TABLE {
            let mut multiple = first.clone();
            for entry in window {
                let (x, y) = &multiple;
                let limbs = |lane: usize| number(&entry.0.map(|lanes| lanes[lane])) % p();
                assert_eq!(limbs(0), (p() + y - x) % p());
                assert_eq!(limbs(1), (y + x) % p());
                assert_eq!(limbs(2), 2u8.into());
                assert_eq!(limbs(3), 2u8 * number(&D) * x * y % p());
                multiple = sum(&multiple, &first);
            }
            for _ in 0..8 {
                first = sum(&first, &first);
            }
        }
    }

    fn p() -> BigUint {
        (BigUint::from(1u8) << 255) - 19u8
    }

    fn number(limbs: &[u64; 5]) -> BigUint {
        limbs.iter().rev().fold(BigUint::ZERO, |sum, limb| (sum << 51) + *limb)
    }

    fn sum((x1, y1): &(BigUint, BigUint), (x2, y2): &(BigUint, BigUint)) -> (BigUint, BigUint) {
        let product = number(&D) * x1 * x2 * y1 * y2 % p();
        let over = |numerator: BigUint, denominator: BigUint| {
            numerator * denominator.modpow(&(p() - 2u8), &p()) % p()
        };
        (over(x1 * y2 + x2 * y1, 1u8 + &product), over(y1 * y2 + x1 * x2, 1u8 + p() - product))
    }
}
