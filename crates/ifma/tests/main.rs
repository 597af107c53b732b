//! The crate through its public API, against AWS-LC and published vectors.

#![allow(clippy::print_stdout)]

mod corpus;
mod detection;
mod p256;
mod x25519;

#[expect(unreachable_pub, reason = "a library to the fuzz targets")]
#[path = "../fuzz/src/lib.rs"]
mod invariants;

#[path = "../../../tests/replay.rs"]
mod replay;

use weir_ifma::Ifma;

/// The token; `None` on a processor without the instructions, which cannot run these tests.
fn ifma() -> Option<Ifma> {
    Ifma::detect().inspect_err(|missing| println!("skipped: {missing}")).ok()
}
