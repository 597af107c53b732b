//! Experiments in duets: the pairs, the comparisons, and the runs alone.

use super::world::*;
use crate::across::{self, Change};
use crate::experiment::metric::Metric;
use crate::experiment::{Experiment, Layout, Stop};
use crate::findings::claims::ClaimVerdict;
use crate::findings::results::Results;
use crate::instrument::gateway::{Gateway, Load, Mode, Place as _, Seen};
use crate::report::shown::Shown as _;
use crate::stats::verdict::Verdict;
use crate::store::Store;
use crate::store::run::Run;
use crate::testing::MockExecutor;

/// A host with several times more noise than the difference between the two targets.
fn noisy(change: impl FnOnce(&mut Experiment)) -> World {
    let executor = MockExecutor { host_noise: 0.3, ..MockExecutor::new(&COSTS) };
    world_of(executor, |experiment| {
        experiment.stop = Stop::Blocks(12);
        change(experiment);
    })
}

fn in_duets(alone_blocks: u32) -> World {
    noisy(|experiment| (experiment.layout, experiment.alone_blocks) = (Layout::Duet, alone_blocks))
}

#[test]
fn every_cell_runs_beside_its_counterpart() {
    let world = in_duets(3);
    let store = Store::open(&world.directory.path().join("results"));
    let plan = store.plan().expect("is there");
    for (index, block) in plan.blocks.iter().enumerate() {
        let (duets, alone): (Vec<_>, Vec<_>) = block.iter().partition(|turn| turn.0.len() == 2);
        // In two modes under two loads: slow, the baseline, beside fast, and fast beside itself.
        assert_eq!(duets.len(), 2 * 2 * 2, "block {}", index + 1);
        for turn in duets {
            let [first, second] = turn.0.as_slice() else { panic!("no duet") };
            assert_eq!(first.beside.as_deref(), Some(second.cell.id.as_str()));
            assert_eq!(second.beside.as_deref(), Some(first.cell.id.as_str()));
            assert_eq!(first.cell.place(), second.cell.place());
        }
        assert_eq!(alone.len(), if (index + 1) % 4 == 0 { plan.cells.len() } else { 0 });
    }
    assert_eq!(plan.blocks.len(), 12);
}

#[test]
fn common_noise_decides_nothing() {
    let cpu = |world: &World| verdict(world, "fast", Mode::H1H1c, Load::Saturated, Metric::CpuUsPerRequest);
    let (verdict, ratio, note) = cpu(&in_duets(0));
    assert_eq!(verdict, Verdict::Different, "{note:?}");
    let ratio = ratio.expect("has one");
    assert!((ratio - 0.8).abs() < 0.03, "{ratio}");
    assert_eq!(cpu(&noisy(|_| {})).0, Verdict::Undecided, "in sequence the difference is lost in the noise");
}

#[test]
fn a_duet_compares_only_metrics_by_cpu_clocks() {
    let world = in_duets(3);
    let comparisons = &world.summary.comparisons;
    assert!(!comparisons.is_empty() && comparisons.iter().all(|one| one.metric == Metric::CpuUsPerRequest));
    assert!(comparisons.iter().all(|one| one.blocks == 12));
    let found = world.summary.cells.iter().find(|found| found.cell.name == "fast").expect("is there");
    assert!(found.get(Metric::RequestsPerSecond).is_some() && found.limit.is_some(), "from its runs alone");
    let world = in_duets(0);
    let found = world.summary.cells.iter().find(|found| found.cell.name == "fast").expect("is there");
    assert!(found.get(Metric::CpuUsPerRequest).is_some());
    assert_eq!((found.get(Metric::RequestsPerSecond), found.limit), (None, None));
    assert!(
        world.summary.cells.iter().all(|found| found.cell.mode().upstream().is_some()),
        "direct runs alone"
    );
}

#[test]
fn the_first_line_is_a_sentence_with_a_ratio() {
    let world = in_duets(0);
    let first = world.brief.lines().next().expect("a line");
    let words = world.brief.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = "times the CPU per request of slow";
    assert!(first.contains("fast uses 0.8") && words.contains(wanted), "{first}");
}

/// Only the foreign load decides which runs are repeated, never their results.
#[test]
fn a_disturbed_duet_is_repeated_and_the_quieter_attempt_counts() {
    let disturbed = |part, repeats| {
        let executor = MockExecutor { disturbed: Some(part), ..MockExecutor::new(&COSTS) };
        let world = world_of(executor, |experiment| {
            experiment.stop = Stop::Blocks(12);
            experiment.layout = Layout::Duet;
            experiment.repeats = repeats;
        });
        let store = Store::open(&world.directory.path().join("results"));
        let runs = store.runs::<Gateway>().expect("are read");
        let kept = runs.iter().filter(|run| run.seen.observation.foreign_cpu == Some(0.5)).count();
        (store.disturbed(), kept, world)
    };
    let (again, kept, world) = disturbed("b003-002", 0.2);
    assert_eq!((again, kept), (2, 0), "both runs of the duet");
    assert!(world.text.contains("2 runs repeated"), "{}", world.text);
    // 96 duets, all disturbed at first: the budget limits the repeats.
    let (again, kept, _) = disturbed("b0", 0.25);
    assert_eq!((again, kept), (2 * 24, 2 * 72));
    assert_eq!(disturbed("b003-002", 0.0).0, 0);
}

