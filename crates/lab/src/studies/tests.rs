//! Statements, their stored verdicts, and the page.

use super::record::in_folder;
use super::*;
use crate::experiment::{Layout, Predicate};
use crate::testing::MockExecutor;
use crate::tests::world::{COSTS, World, world_of};
use std::path::PathBuf;

/// A claim of a study that fast, with 0.8 of the CPU, meets.
fn claim(expect: &str) -> Claim {
    let text = format!(
        "id = 'fast-or-not'\nsource = 'S3'\nsays = 'fast is faster.'\nmetric = 'cpu_us_per_request'\n\
         expect = '{expect}'\ncell = {{ target = 'fast', load_model = 'saturated' }}\nagainst = {{ target = 'slow' }}\n"
    );
    toml::from_str(&text).expect("a claim")
}

fn world(expect: &str) -> World {
    world_of(MockExecutor::new(&COSTS), |experiment| {
        experiment.layout = Layout::Blocks;
        experiment.claims =
            vec![claim(expect), Claim { source: "own".into(), id: "own".into(), ..claim("< 1") }];
    })
}

fn results(world: &World) -> PathBuf {
    world.directory.path().join("results")
}

/// The statement of these tests' experiment, with the verdict that the folder stores.
fn statement(folder: &Path, expect: &str) -> Statement {
    let records = in_folder(folder).expect("is read");
    let [record] = records.as_slice() else { panic!("one experiment: {records:?}") };
    let claim = claim(expect);
    let measured = record.get(&claim.id);
    Statement { experiment: record.experiment.clone(), claim, measured }
}

#[test]
fn a_kept_verdict_counts_for_the_claim_that_it_judged() {
    let world = world("< 0.9");
    let folder = world.directory.path().join("studies");
    keep(&[results(&world)], &folder).expect("is kept");
    let found = statement(&folder, "< 0.9");
    assert_eq!(found.verdict().0, Verdict::Judged(ClaimVerdict::Confirmed));
    assert!(found.measured.is_some_and(|(_, on)| on.command.starts_with("weir run ") && on.cores == 2));
    let (verdict, _, why) = statement(&folder, "< 0.7").verdict();
    assert_eq!(verdict, Verdict::NotMeasured);
    assert!(why.contains("has changed"), "{why}");
    let mut elsewhere = statement(&folder, "< 0.9");
    elsewhere.claim.cell =
        [("target".to_owned(), crate::experiment::Level::of(&"slow".into()))].into_iter().collect();
    assert_eq!(elsewhere.verdict().0, Verdict::NotMeasured, "of other cells");
}

/// Regression test: `weir studies run` listed a stored verdict of another day and machine as if the run had measured it.
#[test]
fn a_stored_verdict_beside_given_results_says_so() {
    let world = world("< 0.9");
    let folder = world.directory.path().join("studies");
    keep(&[results(&world)], &folder).expect("is kept");
    let stored = statement(&folder, "< 0.9");
    let record = measured(&results(&world)).expect("is read");
    let given = Statement { measured: record.get(&stored.claim.id), ..stored.clone() };
    let text = terminal(&[given, stored.clone()]);
    assert!(
        text.contains("2 statements: 2 confirmed\nIn these results, 1 statement: 1 confirmed\n"),
        "{text}"
    );
    assert_eq!(
        text.matches("      stored on 1970-").count() + text.matches("      stored on 20").count(),
        1,
        "{text}"
    );
    assert!(!terminal(&[stored]).contains("stored on"), "alone, all verdicts are stored");
}

#[test]
fn a_newer_verdict_replaces_the_older() {
    let (older, newer) = (world("< 0.9"), world("< 0.7"));
    let folder = older.directory.path().join("studies");
    keep(&[results(&older)], &folder).expect("is kept");
    keep(&[results(&newer)], &folder).expect("is kept");
    assert_eq!(statement(&folder, "< 0.7").verdict().0, Verdict::Judged(ClaimVerdict::Contradicted));
    let text = std::fs::read_to_string(folder.join("small.json")).expect("is read");
    assert_eq!(text.matches("\"started_unix\"").count(), 1, "a result without verdicts is dropped");
    assert!(!text.contains("\"own\""), "claims of our own are no statements");
}

