//! Replays the fuzzers' committed corpus.

use crate::invariants;
use crate::replay::replay;

#[test]
fn proxy_headers() {
    replay("proxy", 20, invariants::proxy);
}

#[test]
fn client_hellos() {
    replay("hello", 20, invariants::hello);
}
