//! Proofs that no limb overflows, for any scalar and any point: the arithmetic runs over intervals, which panic if a
//! limb could overflow. Loops follow by induction: each step accepts limbs within certain bounds and returns limbs
//! within the same bounds.

use super::ladder::{first, second, third};
use super::multiple::{cached, chosen, plus};
use super::table::TABLE;
use super::{ONE, ZERO, crossed, public_fraction};
use crate::field25519::{Elements, MASK};
use crate::interval::Interval;
use crate::lanes::Lanes;

/// The limbs of points between steps: products before carries.
fn wide() -> [Interval; 5] {
    [Interval::within(0, (1 << 61) - 1); 5]
}

/// The limbs of any 255 bits, such as a peer's public key.
fn from_bytes() -> [Interval; 5] {
    [Interval::within(0, MASK.into()); 5]
}

#[track_caller]
fn assert_within(limbs: &[Interval; 5], bounds: &[Interval; 5]) {
    for (limb, bound) in limbs.iter().zip(bounds) {
        assert!(bound.contains(*limb), "{limb:x?} exceeds {bound:x?}");
    }
}

#[track_caller]
fn assert_reduced(elements: &Elements<Interval>) {
    assert_within(&elements.0, &[Interval::within(0, (1 << 51) + (1 << 17) - 1); 5]);
}

#[test]
fn the_ladder_keeps_its_points_within_bounds() {
    let u = from_bytes();
    let one = Elements::<Interval>::load((), [&ONE; 4]);
    let base = Elements([0, 1, 2, 3, 4].map(|i| one.0[i].blend::<0b1000>(u[i])));
    // The points start as limbs of bytes, and each step returns the next ones.
    assert_within(&u, &wide());
    let (n, q) = second((), &first((), &wide(), Interval::within(0, 2)));
    assert_within(&third((), &n, &q, &base), &wide());
    assert_reduced(&Elements::carried((), wide()));
}

#[test]
fn additions_of_the_tables_points_keep_sums_within_bounds() {
    assert_within(&Elements::load((), [&ZERO, &ONE, &ONE, &ZERO]).0, &wide());
    for multiples in &TABLE {
        let entry = chosen((), multiples, Interval::within(-8, 8));
        assert_within(&plus((), &wide(), &entry), &wide());
    }
}

#[test]
fn doublings_keep_points_within_bounds() {
    assert_within(&plus((), &wide(), &cached((), &wide())), &wide());
}

#[test]
fn fractions_are_reduced() {
    let fraction = public_fraction((), &wide());
    assert_reduced(&fraction);
    assert_reduced(&crossed((), &fraction, &Elements::carried((), wide())));
}
