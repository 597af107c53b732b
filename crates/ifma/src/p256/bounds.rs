//! Proofs that no limb overflows, for any scalar: the arithmetic runs over intervals, which panic if a limb could
//! overflow.

use super::base::STEPS;
use super::comb::{base_multiple, chosen};
use super::field::{Element, TOP, difference, mul, plain, square};
use super::point::{Extended, Projective, affine_sum, equation};
use super::words::LOW;
use crate::interval::Interval;

const UNKNOWN: [Option<bool>; 4] = [None; 4];

/// The bounds of any element.
fn element() -> Element<Interval> {
    limbs(TOP)
}

/// The bounds of any number below 2^256, in limbs.
fn words() -> Element<Interval> {
    limbs((1 << 48) - 1)
}

fn limbs(top: u64) -> Element<Interval> {
    [LOW, LOW, LOW, LOW, top].map(|high| Interval::within(0, high.into()))
}

#[track_caller]
fn assert_element(a: &Element<Interval>) {
    for (limb, bound) in a.iter().zip(element()) {
        assert!(bound.contains(*limb), "{limb:x?} exceeds {bound:x?}");
    }
}

fn digit() -> Interval {
    Interval::within(0, 31)
}

#[test]
fn operations_of_the_field_return_elements() {
    assert_element(&words());
    assert_element(&mul((), &element(), &element()));
    assert_element(&square((), &element()));
    assert_element(&difference((), &element(), &element()));
    assert_element(&plain((), &element()));
}

#[test]
fn entries_of_the_table_are_below_2_to_the_256th() {
    for step in 0..STEPS {
        let (entry, _) = chosen((), step, digit());
        for (limb, bound) in entry.iter().flat_map(|coordinate| coordinate.iter().zip(words())) {
            assert!(bound.contains(*limb), "{limb:x?} exceeds {bound:x?}");
        }
    }
}

/// By induction over the steps, this holds for all sums of a lane.
#[test]
fn sums_with_affine_points_have_elements() {
    let entry = [words(), words()];
    let Extended { x, y, zz, zzz } = affine_sum((), &entry, UNKNOWN, &entry, UNKNOWN);
    [x, y, zz, zzz].iter().for_each(assert_element);
    let any = Extended { x: element(), y: element(), zz: element(), zzz: element() };
    let Extended { x, y, zz, zzz } = any.plus_affine((), &entry, UNKNOWN);
    [x, y, zz, zzz].iter().for_each(assert_element);
    let Projective { x, y, z } = any.projective(());
    [x, y, z].iter().for_each(assert_element);
}

#[test]
fn sums_of_lanes_have_elements() {
    let any = Projective { x: element(), y: element(), z: element() };
    let Projective { x, y, z } = any.sum_of_neighbours(());
    [x, y, z].iter().for_each(assert_element);
    assert_element(&any.affine((), &words()));
    assert_element(&equation((), &element()));
}

#[test]
fn any_digits_have_a_multiple_of_elements() {
    let Projective { x, y, z } = base_multiple((), &[digit(); STEPS]);
    [x, y, z].iter().for_each(assert_element);
}
