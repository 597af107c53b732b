//! The multiples of the base point for the table. The build script computes them.

use super::modular::{B, P, to_element};
use super::words::{Words, ZERO, limbs};

/// The number of five-bit windows per lane; four lanes have 52.
pub(super) const STEPS: usize = 13;
/// The number of entries per window: the odd multiples 1, 3, .. 31.
pub(super) const ENTRIES: usize = 16;

const WINDOWS: usize = 4 * STEPS;
const POINTS: usize = WINDOWS * ENTRIES;

/// x and y of a point per lane, as limbs of elements.
pub(super) type Entry = [[[u64; 4]; 5]; 2];

/// The base point (SP 800-186, section 3.2.1.3).
pub(super) const BASE: [Words; 2] = [
    [0xf4a1_3945_d898_c296, 0x7703_7d81_2deb_33a0, 0xf8bc_e6e5_63a4_40f2, 0x6b17_d1f2_e12c_4247],
    [0xcbb6_4068_37bf_51f5, 0x2bce_3357_6b31_5ece, 0x8ee7_eb4a_7c0f_9e16, 0x4fe3_42e2_fe1a_7f9b],
];

/// (x z, y z, z), in Montgomery form for 2^256.
type Point = [Words; 3];

/// For each step, 1, 3, .. 31 times 32^step times the base point in the first lane; in the other lanes, 2^65, 2^130 and
/// 2^195 times that point.
pub(super) fn table() -> [[Entry; ENTRIES]; STEPS] {
    let points = multiples();
    let inverses = inverses(&points);
    let mut table = [[[[[0; 4]; 5]; 2]; ENTRIES]; STEPS];
    let mut i = 0;
    while i < POINTS {
        let (window, entry) = (i / ENTRIES, i % ENTRIES);
        let (lane, step) = (window / STEPS, window % STEPS);
        let mut coordinate = 0;
        while coordinate < 2 {
            let value = P.product(&points[i][coordinate], &inverses[i]);
            let limbs = limbs(&to_element(&value));
            let mut limb = 0;
            while limb < 5 {
                table[step][entry][coordinate][limb][lane] = limbs[limb];
                limb += 1;
            }
            coordinate += 1;
        }
        i += 1;
    }
    table
}

/// For each window, the odd multiples 1, 3, .. 31 of 32^window times the base point.
fn multiples() -> [Point; POINTS] {
    let mut points = [[ZERO; 3]; POINTS];
    let mut base = [P.scaled(&BASE[0]), P.scaled(&BASE[1]), P.one];
    let mut window = 0;
    while window < WINDOWS {
        let double = sum(&base, &base);
        points[window * ENTRIES] = base;
        let mut entry = 1;
        while entry < ENTRIES {
            points[window * ENTRIES + entry] = sum(&points[window * ENTRIES + entry - 1], &double);
            entry += 1;
        }
        // The sum of 31 times the point and the point itself.
        base = sum(&points[window * ENTRIES + ENTRIES - 1], &base);
        window += 1;
    }
    points
}

/// 1 / z of all points with one inversion (P. Montgomery, 1987).
fn inverses(points: &[Point; POINTS]) -> [Words; POINTS] {
    let mut inverses = [ZERO; POINTS];
    let mut product = P.one;
    let mut i = 0;
    while i < POINTS {
        inverses[i] = product;
        product = P.product(&product, &points[i][2]);
        i += 1;
    }
    let mut inverse = P.inverse(&product);
    while i > 0 {
        i -= 1;
        inverses[i] = P.product(&inverses[i], &inverse);
        inverse = P.product(&inverse, &points[i][2]);
    }
    inverses
}

/// The sum of any two points (Renes, Costello and Batina, 2016, algorithm 4).
fn sum([x1, y1, z1]: &Point, [x2, y2, z2]: &Point) -> Point {
    const B_SCALED: Words = P.scaled(&B);
    let (xx, yy, zz) = (P.product(x1, x2), P.product(y1, y2), P.product(z1, z2));
    let xy = P.difference(&P.product(&P.sum(x1, y1), &P.sum(x2, y2)), &P.sum(&xx, &yy));
    let yz = P.difference(&P.product(&P.sum(y1, z1), &P.sum(y2, z2)), &P.sum(&yy, &zz));
    let zx = P.difference(&P.product(&P.sum(z1, x1), &P.sum(z2, x2)), &P.sum(&zz, &xx));
    let s = thrice(&P.difference(&zx, &P.product(&B_SCALED, &zz)));
    let (m, p) = (P.difference(&yy, &s), P.sum(&yy, &s));
    let w = thrice(&P.difference(&P.difference(&P.product(&B_SCALED, &zx), &thrice(&zz)), &xx));
    let v = thrice(&P.difference(&xx, &zz));
    [
        P.difference(&P.product(&xy, &p), &P.product(&yz, &w)),
        P.sum(&P.product(&p, &m), &P.product(&v, &w)),
        P.sum(&P.product(&yz, &m), &P.product(&xy, &v)),
    ]
}

fn thrice(a: &Words) -> Words {
    P.sum(&P.sum(a, a), a)
}
