//! Replays the fuzzer's committed corpus, and scripts made from it.

use std::fs;
use std::path::{Path, PathBuf};
use weir_sim::connection;

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/connection");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut inputs: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    inputs.sort();
    assert!(inputs.len() >= 20, "{} inputs", inputs.len());
    inputs
}

#[test]
fn connections() {
    for (path, script) in corpus() {
        println!("{}", path.display());
        connection(&script);
    }
}

/// Each connection cut off after any byte.
#[test]
fn connections_that_end_anywhere() {
    for (path, script) in corpus() {
        println!("{}", path.display());
        for length in (0..script.len()).step_by(1 + script.len() / 40) {
            connection(&script[..length]);
        }
    }
}

/// Each connection under all settings of the gateway.
#[test]
fn connections_under_other_settings() {
    for (path, script) in corpus() {
        println!("{}", path.display());
        for flags in 0..16 {
            let other = [&[flags], script.get(1..).unwrap_or_default()].concat();
            connection(&other);
        }
    }
}
