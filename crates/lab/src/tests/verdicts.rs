//! False verdicts: changed synthetic runs, judged by the regular code.

use crate::experiment::metric::Metric;
use crate::experiment::options::RunOptions;
use crate::experiment::{Claim, Experiment, Stop};
use crate::findings::claims::ClaimVerdict;
use crate::findings::comparison::Comparison;
use crate::findings::judge::Judge as _;
use crate::findings::results::Results;
use crate::findings::summary::Summary;
use crate::instrument::gateway::testing::{experiment, record, targets};
use crate::instrument::gateway::{Gateway, Load, Mode, Place as _, Seen};
use crate::planning::plan::Plan;
use crate::planning::planned_run::Stage;
use crate::report::page;
use crate::report::words::labels;
use crate::running::conduct::{Broken, conduct};
use crate::stats::verdict::Verdict;
use crate::store::Store;
use crate::store::machine::Machine;
use crate::store::run::{Run, Validity};
use crate::testing::MockExecutor;
use weir_load::result::Limit;
use weir_report::model::Report;

const COSTS: [(&str, f64); 3] = [("direct", 10.0), ("fast", 20.0), ("slow", 25.0)];

/// Twelve blocks in cleartext of `fast` (twice, the A/A pair), `slow` (the baseline) and `direct`, changed and judged.
pub(crate) fn judged(
    setting: impl FnOnce(&mut Experiment),
    mut change: impl FnMut(&mut Run<Seen>, u32),
) -> (Plan, Summary) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut experiment = experiment();
    experiment.stop = Stop::Blocks(12);
    experiment.set_factor("mode", vec!["h1c".into(), "h1c-h1c".into()]);
    setting(&mut experiment);
    let mut plan = crate::instrument::gateway::testing::plan(
        experiment,
        &targets(directory.path()),
        &RunOptions::default(),
    )
    .expect("plans");
    let store = Store::create(&directory.path().join("results")).expect("is made");
    conduct::<Gateway>(&mut plan, &store, &mut MockExecutor::new(&COSTS), &mut (), Broken::GoesOn)
        .expect("runs");
    let mut records = store.runs::<Gateway>().expect("reads");
    for record in &mut records {
        if let Stage::Block(block) = record.run.stage {
            change(record, block);
        }
    }
    let summary = Summary::of::<Gateway>(&plan, &Machine::default(), &records);
    (plan, summary)
}

/// The page of this plan and summary.
pub(crate) fn shown((plan, summary): (Plan, Summary)) -> Report {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, machine) = (Store::open(directory.path()), Machine::default());
    let results = Results::<Gateway> {
        profiles: Vec::new(),
        advised: None,
        directory: directory.path().to_owned(),
        plan,
        machine,
        runs: Vec::new(),
        summary,
    };
    page::report(&results, &store)
}

fn compared<'a>(summary: &'a Summary, target: &str, load: Load, metric: Metric) -> &'a Comparison {
    let wanted =
        |one: &&Comparison| (one.target.as_str(), one.cell.load(), one.metric) == (target, load, metric);
    summary.comparisons.iter().find(wanted).expect("is compared")
}

/// Regression test: a target that is 25 % faster was capped by the load engine in four of twelve blocks, and the capped
/// blocks pulled the ratio without a remark.
#[test]
fn a_quarter_of_limited_runs_supports_no_verdict_and_fewer_are_noted() {
    let rate = |limited: u32| {
        let (_, summary) = judged(
            |_| {},
            |run, block| {
                if run.run.cell.name == "fast" && block <= limited {
                    run.seen.limit = Some(Limit::Load);
                }
            },
        );
        compared(&summary, "fast", Load::Saturated, Metric::RequestsPerSecond).clone()
    };
    let many = rate(3);
    assert_eq!((many.ratio.verdict, many.ratio.p_adjusted), (Verdict::Undecided, None));
    assert_eq!(many.ratio.note.as_deref(), Some("fast was limited by load in 3 of 12 runs"));
    assert_eq!(many.remark, None, "it is noted once");
    let few = rate(2);
    assert_eq!((few.ratio.verdict, few.ratio.note.as_deref()), (Verdict::Different, None));
    let words = few.verdict_text(0.03);
    assert!(words.ends_with(" % higher; fast was limited by load in 2 of 12 runs"), "{words}");
    assert_eq!(rate(0).remark, None);
}

