//! Replays the fuzzers' committed corpus.

use crate::invariants;
use crate::replay::replay;

#[test]
fn request_heads() {
    replay("request_head", 20, invariants::request_head);
}

#[test]
fn response_heads() {
    replay("response_head", 20, invariants::response_head);
}

#[test]
fn bodies() {
    replay("body", 20, invariants::body);
}
