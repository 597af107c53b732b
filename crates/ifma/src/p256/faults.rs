//! Fault injection for tests: flips one bit between the steps of a signature. In other builds these functions do
//! nothing.

use super::field::Element;
use super::words::Words;
use crate::lanes::Lanes;

/// The value that a fault changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The nonce, before its digits are added up.
    Nonce,
    /// The copy of the nonce for the inversion.
    Copy,
    /// The table's entries of a step, in all lanes.
    Entry(usize),
    /// A coordinate of the sum.
    X,
    Y,
    Z,
    /// The inverse of z.
    InverseOfZ,
    /// The inverse of the nonce.
    InverseOfNonce,
    /// x and y.
    Affine,
    R,
    S,
    /// The signature's input key.
    Key,
    /// The signature's input digest.
    Digest,
}

#[cfg(not(test))]
#[inline(always)]
pub(super) fn words(_: Place, _: &mut Words) {}

#[cfg(not(test))]
#[inline(always)]
pub(super) fn element<L: Lanes>(_: L::Token, _: Place, _: &mut Element<L>) {}

#[cfg(test)]
pub(super) use injected::{element, with, words};

#[cfg(test)]
mod injected {
    use core::cell::Cell;

    use super::{Element, Lanes, Place, Words};

    std::thread_local! {
        static FAULT: Cell<Option<(Place, u32)>> = const { Cell::new(None) };
    }

    /// Calls `run` with one bit flipped at this place.
    pub(in crate::p256) fn with<T>(place: Place, bit: u32, run: impl FnOnce() -> T) -> T {
        FAULT.set(Some((place, bit)));
        let result = run();
        FAULT.set(None);
        result
    }

    fn bit(place: Place) -> Option<u32> {
        FAULT.get().filter(|(at, _)| *at == place).map(|(_, bit)| bit)
    }

    pub(in crate::p256) fn words(place: Place, words: &mut Words) {
        if let Some(bit) = bit(place) {
            words[bit as usize / 64] ^= 1 << (bit % 64);
        }
    }

    #[inline(always)]
    pub(in crate::p256) fn element<L: Lanes>(token: L::Token, place: Place, element: &mut Element<L>) {
        if let Some(bit) = bit(place) {
            let limb = &mut element[bit as usize / 52];
            *limb = limb.xor(L::splat(token, 1 << (bit % 52)));
        }
    }
}