/// Regression test: an experiment with its own `rate` may offer a target more than its maximum; the page said that the
/// rate was below every target's maximum.
#[test]
fn a_target_that_was_saturated_at_the_equal_rate_is_named() {
    let (_, summary) = judged(
        |experiment| experiment.set_constant("rate", 30_000.into()),
        |run, _| {
            if run.run.cell.name == "slow" && run.run.cell.load() == Load::EqualRate {
                run.seen.limit = Some(Limit::Gateway);
            }
        },
    );
    for metric in [Metric::CpuUsPerRequest, Metric::P99Us] {
        let one = compared(&summary, "fast", Load::EqualRate, metric);
        assert_eq!(one.remark.as_deref(), Some("slow was saturated at this rate in 12 of 12 runs"));
        assert_eq!(one.ratio.note, None);
    }
    let saturated = compared(&summary, "fast", Load::Saturated, Metric::CpuUsPerRequest);
    assert_eq!(saturated.remark, None, "saturation is intended there");
}

/// Regression test: the estimate leaves out values without a logarithm, but the number of blocks counted them.
#[test]
fn blocks_count_only_values_in_the_estimate() {
    let (_, summary) = judged(
        |_| {},
        |run, block| {
            if run.run.cell.name == "fast" && block == 5 {
                let load = run.seen.observation.load.as_mut().expect("has a result");
                load.servers[0].cost.cpu_us_per_request = Some(0.0);
            }
        },
    );
    let one = compared(&summary, "fast", Load::Saturated, Metric::CpuUsPerRequest);
    assert_eq!((one.blocks, one.ratio.verdict), (11, Verdict::Undecided));
    assert_eq!(one.ratio.note.as_deref(), Some("11 of 12 blocks have a value above 0"));
}

/// Regression test: a run without a result has no limit either, and got no remark.
#[test]
fn runs_without_a_result_support_nothing() {
    let mut run = record(Mode::H1cH1c, Load::Saturated);
    run.seen.limit = None;
    let free = record(Mode::H1cH1c, Load::Saturated);
    let runs = [&run, &free, &run];
    let why = Gateway::unsupported(Metric::RequestsPerSecond, &run.run.cell, "fast", &runs);
    assert_eq!(why.as_deref(), Some("fast has no result in 2 of 3 runs"));
}

fn invalidate(run: &mut Run<Seen>) {
    run.validity = Validity::Invalid("target: it ended".into());
}

fn claim(metric: &str, rest: &str) -> Claim {
    let cell = "{ target = 'fast', mode = 'h1c-h1c', load_model = 'saturated' }";
    let text = format!("id = 'c'\nsource = 'own'\nsays = 'S.'\nmetric = '{metric}'\ncell = {cell}\n{rest}");
    toml::from_str(&text).expect("is read")
}

/// The verdict on a claim about `fast`, saturated, and the note of its one cell.
fn found(
    metric: &str,
    rest: &str,
    change: impl FnMut(&mut Run<Seen>, u32),
) -> (ClaimVerdict, Option<String>) {
    let (_, summary) = judged(|experiment| experiment.claims = vec![claim(metric, rest)], change);
    let found = &summary.claims[0];
    (found.verdict, found.cells[0].note.clone())
}

fn is_of(run: &Run<Seen>, name: &str) -> bool {
    run.run.cell.name == name && run.run.cell.load() == Load::Saturated
}

