//! X25519 and ECDSA P-256 signing for one handshake at a time, with AVX-512 IFMA: the four lanes of a 256-bit register
//! hold the four products of one curve operation. There is no state, no batching, and no pool of keys or nonces.
//!
//! No branch and no memory address depends on a secret. `proofs/` and the tests check this property, the formulas, and
//! the bounds of all limbs. The code has had no independent review.
#![no_std]
// On other architectures `Ifma` has no value, and the arithmetic has no caller.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

#[cfg(test)]
extern crate std;

mod failed;
mod field25519;
#[cfg(test)]
mod interval;
mod lanes;
mod processor;
mod simd;

pub mod p256;
pub mod x25519;

pub use failed::Failed;
pub use processor::{Ifma, Missing};
