//! Replays the fuzzers' committed corpus.

use crate::invariants;
use crate::replay::replay;

#[test]
fn answers() {
    replay("answer", 20, invariants::answer);
}

#[test]
fn certificates() {
    replay("certificate", 8, invariants::certificate);
}