/// Regression test: without a value of the A/A pair there was no noise floor, and every difference passed.
#[test]
fn nothing_is_different_beside_an_aa_pair_without_a_value() {
    let (plan, summary) = judged(
        |_| {},
        |run, block| {
            if is_of(run, "fast-again") && block > 4 {
                invalidate(run);
            }
        },
    );
    let why = "the A/A pair has no value, so the noise floor is unknown";
    for metric in [Metric::CpuUsPerRequest, Metric::RequestsPerSecond] {
        let one = compared(&summary, "fast", Load::Saturated, metric);
        assert_eq!((one.ratio.verdict, one.ratio.note.as_deref()), (Verdict::Undecided, Some(why)));
        assert!(one.ratio.value.is_some() && one.ratio.p_adjusted.is_some(), "the figures remain");
        let wanted = format!("{metric}, saturated): unknown; h1c-h1c ");
        let missing = "Unknown for 1 of 1: no difference is reported there.";
        let is_said = |label: &String| label.contains(&wanted) && label.ends_with(missing);
        assert!(
            labels::<Gateway>(&plan, &summary).iter().any(is_said),
            "{:?}",
            labels::<Gateway>(&plan, &summary)
        );
    }
    let equal = compared(&summary, "fast", Load::EqualRate, Metric::CpuUsPerRequest);
    assert_eq!(equal.ratio.verdict, Verdict::Different, "it has a pair of its own");
    let html = weir_report::page::render(&shown((plan, summary)));
    assert!(
        html.contains("the ratio is beyond the noise floor")
            && html.contains("no A/A pair shows a noise floor")
    );
}

/// Regression test: the page said "12 blocks" of an experiment interrupted after 6, and a cell without a counterpart
/// gave the others its weight.
#[test]
fn the_first_label_counts_the_valid_blocks_of_comparisons() {
    let first = |valid: u32| {
        let (plan, summary) = judged(
            |_| {},
            |run, block| {
                if run.run.cell.name != "direct" && block > valid {
                    invalidate(run);
                }
            },
        );
        labels::<Gateway>(&plan, &summary).swap_remove(0)
    };
    assert_eq!(
        first(6),
        "Indication: 6 valid of 12 planned blocks, not adjusted for the number of comparisons. A verdict needs 10 or more."
    );
    assert_eq!(first(0), "0 valid of 12 planned blocks: no interval and no verdict below 5.");
    assert_eq!(first(12), "Verdict: 12 valid of 12 planned blocks.");
}

/// Regression test: if `--only` excluded the noise floor or the baseline, no label said so.
#[test]
fn a_missing_pair_or_baseline_is_reported() {
    let (mut plan, mut summary) = judged(|_| {}, |_, _| {});
    let is_reported = |plan: &Plan, summary: &Summary, what: &str| {
        labels::<Gateway>(plan, summary).iter().any(|label| label.starts_with(what))
    };
    assert!(!is_reported(&plan, &summary, "No "));
    plan.cells.retain(|cell| cell.subject != "fast");
    summary.comparisons.retain(|one| !one.aa);
    let pair = "No noise floor: the A/A pair of fast is not run.";
    assert!(is_reported(&plan, &summary, pair), "{:?}", labels::<Gateway>(&plan, &summary));
    plan.absent.insert("fast".into(), "not installed".into());
    assert!(is_reported(&plan, &summary, "No noise floor: fast, which would be run twice, is absent."));
    plan.baseline = None;
    plan.experiment.baseline.push("fast".into());
    let baseline = "No baseline and no ratios to one: no cell of slow is run; fast is absent.";
    assert!(is_reported(&plan, &summary, baseline), "{:?}", labels::<Gateway>(&plan, &summary));
}

/// Regression test: a ratio of 0.8 beside an A/A pair of 1.3 was undecided as a comparison, but confirmed as a claim.
#[test]
fn a_claim_has_to_pass_the_noise_floor_of_its_comparison() {
    let judge = |expect: &str, noise: f64| {
        found("cpu_us_per_request", &format!("against = {{ target = 'slow' }}\n{expect}"), |run, _| {
            let load = run.seen.observation.load.as_mut().expect("has a result");
            if run.run.cell.name == "fast-again" {
                let cost = &mut load.servers[0].cost;
                cost.cpu_us_per_request = cost.cpu_us_per_request.map(|us| us * noise);
            }
        })
    };
    assert_eq!(judge("expect = '< 1'", 1.0), (ClaimVerdict::Confirmed, None));
    let (verdict, note) = judge("expect = '< 1'", 1.3);
    assert_eq!(verdict, ClaimVerdict::Undecided);
    assert!(
        note.as_ref().is_some_and(|note| note.starts_with("its bound is within the A/A noise of 3")),
        "{note:?}"
    );
    assert_eq!(judge("expect = '> 1'", 1.3).0, ClaimVerdict::Undecided, "not contradicted either");
    assert_eq!(judge("expect = '< 1.2'", 1.3).0, ClaimVerdict::Confirmed, "0.8 times 1.3 is below");
    let (verdict, note) =
        found("cpu_us_per_request", "against = { target = 'slow' }\nexpect = '< 1'", |run, _| {
            if run.run.cell.name == "fast-again" {
                invalidate(run);
            }
        });
    assert_eq!(verdict, ClaimVerdict::Undecided);
    assert_eq!(note.as_deref(), Some("the A/A pair has no value, so the noise floor is unknown"));
}

