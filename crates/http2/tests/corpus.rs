//! Replays the fuzzers' committed corpus.

use crate::invariants;
use crate::replay::replay;

#[test]
fn frames() {
    replay("frames", 20, invariants::frames);
}

#[test]
fn field_blocks() {
    replay("hpack", 20, invariants::hpack);
}

#[test]
fn connections() {
    replay("connection", 20, invariants::connection);
}
