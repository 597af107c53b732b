//! The example in docs/RESULT.md that merges histograms.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use std::process::Command;
use weir_load::result::LoadResult;

const PAGE: &str = include_str!("../../../../docs/RESULT.md");

/// Encodes samples as in results.
pub(crate) fn hdr_v2(nanoseconds: &[u64]) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram(nanoseconds), &mut bytes).unwrap();
    BASE64_STANDARD.encode(bytes)
}

/// A histogram with the engine's bounds.
fn histogram(nanoseconds: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    nanoseconds.iter().for_each(|&ns| histogram.record(ns).unwrap());
    histogram
}

/// The page's Python against the library that wrote the histograms.
#[test]
fn the_example_that_merges_histograms_is_correct() {
    if Command::new("python3").arg("--version").output().is_err() {
        assert!(std::env::var_os("WEIR_REQUIRE_PEERS").is_none(), "python3 is not on the PATH");
        println!("skipped: python3 is not on the PATH");
        return;
    }
    let example = PAGE.split_once("```python\n").unwrap().1.split_once("```").unwrap().0;
    // Cells of every size, from the first to beyond a minute; a few of them with counts that take several bytes.
    let spread: Vec<u64> = (0..9_000).map(|n: u64| 1 + n * n * n / 7 + n % 13).collect();
    let many: Vec<u64> = (0..70_000).map(|n: u64| 61_500 + n % 3).collect();
    let ends = vec![1, 2, 1023, 1024, 2047, 2048, 2049, 3_600_000_000_000];
    for parts in [vec![spread.clone(), many, ends], vec![vec![5; 150], vec![]], vec![spread]] {
        let mut merged = histogram(&[]);
        let directory = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let mut result = LoadResult::default();
            result.response.hdr_v2 = hdr_v2(part);
            // What is written can be read back.
            let mut bytes = Vec::new();
            V2Serializer::new().serialize(&histogram(part), &mut bytes).unwrap();
            merged.add(Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice()).unwrap()).unwrap();
            let file = directory.path().join(format!("{index}.json"));
            std::fs::write(&file, serde_json::to_string(&result).unwrap()).unwrap();
            files.push(file);
        }
        let printed = Command::new("python3").args(["-c", example]).args(&files).output().unwrap();
        let mut expected = vec![format!("count {}", merged.len())];
        for (name, quantile, samples) in [
            ("50", 0.5, 20),
            ("90", 0.9, 100),
            ("95", 0.95, 200),
            ("99", 0.99, 1000),
            ("99.9", 0.999, 10_000),
        ] {
            let us = merged.value_at_quantile(quantile) as f64 / 1e3;
            let value =
                if merged.len() >= samples { format!("{us:?}") } else { "too few samples".to_string() };
            expected.push(format!("p{name} {value}"));
        }
        let lines: Vec<&str> = std::str::from_utf8(&printed.stdout).unwrap().lines().collect();
        assert_eq!(lines, expected, "{}", String::from_utf8_lossy(&printed.stderr));
    }
}
