//! `weir stacks` as users type it: the examples of its help, `--only`, and the report of a shortened run.

use crate::common::Weir;
use crate::common::engine::{RUNNER, description};
use std::fs;
use std::path::Path;

/// The examples of a help text, as the words after `weir`.
fn examples(help: &[&str]) -> Vec<Vec<String>> {
    let text = Weir::run(&[help, &["--help"]].concat()).stdout;
    let (_, examples) = text.split_once("Examples:").expect("has examples");
    let examples = examples.split("\n\n").next().unwrap_or_default();
    let words = |line: &str| {
        // The purpose follows three spaces.
        let command = line.trim().split("   ").next().unwrap_or_default();
        command.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let found: Vec<Vec<String>> = examples.lines().map(words).filter(|words| !words.is_empty()).collect();
    assert!(found.iter().all(|words| words[0] == "stacks"), "{found:?}");
    found
}

/// Plans each example in this checkout as written; planning builds nothing.
#[test]
fn the_examples_of_the_help_are_accepted_unchanged() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed =
        Weir::run(&["stacks", "list", "--directory", &checkout.join("engines").display().to_string()]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let engines: Vec<&str> =
        listed.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut tried = 0;
    for help in [&["stacks"][..], &["stacks", "run"], &["stacks", "build"]] {
        for words in examples(help) {
            let args = words.join(" ");
            match words[1].as_str() {
                "list" => assert_eq!(words.len(), 2, "{args}"),
                "build" => {
                    let unknown = words[2..].iter().find(|name| !engines.contains(&name.as_str()));
                    assert_eq!(unknown, None, "{args}");
                }
                "run" => {
                    // `plan` supports all of its arguments except these.
                    let is_of_run = |word: &str| ["--instructions", "--profile"].contains(&word);
                    let rest = words[2..].iter().map(String::as_str).filter(|word| !is_of_run(word));
                    let plan: Vec<&str> = ["stacks", "plan"].into_iter().chain(rest).collect();
                    let planned = Weir::run(&plan);
                    assert_eq!(planned.code, Some(0), "{args}: {}", planned.stderr);
                    assert!(planned.stdout.contains("\nblocks: "), "{args}: {}", planned.stdout);
                    if args.contains("--only") {
                        assert!(planned.stdout.lines().any(|line| line.starts_with("baseline: ")), "{args}");
                    }
                }
                other => panic!("{other}: {args}"),
            }
            tried += 1;
        }
    }
    assert!(tried >= 8, "{tried}");
}

const EXPERIMENT: &str = "name = 'fakes'
instrument = 'stacks'
question = 'Does it work?'
engines_directory = 'engines'
engines = ['good', 'other']
baseline = ['good']
aa = 'good'
blocks = 1
seed = 1
[constants]
window_ms = 1
[[scenarios]]
do = 'handshake'
version = '1.3'
group = ['x25519', 'p-256']
[[claims]]
id = 'seen'
source = 'own'
says = 'As fast with either group.'
metric = 'server_us_per_handshake'
cell = { group = 'p-256' }
against = { group = 'x25519' }
expect = '0.5 .. 2'
[[claims]]
id = 'hidden'
source = 'own'
says = 'Twice as fast.'
metric = 'server_us_per_handshake'
cell = { engine = 'other', group = 'x25519' }
against = { engine = 'good' }
expect = '< 0.6'
";

/// An experiment with two scripts as engines, and the arguments that select it.
fn bench() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["good", "other"] {
        let engine = folder.path().join("engines").join(name);
        fs::create_dir_all(&engine).unwrap();
        fs::write(engine.join("engine.toml"), description("['true']")).unwrap();
        fs::write(engine.join("run.sh"), RUNNER).unwrap();
    }
    let file = folder.path().join("fakes.toml");
    fs::write(&file, EXPERIMENT).unwrap();
    (folder, file.display().to_string())
}

/// The option has the same name in both planning subcommands and in their errors.
#[test]
fn only_is_documented_and_filter_is_accepted() {
    let (_folder, file) = bench();
    let cells = |args: &[&str]| {
        let planned = Weir::run(args);
        assert_eq!(planned.code, Some(0), "{args:?}: {}", planned.stderr);
        planned.stdout
    };
    let planned = cells(&["stacks", "plan", &file, "--only", "group=p256"]);
    assert!(
        planned.contains("3 cells:\n    1  handshake.1.3.full.ecdsa-p256.p256.tickets=2.good\n"),
        "{planned}"
    );
    for args in [
        ["stacks", "plan", &file, "--only", "group=p-256"].as_slice(),
        &["stacks", "plan", &file, "--filter", "group=p256"],
        &["plan", &file, "--only", "group=secp256r1"],
        &["plan", &file, "--filter", "group=p256"],
    ] {
        assert_eq!(cells(args), planned, "{args:?}");
    }
    for command in [&["stacks", "plan"][..], &["plan"], &["stacks", "run"], &["run"]] {
        for word in ["--only", "--filter"] {
            let rejected = Weir::run(&[command, &[&file, word, "group=p257"]].concat());
            assert_eq!(rejected.code, Some(2), "{}", rejected.stderr);
            let why = "weir: --only group: invalid value `p257`: expected one of p256, x25519";
            assert_eq!(rejected.stderr.lines().next(), Some(why), "{command:?} {word}");
        }
        let help = Weir::run(&[command, &["--help"]].concat()).stdout;
        assert!(help.contains("--only") && !help.contains("--filter"), "{help}");
    }
}

#[test]
fn a_shortened_run_keeps_its_noise_floor_and_hides_values_without_evidence() {
    let (folder, file) = bench();
    let out = folder.path().join("results").display().to_string();
    let ran = Weir::run(&["stacks", "run", &file, "--only", "engine=other,group=p256", "--out", &out]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("\n2 claims are about cells that were not run.\n"), "{}", ran.stdout);
    let flat = Weir::run(&["report", &out, "--full"]).stdout.replace("\n    ", " ");
    for part in [
        "1 valid of 1 planned block: no interval and no verdict below 5",
        "The A/A pair of good runs beside the cells of --only",
        "\nfull handshake, TLS 1.3, ECDSA P-256, P-256 key exchange\n",
        "\nClaims:\n  2 claims are about cells that were not run.\n",
    ] {
        assert!(flat.contains(part), "{part}: {flat}");
    }
    assert!(!flat.contains("Twice as fast."), "{flat}");
    let read = |name: &str| fs::read_to_string(Path::new(&out).join(name)).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    assert_eq!(summary["claims"].as_array().unwrap().len(), 2, "all of them are stored");
    assert_eq!(summary["foreign"]["runs"], 3, "other, and good twice");
    assert!(summary["foreign"]["median"].is_number(), "{}", summary["foreign"]);
    let page = read("report.html");
    assert!(page.contains("2 claims are about cells that were not run.") && !page.contains("Twice as fast."));
}

/// Regression test: with one space between them, two columns read as one.
#[test]
fn the_columns_of_the_list_do_not_touch() {
    let engines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines").display().to_string();
    let listed = Weir::run(&["stacks", "list", "--directory", &engines]).stdout;
    let table: Vec<&str> = listed.lines().take_while(|line| !line.is_empty()).collect();
    assert!(table.len() > 20, "{listed}");
    for line in table {
        assert_eq!(line.split("  ").filter(|column| !column.is_empty()).count(), 4, "{line}");
        assert!(line.chars().count() <= 100, "{line}");
    }
}
