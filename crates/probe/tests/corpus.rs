//! Replays the fuzzers' committed corpus.

use crate::invariants;
use std::fs;
use std::path::Path;

fn replay(target: &str, least: usize, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= least, "{inputs} inputs in {}", folder.display());
}

#[test]
fn answers() {
    replay("answer", 20, invariants::answer);
}

#[test]
fn certificates() {
    replay("certificate", 8, invariants::certificate);
}
