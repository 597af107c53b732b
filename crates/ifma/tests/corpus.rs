//! Replays the fuzzers' committed corpus.

use crate::invariants;
use crate::replay::replay;

#[test]
fn exchanges() {
    replay("x25519", 20, invariants::x25519);
}

#[test]
fn signatures() {
    replay("p256", 20, invariants::p256);
}
