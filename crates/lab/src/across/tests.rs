//! Pairs of made-up results with a known truth.

use super::*;
use crate::export::Compared;
use crate::stats::Weight;
use crate::synthetic::{Host, Shape, Synthetic, Truth};
use crate::verdict::Verdict;

const BEFORE: [(&str, &str); 2] = [("fast", "1.0"), ("slow", "7")];
const AFTER: [(&str, &str); 2] = [("fast", "1.1"), ("slow", "7")];

fn shape<'a>(blocks: u32, versions: &'a [(&'a str, &'a str)]) -> Shape<'a> {
    Shape { aa: false, blocks, groups: 1, versions }
}

fn pair(blocks: u32, after: &[(&str, &str)], truth: Truth<'_>) -> (Across, [Results; 2]) {
    let a = Synthetic::new(shape(blocks, &BEFORE), 1).experiment(Truth::NOTHING);
    let b = Synthetic::new(shape(blocks, after), 2).experiment(truth);
    (of(&a, &b, &[]).expect("are of one plan"), [a, b])
}

fn change<'a>(across: &'a Across, target: &str, metric: Metric) -> &'a Change {
    let wanted = |one: &&Change| one.target == target && one.metric == metric;
    across.changes.iter().find(wanted).expect("is compared")
}

#[test]
fn a_release_that_costs_more_is_a_regression() {
    let (across, _) = pair(12, &AFTER, Truth { effects: &[("fast", 1.2)], ..Truth::NOTHING });
    let cost = change(&across, "fast", Metric::CpuUsPerRequest);
    assert_eq!((cost.verdict, cost.weight, cost.unchanged), (Verdict::Different, Weight::Verdict, false));
    assert!(cost.ratio.is_some_and(|ratio| (ratio / 1.2 - 1.0).abs() < 0.03), "{cost:?}");
    assert_eq!((cost.version_a.as_str(), cost.version_b.as_str()), ("1.0", "1.1"));
    let control = change(&across, "slow", Metric::CpuUsPerRequest);
    assert!(control.unchanged && control.verdict != Verdict::Different, "{control:?}");
    let worse: Vec<Metric> = across.regressions().map(|one| one.metric).collect();
    assert_eq!(worse, [Metric::CpuUsPerRequest, Metric::RequestsPerSecond]);
    let text = across.text();
    assert!(text.contains("Changed: fast 1.0 -> 1.1. Unchanged, they show the drift: slow 7."), "{text}");
    assert!(text.contains("-> ") && text.contains(" % higher\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= crate::table::WIDTH), "{text}");
    let failing = Compared(&across).junit(true);
    assert!(failing.contains("failures=\"2\"") && Compared(&across).junit(false).contains("failures=\"0\""));
}

#[test]
fn a_release_that_costs_less_is_no_regression() {
    let (across, _) = pair(12, &AFTER, Truth { effects: &[("fast", 0.8)], ..Truth::NOTHING });
    assert_eq!(change(&across, "fast", Metric::CpuUsPerRequest).verdict, Verdict::Different);
    assert_eq!(across.regressions().count(), 0);
}

#[test]
fn nothing_is_said_of_a_release_when_the_unchanged_moved_as_well() {
    let (across, _) = pair(12, &AFTER, Truth { effects: &[("fast", 1.2)], drift: 1.3, host: Host::Steady });
    assert_eq!(change(&across, "slow", Metric::CpuUsPerRequest).verdict, Verdict::Different);
    let cost = change(&across, "fast", Metric::CpuUsPerRequest);
    assert_eq!(cost.verdict, Verdict::Undecided);
    let note = cost.note.as_deref().unwrap_or_default();
    assert!(note.starts_with("the unchanged targets moved as well (slow h1c-h1c 1."), "{note}");
    assert_eq!(across.regressions().count(), 0, "what is the session's is no regression");
}

#[test]
fn without_a_new_version_all_are_taken_for_changed_unless_one_is_named() {
    let (across, [a, b]) = pair(12, &BEFORE, Truth { effects: &[("fast", 1.2)], ..Truth::NOTHING });
    assert!(across.changes.iter().all(|one| !one.unchanged));
    assert!(across.labels[1].starts_with("No target's version differs"), "{:?}", across.labels);
    assert_eq!(across.regressions().count(), 2);
    let named = of(&a, &b, &["fast".to_owned()]).expect("are of one plan");
    assert!(change(&named, "slow", Metric::CpuUsPerRequest).unchanged);
    assert_eq!(change(&named, "fast", Metric::CpuUsPerRequest).verdict, Verdict::Different);
    let error = of(&a, &b, &["fats".to_owned()]).expect_err("is refused").to_string();
    assert_eq!(error, "--changed fats: no such target in both results: allowed are fast, slow");
}

#[test]
fn five_blocks_are_an_indication_and_four_are_nothing() {
    let effects = Truth { effects: &[("fast", 1.3)], ..Truth::NOTHING };
    let five = pair(5, &AFTER, effects).0;
    let cost = change(&five, "fast", Metric::CpuUsPerRequest);
    assert_eq!((cost.verdict, cost.weight), (Verdict::Different, Weight::Indication));
    assert!(five.text().contains("Indication: 5 blocks."), "{}", five.text());
    let four = pair(4, &AFTER, effects).0;
    let cost = change(&four, "fast", Metric::CpuUsPerRequest);
    assert_eq!(cost.note.as_deref(), Some("4 blocks: no interval below 5"));
}

#[test]
fn what_is_of_another_plan_or_machine_is_refused_and_says_what_differs() {
    let [a, b] = [1, 2].map(|seed| Synthetic::new(shape(5, &BEFORE), seed).experiment(Truth::NOTHING));
    let refused = |change: fn(&mut Results)| {
        let mut other = b.clone();
        change(&mut other);
        of(&a, &other, &[]).expect_err("is refused").message
    };
    for (message, change) in [
        (
            "experiment: `synthetic` in A, `other`",
            (|b| b.plan.experiment.name = "other".into()) as fn(&mut Results),
        ),
        ("window_ms: `50` in A, `60` in B", |b| {
            b.plan.experiment.constants.insert("window_ms".into(), 60.into());
        }),
        ("tls.tickets: `2` in A, `1` in B", |b| {
            let tls = toml::Table::from_iter([("tickets".to_owned(), 1.into())]);
            b.plan.experiment.constants.insert("tls".into(), tls.into());
        }),
        ("factor delay_ms: `0` in A, `0, 5` in B", |b| {
            let delay = b.plan.experiment.factors.iter_mut().find(|factor| factor.key == "delay_ms");
            delay.expect("is a factor").levels.push(5.into());
        }),
        ("factors: `delay_ms` in A, `` in B", |b| {
            b.plan.experiment.factors.retain(|one| one.key == "target");
        }),
        ("processor: `` in A, `Z80` in B", |b| b.machine.cpu = "Z80".into()),
        ("cores: `[]` in A, `[7]` in B", |b| b.machine.cores = vec![7]),
        ("network: `` in A, `veth` in B", |b| b.machine.network = "veth".into()),
        ("they have no cell in common", |b| b.plan.cells.clear()),
    ] {
        let found = refused(change);
        assert!(found.contains(message), "{found}");
    }
    let mut labelled = b.clone();
    labelled.machine.kernel = "Linux 9".into();
    labelled.plan.cells.retain(|cell| cell.name != "slow");
    let across = of(&a, &labelled, &[]).expect("another kernel is told");
    assert!(
        across.labels.iter().any(|label| label == "Differs: kernel:  in A, Linux 9 in B."),
        "{:?}",
        across.labels
    );
    assert_eq!((across.only_a.len(), across.only_b.len()), (1, 0));
    assert!(across.text().contains("Only in A: request.h1c-h1c.c8.b100.saturated.delay_ms=0.slow."));
}

/// With the same truth in both sessions: few false alarms, and intervals that hold 1 as often as they say.
#[test]
fn two_sessions_of_the_same_raise_few_alarms() {
    const EXPERIMENTS: u32 = 300;
    let [mut a, mut b] =
        [(&BEFORE, 11), (&AFTER, 12)].map(|(versions, seed)| Synthetic::new(shape(12, versions), seed));
    let (mut different, mut covered, mut coverage) = (0_u32, 0_u32, 0.0);
    for _ in 0..EXPERIMENTS {
        let across =
            of(&a.experiment(Truth::NOTHING), &b.experiment(Truth::NOTHING), &[]).expect("are of one plan");
        let cost = change(&across, "fast", Metric::CpuUsPerRequest);
        let (low, high) = cost.low.zip(cost.high).expect("twelve blocks");
        different += u32::from(cost.verdict == Verdict::Different);
        covered += u32::from(low <= 1.0 && 1.0 <= high);
        coverage = cost.coverage.expect("has an interval");
    }
    println!("{different} of {EXPERIMENTS} different, {covered} intervals hold 1, coverage {coverage}");
    let n = f64::from(EXPERIMENTS);
    assert!(f64::from(different) <= 0.05 * n, "{different}");
    // 3.29 standard deviations of the binomial: one in a thousand falls outside.
    let reach = 3.29 * (n * coverage * (1.0 - coverage)).sqrt();
    assert!((f64::from(covered) - n * coverage).abs() <= reach, "{covered}");
}