/// Regression test: a target that was never ready in 7 of 12 runs, and one that failed half of its requests in one run,
/// were confirmed to make no errors.
#[test]
fn a_claim_about_errors_is_judged_by_the_worst_run_and_needs_a_result_of_each() {
    let errors = |dead: u32, bad: u32| {
        found("error_ratio", "expect = '<= 0.0001'", |run, block| {
            if is_of(run, "fast") && block <= dead {
                (run.seen.observation.load, run.seen.limit) = (None, None);
                invalidate(run);
            } else if is_of(run, "fast") && block <= dead + bad {
                let load = run.seen.observation.load.as_mut().expect("has a result");
                load.errors.insert("reset".into(), load.requests);
                invalidate(run);
            }
        })
    };
    let name = "request.h1c-h1c.c8.b100.saturated.fast";
    assert_eq!(errors(0, 0), (ClaimVerdict::Confirmed, None));
    assert_eq!(
        errors(7, 0),
        (ClaimVerdict::Undecided, Some(format!("{name} has no result in 7 of 12 runs")))
    );
    assert_eq!(
        errors(1, 0),
        (ClaimVerdict::Undecided, Some(format!("{name} has no result in 1 of 12 runs")))
    );
    assert_eq!(errors(0, 1), (ClaimVerdict::Contradicted, None));
    assert_eq!(errors(5, 1), (ClaimVerdict::Contradicted, None), "whatever the other runs are");
}

/// Regression test: the shorter the timeout, the shorter was the mean of a target that hangs.
#[test]
fn a_mean_with_censored_samples_is_no_value() {
    let censor = |run: &mut Run<Seen>, block| {
        if run.run.cell.name == "fast" && block == 3 {
            let load = run.seen.observation.load.as_mut().expect("has a result");
            // The shortest of them took longer than the median.
            (load.response.censored, load.response.censored_from_us) = (1, Some(10_000.0));
        }
    };
    for (metric, what) in [("mean_us", "mean"), ("little_ratio", "mean")] {
        let (verdict, note) = found(metric, "expect = '> 0'", censor);
        assert_eq!(verdict, ClaimVerdict::Undecided);
        let note = note.unwrap_or_default();
        let expected = format!(
            "the {what} of request.h1c-h1c.c8.b100.saturated.fast is only a lower bound in 1 of 12 runs"
        );
        assert_eq!(note, expected);
    }
    assert_eq!(
        found("p50_us", "expect = '> 0'", censor),
        (ClaimVerdict::Confirmed, None),
        "below all censored samples"
    );
    let (_, summary) = judged(|_| {}, censor);
    let cell = summary.cells.iter().find(|cell| cell.cell.name == "fast").expect("is there");
    assert_eq!((cell.get(Metric::MeanUs), cell.get(Metric::SdUs)), (None, None));
    assert!(
        cell.get(Metric::P50Us).is_some()
            && summary.cells.iter().any(|cell| cell.get(Metric::MeanUs).is_some())
    );
}

/// Regression test: with handshakes only the summary had no requests, and a claim took their rate for that of requests.
#[test]
fn a_claim_about_requests_has_none_where_connections_carry_none() {
    for metric in ["requests_per_second", "cpu_us_per_request"] {
        let (verdict, note) = found(metric, "expect = '> 0'", |run, _| {
            let load = run.seen.observation.load.as_mut().expect("has a result");
            load.asked.requests_per_connection = "handshake-only".into();
        });
        assert_eq!(verdict, ClaimVerdict::Undecided);
        assert!(note.is_some_and(|note| note.ends_with("carry no request")), "{metric}");
    }
}
