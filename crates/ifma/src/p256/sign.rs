//! A signature from a key, a digest and a nonce (FIPS 186-5, section 6.4.1), and the check before it is returned.

use core::hint::black_box;

use zeroize::Zeroizing;

use super::SigningKey;
use super::comb::{base_multiple, digits};
use super::faults::{self, Place};
use super::field::{Element, plain, splat};
use super::inverse::inverses;
use super::modular::{N, P};
use super::point::{Projective, equation};
use super::words::{Words, ZERO, differences, from_be, from_limbs, is_zero, limbs, minus, selected, to_be};
use crate::processor::Ifma;
use crate::simd::Simd;

/// See [`super::SigningKey::sign`]; the nonce is from 0 to n - 1.
#[inline(always)]
pub(super) fn signature(token: Ifma, key: &SigningKey, digest: &[u8; 32], nonce: &Words) -> Option<[u8; 64]> {
    let mut nonce = Zeroizing::new(*nonce);
    // The point and the check use one copy, the inversion uses the other: the check detects a fault in either.
    let mut copy = Zeroizing::new(black_box(*nonce));
    faults::words(Place::Nonce, &mut nonce);
    faults::words(Place::Copy, &mut copy);

    let mut point = multiple(token, &nonce);
    faults::element(token, Place::X, &mut point.x);
    faults::element(token, Place::Y, &mut point.y);
    faults::element(token, Place::Z, &mut point.z);
    let z = scaled_z(token, &point);
    let mut inverses = Zeroizing::new(inverses(&z, &copy));
    let [of_z, of_nonce] = &mut *inverses;
    faults::words(Place::InverseOfZ, of_z);
    faults::words(Place::InverseOfNonce, of_nonce);
    let mut affine = point.affine(token, &splat(token, &limbs(of_z)));
    faults::element(token, Place::Affine, &mut affine);

    let mut r = x_modulo_n(token, &affine);
    faults::words(Place::R, &mut r);
    let mut h = N.reduced(&from_be(digest));
    faults::words(Place::Digest, &mut h);
    let mut scaled = Zeroizing::new(key.scaled);
    faults::words(Place::Key, &mut scaled);
    let sum = Zeroizing::new(N.sum(&h, &N.product(&r, &scaled)));
    let mut s = N.product(&N.scaled(of_nonce), &sum);
    faults::words(Place::S, &mut s);

    let wrong = off_curve(token, &affine)
        | differences(&r, &x_modulo_n(token, &black_box(affine)))
        | misfit(&r, &s, &nonce, &key.scalar, black_box(digest))
        | is_zero(&r)
        | is_zero(&s);
    // A single decision, which the caller makes public anyway.
    (black_box(wrong) == 0).then(|| pair(&r, &s))
}

/// Zero if s k = h + r d modulo n; both sides are divided by 2^256.
#[inline(always)]
fn misfit(r: &Words, s: &Words, k: &Words, d: &Words, digest: &[u8; 32]) -> u64 {
    let left = N.product(s, k);
    let right = N.sum(&N.product(r, d), &N.product(&from_be(digest), &[1, 0, 0, 0]));
    differences(&left, &right)
}

fn pair(r: &Words, s: &Words) -> [u8; 64] {
    let mut out = [0; 64];
    out[..32].copy_from_slice(&to_be(r));
    out[32..].copy_from_slice(&to_be(s));
    out
}

/// The public key for a private key, as the byte 4, x and y (SEC 1, section 2.3.3).
#[inline(always)]
pub(super) fn public(token: Ifma, scalar: &Words) -> [u8; 65] {
    let point = multiple(token, scalar);
    let z = scaled_z(token, &point);
    let [of_z, _] = inverses(&z, &[1, 0, 0, 0]);
    let affine = plain(token, &point.affine(token, &splat(token, &limbs(&of_z))));
    let (x, y) = (number(&affine, 0), number(&affine, 1));
    // For an even k, the comb uses n - k, whose point is the opposite one. No point has y = 0, since the order is odd.
    let y = selected(scalar[0] & 1, &y, &minus(&P.words, &y).0);
    let mut out = [4; 65];
    out[1..33].copy_from_slice(&to_be(&x));
    out[33..].copy_from_slice(&to_be(&y));
    out
}

/// k times the base point, or the opposite point for an even k, in each lane.
#[inline(always)]
fn multiple(token: Ifma, k: &Words) -> Projective<Simd> {
    base_multiple(token, &digits(token, k))
}

/// z / 2^260, from 0 to p: the inverse is then an element's number without further scaling.
#[inline(always)]
fn scaled_z(token: Ifma, point: &Projective<Simd>) -> Zeroizing<Words> {
    Zeroizing::new(at(&plain(token, &plain(token, &point.z)), 0))
}

/// x modulo n, of alternating (x, y).
#[inline(always)]
fn x_modulo_n(token: Ifma, affine: &Element<Simd>) -> Words {
    N.reduced(&number(&plain(token, affine), 0))
}

/// Zero if (x, y) is on the curve.
#[inline(always)]
fn off_curve(token: Ifma, affine: &Element<Simd>) -> u64 {
    differences(&number(&plain(token, &equation(token, affine)), 0), &ZERO)
}

/// Returns the number in one lane of an element in plain form, reduced modulo p.
#[inline(always)]
fn number(plain: &Element<Simd>, lane: usize) -> Words {
    P.reduced(&at(plain, lane))
}

/// A lane of an element below 2^256.
#[inline(always)]
fn at(element: &Element<Simd>, lane: usize) -> Words {
    from_limbs(&[0, 1, 2, 3, 4].map(|i| element[i].store()[lane]))
}
