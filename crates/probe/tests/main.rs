//! Answers of servers, generated and from the fuzzers' inputs.

#![allow(clippy::print_stdout)]

mod answers;
mod corpus;

#[expect(unreachable_pub, reason = "a library to the fuzz targets")]
#[path = "../fuzz/src/lib.rs"]
mod invariants;

#[path = "../../../tests/replay.rs"]
mod replay;