/// Regression test: a claim about a rate was undecided although the duets had decided it.
#[test]
fn a_claim_about_rates_is_decided_by_the_cpu_time_of_duets() {
    let judged = |layout, expect: &str| {
        let world = noisy(|experiment| {
            experiment.layout = layout;
            let claim = format!(
                "id = 'C'\nsource = 'here'\nsays = 'more'\nmetric = 'requests_per_second'\nexpect = '{expect}'\n\
                 cell = {{ target = 'fast', load_model = 'saturated' }}\nagainst = {{ target = 'slow' }}\n"
            );
            experiment.claims = vec![toml::from_str(&claim).expect("a claim")];
        });
        let [claim] = world.summary.claims.as_slice() else { panic!("one claim") };
        (claim.verdict, claim.metric, claim.asked_text())
    };
    // CPU per request of fast is 0.8 of that of slow.
    let (verdict, metric, asked) = judged(Layout::Duet, "> 1.1");
    assert_eq!((verdict, metric), (ClaimVerdict::Confirmed, Some(Metric::CpuUsPerRequest)));
    assert_eq!(asked, "CPU per request: ratio < 0.909");
    assert_eq!(judged(Layout::Duet, "1.4 .. 1.6").0, ClaimVerdict::Contradicted);
    assert_eq!(judged(Layout::Blocks, "> 1.1").1, Some(Metric::RequestsPerSecond));
}

/// Regression test: a claim about latency was judged by runs that shared their cores.
#[test]
fn a_metric_that_a_duet_does_not_measure_is_undecided_in_a_claim() {
    let claim = |metric: &str| {
        format!(
            "id = 'C'\nsource = 'here'\nsays = 'it is less'\nmetric = '{metric}'\n\
            expect = '0.5 .. 0.9'\ncell = {{ target = 'fast', load_model = 'saturated' }}\n\
            against = {{ target = 'slow' }}\n"
        )
    };
    let verdict = |metric: &str| {
        let world = noisy(|experiment| {
            experiment.layout = Layout::Duet;
            experiment.claims = vec![toml::from_str(&claim(metric)).expect("a claim")];
        });
        let [claim] = world.summary.claims.as_slice() else { panic!("one claim") };
        (claim.verdict, claim.cells.iter().filter_map(|one| one.note.clone()).collect::<String>())
    };
    assert_eq!(verdict("cpu_us_per_request").0, ClaimVerdict::Confirmed);
    let (found, why) = verdict("p99_us");
    assert_eq!(found, ClaimVerdict::Undecided);
    assert!(why.contains("it shared its cores with another"), "{why}");
}

/// Regression test: a cell that runs beside several others has several runs in a block, and all but one counted as missing
/// from a claim about errors.
#[test]
fn a_claim_about_errors_counts_every_duet() {
    let claim = "id = 'C'\nsource = 'here'\nsays = 'no errors'\nmetric = 'error_ratio'\nexpect = '<= 0.0001'\n\
                 cell = { target = 'fast', load_model = 'saturated' }\n";
    let world = noisy(|experiment| {
        experiment.layout = Layout::Duet;
        experiment.claims = vec![toml::from_str(claim).expect("a claim")];
    });
    let [claim] = world.summary.claims.as_slice() else { panic!("one claim") };
    let note = claim.cells.iter().find_map(|one| one.note.clone());
    assert_eq!((claim.verdict, note), (ClaimVerdict::Confirmed, None));
}

/// Two results are compared by the duets that both have: another neighbour on the same core is another condition.
#[test]
fn a_neighbour_in_one_result_only_enters_no_comparison_of_two() {
    let world = in_duets(0);
    let results = || Gateway::results(&world.directory.path().join("results")).expect("are read");
    let (mut a, mut b) = (results(), results());
    let is_fast_beside = |run: &Run<Seen>, other: &str| {
        run.run.cell.name == "fast" && run.run.beside.as_deref().is_some_and(|beside| beside.ends_with(other))
    };
    for run in a.runs.iter_mut().filter(|run| is_fast_beside(run, ".slow")) {
        for server in &mut run.seen.observation.load.as_mut().expect("has a result").servers {
            server.cost.cpu_us_per_request = server.cost.cpu_us_per_request.map(|cost| 2.0 * cost);
        }
    }
    let change = |a: &Results<Gateway>, b: &Results<Gateway>| {
        let across = across::of(a, b, &[]).expect("are of one plan");
        let is_it = |one: &&Change| one.target == "fast" && one.metric == Metric::CpuUsPerRequest;
        across.changes.iter().find(is_it).expect("is compared").ratio.value.expect("has a value")
    };
    let ratio = change(&a, &b);
    assert!(ratio < 0.8, "both neighbours count: {ratio}");
    b.runs.retain(|run| !is_fast_beside(run, ".slow"));
    let ratio = change(&a, &b);
    assert!((ratio - 1.0).abs() < 0.01, "the common neighbour alone counts: {ratio}");
}
