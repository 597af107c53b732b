//! Pairs of made-up results with a known truth.

mod stacks;

use super::*;
use crate::across::export::Compared;
use crate::experiment::Level;
use crate::experiment::metric::Metric;
use crate::instrument::gateway::synthetic::{Host, Shape, Synthetic, Truth};
use crate::instrument::gateway::{Gateway, Mode};
use crate::stats::Weight;
use crate::stats::verdict::Verdict;
use crate::store::machine::Machine;
use crate::store::run::Validity;
use crate::store::stamp;

const BEFORE: [(&str, &str); 2] = [("fast", "1.0"), ("slow", "7")];
const AFTER: [(&str, &str); 2] = [("fast", "1.1"), ("slow", "7")];

fn shape<'a>(blocks: u32, versions: &'a [(&'a str, &'a str)]) -> Shape<'a> {
    Shape { aa: false, blocks, groups: 1, versions }
}

fn pair(blocks: u32, after: &[(&str, &str)], truth: Truth<'_>) -> (Across, [Results<Gateway>; 2]) {
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
    assert_eq!(
        (cost.ratio.verdict, cost.ratio.weight, cost.unchanged),
        (Verdict::Different, Weight::Verdict, false)
    );
    assert!(cost.ratio.value.is_some_and(|ratio| (ratio / 1.2 - 1.0).abs() < 0.03), "{cost:?}");
    assert_eq!((cost.version_a.as_str(), cost.version_b.as_str()), ("1.0", "1.1"));
    let control = change(&across, "slow", Metric::CpuUsPerRequest);
    assert!(control.unchanged && control.ratio.verdict != Verdict::Different, "{control:?}");
    let worse = across.changes.iter().filter(|one| one.is_regression());
    let worse: Vec<Metric> = worse.map(|one| one.metric).collect();
    assert_eq!(worse, [Metric::CpuUsPerRequest, Metric::RequestsPerSecond]);
    let text = across.text();
    assert!(text.contains("Changed: fast 1.0 -> 1.1. Unchanged, showing the drift: slow 7."), "{text}");
    assert!(text.contains("-> ") && text.contains(" % higher\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= weir_report::text::WIDTH), "{text}");
    let failing = Compared(&across).junit(true);
    assert!(failing.contains("failures=\"2\"") && Compared(&across).junit(false).contains("failures=\"0\""));
}

#[test]
fn a_release_that_costs_less_is_no_regression() {
    let (across, _) = pair(12, &AFTER, Truth { effects: &[("fast", 0.8)], ..Truth::NOTHING });
    assert_eq!(change(&across, "fast", Metric::CpuUsPerRequest).ratio.verdict, Verdict::Different);
    assert_eq!(across.regressions().shown.len(), 0);
}

#[test]
fn a_release_is_undecided_when_the_unchanged_moved_as_well() {
    let (across, _) = pair(12, &AFTER, Truth { effects: &[("fast", 1.2)], drift: 1.3, host: Host::Steady });
    assert_eq!(change(&across, "slow", Metric::CpuUsPerRequest).ratio.verdict, Verdict::Different);
    let cost = change(&across, "fast", Metric::CpuUsPerRequest);
    assert_eq!(cost.ratio.verdict, Verdict::Undecided);
    let note = cost.ratio.note.as_deref().unwrap_or_default();
    assert!(note.starts_with("the unchanged targets moved as well (slow h1c-h1c 1."), "{note}");
    assert_eq!(across.regressions().shown.len(), 0, "drift is no regression");
}

#[test]
fn without_a_new_version_all_count_as_changed_unless_one_is_named() {
    let (across, [a, b]) = pair(12, &BEFORE, Truth { effects: &[("fast", 1.2)], ..Truth::NOTHING });
    assert!(across.changes.iter().all(|one| !one.unchanged));
    assert!(across.labels[1].starts_with("No target is known to differ"), "{:?}", across.labels);
    assert_eq!(across.regressions().shown.len(), 2);
    let named = of(&a, &b, &["fast".to_owned()]).expect("are of one plan");
    assert!(change(&named, "slow", Metric::CpuUsPerRequest).unchanged);
    assert_eq!(change(&named, "fast", Metric::CpuUsPerRequest).ratio.verdict, Verdict::Different);
    let error = of(&a, &b, &["fats".to_owned()]).expect_err("is refused").to_string();
    assert_eq!(error, "--changed: unknown target `fats`: expected one of those in both results: fast, slow");
}

/// Two results of one version each, where `fast` is this program; their hashes are `[this program, slow's template]`.
fn built(hashes: [[&str; 2]; 2], truth: Truth<'_>) -> [Results<Gateway>; 2] {
    let made = |seed: u64, truth: Truth<'_>, [program, template]: [&str; 2]| {
        let mut results = Synthetic::new(shape(12, &BEFORE), seed).experiment(truth);
        let sources = [(Machine::THIS_PROGRAM, program), ("fast", "f"), ("slow", template)];
        results.machine.sources = sources.map(|(name, hash)| (name.to_owned(), hash.to_owned())).into();
        for record in &mut results.runs {
            let target = if record.run.cell.name == "fast" { "nsenter -- /w/weir serve" } else { "slowd /w" };
            for process in &mut record.seen.observation.processes {
                let words = match process.role.as_str() {
                    "load" => "nsenter -- /w/weir load http://x",
                    "target" => target,
                    _ => "/w/weir origin",
                };
                process.command = words.split(' ').map(str::to_owned).collect();
            }
        }
        results
    };
    [made(1, Truth::NOTHING, hashes[0]), made(2, truth, hashes[1])]
}

/// Regression test: a release without a new version number was its own control, so its extra cost counted as drift.
#[test]
fn another_build_or_template_is_no_control_though_the_version_is_the_same() {
    let slower = Truth { effects: &[("fast", 1.2)], ..Truth::NOTHING };
    let [a, b] = built([["x", "s"], ["y", "s"]], slower);
    let across = of(&a, &b, &[]).expect("are of one plan");
    assert!(!change(&across, "fast", Metric::CpuUsPerRequest).unchanged);
    assert!(change(&across, "slow", Metric::CpuUsPerRequest).unchanged, "a rival is the same");
    assert_eq!(across.regressions().shown.len(), 2);
    let label = "Differs: another build of this program: load engine and origin differ.";
    assert!(across.labels.iter().any(|one| one == label), "{:?}", across.labels);

    let [a, b] = built([["x", "s"], ["x", "t"]], Truth::NOTHING);
    let across = of(&a, &b, &[]).expect("are of one plan");
    assert!(!change(&across, "slow", Metric::CpuUsPerRequest).unchanged);
    assert!(change(&across, "fast", Metric::CpuUsPerRequest).unchanged);
    let label = "Differs: another build, description or template of slow.";
    assert!(across.labels.iter().any(|one| one == label), "{:?}", across.labels);
}

/// Regression test: with equal versions, cells without a gateway counted as changed, and their drift as a regression.
#[test]
fn cells_without_a_gateway_are_always_a_control() {
    let drift = Truth { drift: 1.3, ..Truth::NOTHING };
    let [a, b] = [(1, Truth::NOTHING), (2, drift)].map(|(seed, truth)| {
        let mut results = Synthetic::new(shape(12, &BEFORE), seed).experiment(truth);
        let of_runs = results.runs.iter_mut().map(|record| &mut record.run.cell);
        for cell in results.plan.cells.iter_mut().chain(of_runs).filter(|cell| cell.name == "slow") {
            (cell.name, cell.subject) = ("direct".into(), "direct".into());
            cell.levels = cell.levels.with("mode", Level::new(Mode::H1c));
        }
        results
    });
    let across = of(&a, &b, &[]).expect("are of one plan");
    let direct = change(&across, "direct", Metric::RequestsPerSecond);
    assert_eq!((direct.unchanged, direct.ratio.verdict), (true, Verdict::Different));
    let rate = change(&across, "fast", Metric::RequestsPerSecond);
    let note = rate.ratio.note.as_deref().unwrap_or_default();
    assert!(
        !rate.unchanged && note.starts_with("the unchanged targets moved as well (direct h1c 0."),
        "{note}"
    );
    assert!(across.labels[1].ends_with("Unchanged, showing the drift: direct."), "{:?}", across.labels);
}

/// Regression test: a release with only wrong responses had no valid run to compare, and passed every gate.
#[test]
fn a_release_that_does_not_work_is_a_failure() {
    let (_, [a, mut b]) = pair(12, &AFTER, Truth::NOTHING);
    let spoil = |results: &mut Results<Gateway>, name: &str| {
        for record in results.runs.iter_mut().filter(|record| record.run.cell.name == name) {
            record.validity = Validity::Invalid("2000 wrong answers".into());
        }
    };
    spoil(&mut b, "fast");
    let across = of(&a, &b, &[]).expect("are of one plan");
    let cost = change(&across, "fast", Metric::CpuUsPerRequest);
    assert_eq!((cost.broken, cost.ratio.verdict), (true, Verdict::Undecided));
    let words = "broken: 12 valid runs in A, none of 12 in B (invalid: 2000 wrong answers)";
    assert_eq!(cost.verdict_text(across.margin), words);
    assert_eq!(across.regressions().shown.len(), 2);
    let failing = Compared(&across).junit(true);
    assert!(failing.contains("failures=\"2\"") && failing.contains(words), "{failing}");
    assert!(Compared(&across).junit(false).contains("failures=\"0\""));
    let back = of(&b, &a, &[]).expect("are of one plan");
    assert_eq!(back.regressions().shown.len(), 0, "what was broken before is none");

    let mut idle = a.clone();
    spoil(&mut idle, "slow");
    let across = of(&a, &idle, &["fast".to_owned()]).expect("are of one plan");
    assert_eq!(across.regressions().shown.len(), 0, "nor is an unchanged target");
}

/// Regression test: the same body in another checkout counted as another plan, and another body at the same path as the
/// same plan.
#[test]
fn files_are_compared_by_content() {
    let with_file = |path: &str, hash: Option<&str>| {
        let mut results = Synthetic::new(shape(5, &BEFORE), 1).experiment(Truth::NOTHING);
        let load = toml::Table::from_iter([("data".to_owned(), path.into())]);
        results.plan.experiment.constants.insert("load".into(), load.into());
        let hash = hash.map(|hash| (format!("load.data={path}"), hash.to_owned()));
        results.machine.sources.extend(hash);
        results
    };
    let first = with_file("/ci/101/body", Some("x"));
    of(&first, &with_file("/ci/102/body", Some("x")), &[]).expect("are of one plan");
    for (other, message) in [
        (
            with_file("/ci/101/body", Some("y")),
            "load.data: the contents of `/ci/101/body` in A and of `/ci/101/body` in B differ; expected one plan",
        ),
        (with_file("/ci/102/body", None), "load.data: `/ci/101/body` in A, `/ci/102/body` in B"),
    ] {
        let found = of(&first, &other, &[]).expect_err("is refused").message;
        assert!(found.contains(message), "{found}");
    }
}

#[test]
fn a_page_names_its_results() {
    let (across, [a, _]) = pair(5, &AFTER, Truth::NOTHING);
    let page = Compared(&across).markdown();
    let first = format!("started {}", stamp(a.machine.started_unix));
    assert!(page.contains("\n- A: ") && page.contains("\n- B: ") && page.contains(&first), "{page}");
}

#[test]
fn five_blocks_are_an_indication_and_four_are_none() {
    let effects = Truth { effects: &[("fast", 1.3)], ..Truth::NOTHING };
    let five = pair(5, &AFTER, effects).0;
    let cost = change(&five, "fast", Metric::CpuUsPerRequest);
    assert_eq!((cost.ratio.verdict, cost.ratio.weight), (Verdict::Different, Weight::Indication));
    assert!(five.text().contains("Indication: 5 blocks."), "{}", five.text());
    let four = pair(4, &AFTER, effects).0;
    let cost = change(&four, "fast", Metric::CpuUsPerRequest);
    assert_eq!(cost.ratio.note.as_deref(), Some("4 blocks: no interval below 5"));
}

#[test]
fn another_plan_or_machine_is_rejected_with_the_difference() {
    let [a, b] = [1, 2].map(|seed| Synthetic::new(shape(5, &BEFORE), seed).experiment(Truth::NOTHING));
    let refused = |change: fn(&mut Results<Gateway>)| {
        let mut other = b.clone();
        change(&mut other);
        of(&a, &other, &[]).expect_err("is refused").message
    };
    for (message, change) in [
        (
            "experiment: `synthetic` in A, `other`",
            (|b| b.plan.experiment.name = "other".into()) as fn(&mut Results<Gateway>),
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
        ("processor: `` in A, `Z80` in B", |b| b.machine.hardware.cpu = "Z80".into()),
        ("cores: `[]` in A, `[7]` in B", |b| b.machine.cores = vec![7]),
        ("network: `` in A, `veth` in B", |b| b.machine.network = "veth".into()),
        ("no cell in common", |b| b.plan.cells.clear()),
    ] {
        let found = refused(change);
        assert!(found.contains(message), "{found}");
    }
    let mut labelled = b.clone();
    labelled.machine.hardware.kernel = "Linux 9".into();
    labelled.plan.cells.retain(|cell| cell.name != "slow");
    let across = of(&a, &labelled, &[]).expect("another kernel is a label");
    assert!(
        across.labels.iter().any(|label| label == "Differs: kernel:  in A, Linux 9 in B."),
        "{:?}",
        across.labels
    );
    assert_eq!((across.only_a.len(), across.only_b.len()), (1, 0));
    assert!(across.text().contains("Only in A: request.h1c-h1c.c8.b100.saturated.delay_ms=0.slow."));
}

/// Regression test: two values of a setting were refused without a word on how to compare them.
#[test]
fn two_values_of_a_key_come_with_the_commands_that_compare_them() {
    let with = |value: Option<&str>| {
        let mut results = Synthetic::new(shape(5, &BEFORE), 1).experiment(Truth::NOTHING);
        let plan = &mut results.plan;
        let settings = value.map(|value| ("pool".to_owned(), toml::Value::from(value)));
        let settings = toml::Table::from_iter(settings);
        plan.experiment.constants.insert("settings".into(), settings.into());
        let set = format!("settings.pool={}", value.unwrap_or_default());
        (plan.file, plan.only) = ("my/pool.toml".into(), vec![("mode".into(), "h1c-h1c".into())]);
        plan.arguments = ["--quick", "--set", &set, "--set", "users=8"].map(str::to_owned).into();
        results
    };
    let refused = |a: &Results<Gateway>, b: &Results<Gateway>| of(a, b, &[]).expect_err("is refused").message;
    let run = "expected one plan; to compare the two values, measure both in one result: `weir run my/pool.toml --quick \
               --set users=8 --only mode=h1c-h1c --set 'settings.pool=[\"small\", \"large\"]' --out out/both`, then `weir \
               compare out/both settings.pool=small settings.pool=large`";
    let [small, large] = ["small", "large"].map(|value| with(Some(value)));
    let message = refused(&small, &large);
    assert!(
        message.starts_with("settings.pool: `small` in A, `large` in B;") && message.ends_with(run),
        "{message}"
    );
    let message = refused(&with(None), &large);
    let run = "--set 'settings.pool=[\"DEFAULT\", \"large\"]' --out out/both`, then `weir compare out/both \
               settings.pool=DEFAULT settings.pool=large`, with the default of `settings.pool` for DEFAULT";
    assert!(message.ends_with(run), "{message}");
    // One level each of the same factor, which --only chose.
    let [mut a, mut b] = [with(None), with(None)];
    for (results, level) in [(&mut a, "0"), (&mut b, "5")] {
        for factor in results.plan.experiment.factors.iter_mut().filter(|factor| factor.key == "delay_ms") {
            factor.levels = vec![0.into(), 5.into()];
        }
        for cell in &mut results.plan.cells {
            cell.levels = cell.levels.with("delay_ms", Level::new(level));
            cell.id = cell.id.replace("delay_ms=0", &format!("delay_ms={level}"));
        }
    }
    let message = refused(&a, &b);
    let run = "--set 'delay_ms=[0, 5]' --out out/both`, then `weir compare out/both delay_ms=0 delay_ms=5`";
    assert!(message.starts_with("no cell in common; to compare") && message.ends_with(run), "{message}");
}

/// With the same truth in both sessions: few false alarms, and intervals that contain 1 as often as they claim.
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
        let (low, high) = cost.ratio.low.zip(cost.ratio.high).expect("twelve blocks");
        different += u32::from(cost.ratio.verdict == Verdict::Different);
        covered += u32::from(low <= 1.0 && 1.0 <= high);
        coverage = cost.ratio.coverage.expect("has an interval");
    }
    println!("{different} of {EXPERIMENTS} different, {covered} intervals hold 1, coverage {coverage}");
    let n = f64::from(EXPERIMENTS);
    assert!(f64::from(different) <= 0.05 * n, "{different}");
    // 3.29 standard deviations of the binomial: one in a thousand falls outside.
    let reach = 3.29 * (n * coverage * (1.0 - coverage)).sqrt();
    assert!((f64::from(covered) - n * coverage).abs() <= reach, "{covered}");
}