/// Regression test: on a CPU without IFMA, what a study says about IFMA was contradicted.
#[test]
fn a_cpu_without_the_feature_tests_nothing_and_leaves_the_verdict_of_another() {
    let [here, elsewhere] = [Vec::new(), vec!["no-such-feature".to_owned()]].map(|cpu| {
        world_of(MockExecutor::new(&COSTS), |experiment| {
            experiment.layout = Layout::Blocks;
            experiment.claims = vec![Claim { cpu, ..claim("< 0.7") }];
        })
    });
    let folder = here.directory.path().join("studies");
    keep(&[results(&elsewhere)], &folder).expect("is kept");
    let (verdict, text, why) = statement(&folder, "< 0.7").verdict();
    assert_eq!(verdict, Verdict::Judged(ClaimVerdict::NotTestable));
    assert_eq!(format!("{text}: {why}"), "not testable here: the CPU lacks no-such-feature");
    for newer in [&here, &elsewhere] {
        keep(&[results(newer)], &folder).expect("is kept");
        assert_eq!(statement(&folder, "< 0.7").verdict().0, Verdict::Judged(ClaimVerdict::Contradicted));
    }
}

#[test]
fn a_result_without_a_statement_is_rejected() {
    let world = world_of(MockExecutor::new(&COSTS), |experiment| experiment.claims.clear());
    let folder = world.directory.path().join("studies");
    let error = keep(&[results(&world)], &folder).expect_err("is refused").to_string();
    assert!(error.contains("measured no statement of a study"), "{error}");
    assert!(!folder.exists());
}

#[test]
fn a_record_of_another_schema_is_rejected_with_its_file() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("small.json");
    for (text, message) in [
        ("{\"schema\": 2}", "schema: unsupported version 2; expected 1"),
        ("{\"schema\": 1, \"experiment\": \"a\", \"results\": [], \"more\": 1}", "unknown field `more`"),
        ("{", "EOF"),
    ] {
        std::fs::write(&file, text).expect("is written");
        let error = in_folder(folder.path()).expect_err("is refused").to_string();
        assert!(error.contains("small.json: ") && error.contains(message), "{error}");
    }
}

#[test]
fn every_study_has_statements_and_ids_are_unique() {
    let all = statements::<PathBuf>(&[]).expect("are read");
    for study in STUDIES {
        let own = all.iter().filter(|statement| statement.claim.source == study.source).count();
        assert!(own >= 8, "{}: {own}", study.source);
    }
    let mut ids: Vec<_> = all.iter().map(|statement| (&statement.experiment, &statement.claim.id)).collect();
    ids.sort();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
}

/// A sentence of direction never has the study's figure as its band: a true sentence could then be contradicted.
#[test]
fn a_study_s_figure_has_a_claim_of_its_own() {
    for statement in statements::<PathBuf>(&[]).expect("are read") {
        let Statement { experiment, claim, .. } = statement;
        let Some(Predicate::Within(low, high)) = claim.expect.filter(|_| claim.against.is_some()) else {
            continue;
        };
        // No difference.
        if low < 1.0 && 1.0 < high {
            continue;
        }
        let has_figure = claim.figures.is_some() || claim.original.is_some();
        assert!(has_figure, "{experiment}: {}: a two-sided band without a figure", claim.id);
        assert!(
            !claim.says.contains("faster") && !claim.says.contains("slower"),
            "{experiment}: {}",
            claim.says
        );
    }
}

#[test]
fn the_page_is_the_one_in_the_repository() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/STUDIES.md");
    let written = std::fs::read_to_string(page).expect("is there");
    let fresh = markdown(&statements::<PathBuf>(&[]).expect("are read"));
    assert!(written == fresh, "docs/STUDIES.md is not what `weir studies --markdown docs/STUDIES.md` writes");
}

#[test]
fn the_terminal_has_100_columns() {
    let text = terminal(&statements::<PathBuf>(&[]).expect("are read"));
    assert!(text.lines().all(|line| line.chars().count() <= 100 || line.starts_with("https://")), "{text}");
    assert!(STUDIES.iter().all(|study| text.contains(study.title)));
}
