//! HTTP/1.1 through the crate's public API: heads, bodies, and the fuzzers' inputs.

#![allow(clippy::print_stdout)]

mod bodies;
mod corpus;
mod properties;
mod repaired;
mod requests;
mod responses;

#[expect(unreachable_pub, reason = "a library to the fuzz targets")]
#[path = "../fuzz/src/lib.rs"]
mod invariants;

#[path = "../../../tests/replay.rs"]
mod replay;
