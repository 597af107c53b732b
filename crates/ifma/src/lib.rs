//! X25519 and ECDSA P-256 signing for one handshake at once, with AVX-512 IFMA: the four lanes of a 256-bit register carry the
//! four products of one curve operation. No state, no batches, no stock of keys or nonces.
//!
//! No branch and no address depends on a secret. `proofs/` and the tests say how that, the formulas and the bounds of all limbs
//! are checked. No outsider has reviewed this code.
#![no_std]
// Elsewhere `Ifma` has no value, and the arithmetic no caller.
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
