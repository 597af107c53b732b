//! Stacks recorded from each library and runtime, with the category that a person assigned to them.
//!
//! A line of `testdata/NAME.stacks` is a category, a tab and a folded stack with its number of samples. They were made
//! by `examples/label.rs` from real profiles, and read line by line.

use std::fs;
use std::path::Path;
use weir_profile::{Category, Profile, Rules, Stacks};

/// The libraries and runtimes that must have stacks.
const NAMES: [&str; 13] = [
    "aws-lc",
    "boringssl",
    "go",
    "graviola",
    "java",
    "kernel",
    "node",
    "node-0.10",
    "openssl-1.1.1",
    "openssl-3.0",
    "openssl-newest",
    "ring",
    "wolfssl",
];

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"))
}

/// The category of one folded stack.
fn category(rules: &Rules, folded: &str) -> Category {
    let stacks = Stacks::from_folded(folded).unwrap_or_else(|(_, why)| panic!("{folded}: {why}"));
    let profile = Profile::new(&stacks, rules);
    let own = profile.categories.iter().find(|one| one.own.samples > 0);
    own.map(|one| one.category).expect("each stack has one")
}

#[test]
fn each_recorded_stack_has_its_category() {
    let rules = Rules::built_in();
    let mut wrong = Vec::new();
    for name in NAMES {
        let path = folder().join(format!("{name}.stacks"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut lines = 0;
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (words, folded) = line.split_once('\t').unwrap_or_else(|| panic!("{name}: {line}"));
            let found = category(&rules, folded);
            if found.words() != words {
                wrong.push(format!("{name}: {folded}: {words}, not {}", found.words()));
            }
            lines += 1;
        }
        assert!(lines >= 10, "{name}: {lines} stacks");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A microbenchmark that does only key exchange must be almost nothing else.
#[test]
fn a_key_exchange_alone_is_key_exchange() {
    let rules = Rules::built_in();
    for name in ["aws-lc", "openssl-3.0"] {
        let path = folder().join(format!("x25519-{name}.folded"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let stacks = Stacks::from_folded(&text).unwrap_or_else(|(line, why)| panic!("{name}:{line}: {why}"));
        let share = Profile::new(&stacks, &rules).own(Category::KeyExchange).share;
        assert!(share >= 0.9, "{name}: {share}");
    }
}
