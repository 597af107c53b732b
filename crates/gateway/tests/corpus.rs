//! Checks the fuzzer's committed configurations, whole and cut off.

use std::fs;
use std::path::{Path, PathBuf};

#[expect(unreachable_pub, reason = "a library to the fuzz targets")]
#[path = "../fuzz/src/lib.rs"]
mod invariants;

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/configuration");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inputs: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    assert!(inputs.len() >= 35, "{} inputs", inputs.len());
    inputs
}

#[test]
fn configurations() {
    for (path, input) in corpus() {
        println!("{}", path.display());
        // The names of invalid configurations begin with `bad-`.
        let is_taken = path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with("bad-"));
        assert_eq!(invariants::configuration(&input), is_taken);
    }
}

/// A configuration that ends too early, at any byte, violates no invariant.
#[test]
fn configurations_cut_off() {
    for (path, input) in corpus() {
        println!("{}", path.display());
        for length in 0..input.len() {
            invariants::configuration(&input[..length]);
        }
    }
}
