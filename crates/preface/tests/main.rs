//! ClientHellos and PROXY protocol headers through the crate's public API, and the fuzzers' inputs.

#![allow(clippy::print_stdout)]

mod corpus;
mod hello;
mod properties;
mod proxy;

#[expect(unreachable_pub, reason = "a library to the fuzz targets")]
#[path = "../fuzz/src/lib.rs"]
mod invariants;

#[path = "../../../tests/replay.rs"]
mod replay;
