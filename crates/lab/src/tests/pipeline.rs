//! From a plan to the report in a synthetic world: the text, the summary, the page, and their rebuild.

use super::world::*;
use crate::LabError;
use crate::entry::pipeline::report;
use crate::experiment::Stop;
use crate::instrument::gateway::Gateway;
use crate::report::words::QUICK;
use crate::testing::MockExecutor;
use weir_report::text::WIDTH;

#[test]
fn the_text_fits_a_hundred_columns() {
    for blocks in [1, 5, 12] {
        let world = world(blocks, &COSTS, Some("b001-003"));
        let lines = [&world.text, &world.brief].map(|text| text.lines()).into_iter().flatten();
        for line in lines.filter(|line| !line.starts_with("Report: ")) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        assert!(world.brief.lines().count() <= 30, "{}", world.brief);
    }
}

#[test]
fn a_quick_run_is_labelled_first_and_in_one_wording() {
    let world = world_of(MockExecutor::new(&COSTS), |experiment| {
        experiment.stop = Stop::Blocks(2);
        experiment.quick = true;
    });
    assert!(
        QUICK.chars().count() <= WIDTH && world.text.starts_with(&format!("{QUICK}\n")),
        "{}",
        world.text
    );
    assert!(world.html.contains(&format!("<p class=\"quick\">{}</p>", QUICK.replace('\'', "&#39;"))));
}

#[test]
fn the_summary_has_the_documented_keys() {
    let world = world(5, &COSTS, None);
    let stored =
        std::fs::read_to_string(world.directory.path().join("results/summary.json")).expect("is there");
    let value: serde_json::Value = serde_json::from_str(&stored).expect("parses");
    let has = |value: &serde_json::Value, keys: &str| {
        for key in keys.split_whitespace() {
            assert!(value.get(key).is_some(), "`{key}` is missing");
        }
    };
    has(&value, "schema machine cells comparisons claims");
    has(
        &value["cells"][0],
        "case target version mode connections bytes rate blocks requests_per_second handshakes_per_second mean_us sd_us \
         p50_us p95_us p99_us error_ratio cpu_us_per_request cpu_us_per_handshake rss_kib utilisation limit validity",
    );
    has(&value["comparisons"][0], "metric baseline target mode case ratio low high blocks verdict");
}

#[test]
fn the_report_is_a_single_file() {
    let world = world(6, &COSTS, None);
    for outside in ["<script", "http-equiv", "<link", "@import", "url(", "src="] {
        assert!(!world.html.contains(outside), "{outside}");
    }
    for part in [
        "CPU per request at one equal rate",
        "CPU per request at saturation",
        "Latency",
        "fast-again",
        "<polyline",
    ] {
        assert!(world.html.contains(part), "{part}");
    }
    let command = "weir run experiments/small.toml --only &#39;name=fast,mode=h1-h1c,load=saturated,connections=8,bytes=100&#39; --blocks 1";
    assert!(world.html.contains(command));
    assert!(world.html.contains("a-load &#39;--header=X-Run: 1&#39;"), "words for a shell");
}

#[test]
fn summary_and_report_can_be_rebuilt() {
    let world = world(5, &COSTS, None);
    let results = world.directory.path().join("results");
    for name in ["summary.json", "report.html"] {
        std::fs::remove_file(results.join(name)).expect("was there");
    }
    let again = report::<Gateway>(&results).expect("reports");
    assert_eq!(again.full, world.text);
    assert_eq!(std::fs::read_to_string(results.join("report.html")).expect("is there"), world.html);
}

#[test]
fn a_directory_without_results_is_an_error_with_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = report::<Gateway>(directory.path()).expect_err("nothing is there");
    assert!(matches!(&error, LabError::NoResult { path, .. } if path == directory.path()), "{error}");
}
