//! Replays the fuzzers' committed corpus.

use crate::invariants;
use std::fs;
use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 20, "{inputs} inputs in {}", folder.display());
}

#[test]
fn proxy_headers() {
    replay("proxy", invariants::proxy);
}

#[test]
fn client_hellos() {
    replay("hello", invariants::hello);
}
