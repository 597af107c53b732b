//! HTTP/2 through the crate's public API: frames, heads, connections, and the fuzzers' inputs.

#![allow(clippy::print_stdout)]

mod connection;
mod corpus;
mod frames;
mod generated;
mod heads;
mod hpack;
mod oracle;
mod settings;

#[expect(unreachable_pub, reason = "a library to the fuzz targets")]
#[path = "../fuzz/src/lib.rs"]
mod invariants;

#[path = "../../../tests/replay.rs"]
mod replay;
