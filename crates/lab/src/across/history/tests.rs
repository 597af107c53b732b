use super::text::sparkline;
use super::trend::quantile;
use super::*;
use crate::across::export::Past;
use crate::experiment::Level;
use crate::instrument::gateway::synthetic::{Shape, Synthetic, Truth};
use crate::instrument::gateway::{Gateway, Seen};
use crate::store::run::Validity;
use weir_load::result::Limit;

/// One point a night; `None` without evidence.
fn nights(values: &[Option<f64>]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (result, value) in values.iter().enumerate() {
        let mut point = Point {
            result,
            version: "1".into(),
            rate: None,
            value: *value,
            low: None,
            high: None,
            blocks: 12,
            change: None,
            note: None,
            is_usable: value.is_some(),
        };
        point.follow(&points);
        points.push(point);
    }
    points
}

fn points(values: &[f64]) -> Vec<Point> {
    nights(&values.iter().copied().map(Some).collect::<Vec<_>>())
}

fn latest(metric: Metric, points: &[Point], given: Option<f64>) -> Latest {
    Latest::of(metric, points, points.len() - 1, given, 0.03)
}

fn last(metric: Metric, values: &[f64]) -> Last {
    *latest(metric, &points(values), None).change().expect("two values")
}

#[test]
fn quantiles_are_those_of_r() {
    // R: quantile(c(1, 2, 4, 8), c(0.25, 0.5, 0.75))
    let sorted = [1.0, 2.0, 4.0, 8.0];
    assert_eq!([0.25, 0.5, 0.75].map(|at| quantile(&sorted, at)), [Some(1.75), Some(3.0), Some(5.0)]);
    assert_eq!(quantile(&[], 0.5), None);
}

/// Ten quiet results, each 1 or 2 % off the one before.
const QUIET: [f64; 10] = [100.0, 101.0, 100.0, 102.0, 101.0, 100.0, 102.0, 100.0, 101.0, 100.0];

#[test]
fn from_nine_past_changes_on_the_threshold_is_learnt() {
    let with = |value| last(Metric::CpuUsPerRequest, &[&QUIET[..], &[value]].concat());
    // Nine changes: ln 1.01 five times, ln 1.02 three times, ln (102/101) once; Q1 = ln (102/101), Q3 = ln 1.02.
    let expected = {
        let (first, third) = ((102.0_f64 / 101.0).ln(), 1.02_f64.ln());
        (third + 3.0 * (third - first)).exp_m1()
    };
    let found = with(110.0);
    assert_eq!(found.rule, Rule::Learnt(9));
    assert!((found.threshold - expected).abs() < 2e-3, "{found:?} is not {expected}");
    assert_eq!(found.verdict, Trend::Regression);
    assert_eq!(with(90.0).verdict, Trend::Improvement);
    assert_eq!(with(103.0).verdict, Trend::Usual);
}

#[test]
fn less_than_nine_past_changes_have_the_default() {
    let found = last(Metric::CpuUsPerRequest, &[&QUIET[..9], &[120.0]].concat());
    assert_eq!(
        (found.rule, found.threshold, found.verdict),
        (Rule::Default(8), DEFAULT_THRESHOLD, Trend::Usual)
    );
    assert_eq!(last(Metric::CpuUsPerRequest, &[100.0, 140.0]).verdict, Trend::Regression);
    assert_eq!(last(Metric::RequestsPerSecond, &[100.0, 140.0]).verdict, Trend::Improvement);
    assert_eq!(last(Metric::RequestsPerSecond, &[140.0, 100.0]).verdict, Trend::Regression);
    assert_eq!(latest(Metric::P99Us, &points(&[100.0]), None), Latest::Alone);
}

/// Regression test: with ten results, most of them limited by the load engine, a threshold was learnt from one change.
#[test]
fn a_threshold_is_learnt_from_changes_and_not_from_results() {
    let limited = [None; 8];
    let points = nights(&[&[Some(100.0)], &limited[..], &[Some(100.5), Some(110.0)]].concat());
    let found = *latest(Metric::CpuUsPerRequest, &points, None).change().expect("three values");
    assert_eq!(
        (found.rule, found.threshold, found.verdict),
        (Rule::Default(1), DEFAULT_THRESHOLD, Trend::Usual)
    );
    assert_eq!(found.rule.to_string(), "the default: fewer than 9 past changes (1)");
}

/// Regression test: more was better for rates only, and metrics without a better direction had one.
#[test]
fn each_metric_has_its_own_better_direction() {
    let half = [100.0, 50.0];
    for (metric, verdict) in [
        (Metric::GcThroughputPercent, Trend::Regression),
        (Metric::HandshakesPerSecond, Trend::Regression),
        (Metric::AfterFullGcKib, Trend::Improvement),
        (Metric::MeanUs, Trend::Improvement),
        (Metric::Utilisation, Trend::Moved),
        (Metric::LittleRatio, Trend::Moved),
    ] {
        assert_eq!(last(metric, &half).verdict, verdict, "{metric}");
        assert!(
            verdict != Trend::Moved || !metric.better().is_worse(0.5) && !metric.better().is_worse(2.0),
            "{metric}"
        );
    }
}

#[test]
fn nothing_below_the_minimum_is_reported() {
    let still = [100.0; 10];
    let found = last(Metric::CpuUsPerRequest, &[&still[..], &[102.9]].concat());
    assert_eq!((found.rule, found.threshold, found.verdict), (Rule::Minimum, 0.03, Trend::Usual));
    assert_eq!(last(Metric::CpuUsPerRequest, &[&still[..], &[103.1]].concat()).verdict, Trend::Regression);
}

#[test]
fn a_given_threshold_counts() {
    let points = points(&[100.0, 111.0]);
    let found = *latest(Metric::CpuUsPerRequest, &points, Some(0.1)).change().expect("two");
    assert_eq!((found.rule, found.verdict), (Rule::Given, Trend::Regression));
}

#[test]
fn a_change_is_from_the_newest_value_at_the_same_rate() {
    let at = |rates: &[f64]| {
        let mut all = points(&vec![100.0; rates.len()]);
        all.iter_mut().zip(rates).for_each(|(point, rate)| point.rate = Some(*rate));
        let mut newest = all.pop().expect("a point");
        newest.change = None;
        newest.follow(&all);
        newest
    };
    let newest = at(&[1000.0, 1100.0]);
    assert_eq!(newest.change, None);
    assert!(newest.note.as_ref().is_some_and(|note| note.contains("1000/s")), "{:?}", newest.note);
    let newest = at(&[900.0, 1000.0, 1100.0, 1010.0]);
    assert_eq!((newest.change, newest.note), (Some(Step { ratio: 1.0, since: 1 }), None));
}

#[test]
fn a_sparkline_runs_from_the_smallest_to_the_largest() {
    assert_eq!(sparkline(&[Some(1.0), None, Some(8.0), Some(4.5)]), "▁ █▅");
    assert_eq!(sparkline(&[Some(2.0), Some(2.0)]), "▄▄");
    assert_eq!(sparkline(&vec![Some(1.0); 80]).chars().count(), 50);
}

/// Stored nights of targets `fast` and `slow`; `costs` are those of `fast`, relative to the first night.
fn stored(costs: &[f64]) -> Vec<Results<Gateway>> {
    let shape = Shape { aa: false, blocks: 6, groups: 1, versions: &[("fast", "1"), ("slow", "7")] };
    let mut synthetic = Synthetic::new(shape, 1);
    let night = |cost: &f64| synthetic.experiment(Truth { effects: &[("fast", *cost)], ..Truth::NOTHING });
    let mut all: Vec<Results<Gateway>> = costs.iter().map(night).collect();
    for (day, results) in (0..).zip(&mut all) {
        results.machine.started_unix = day * 86_400;
        results.directory = format!("night{day}").into();
    }
    all
}

fn spoil(results: &mut Results<Gateway>, change: impl Fn(&mut crate::store::run::Run<Seen>)) {
    results.runs.iter_mut().filter(|record| record.run.cell.name == "fast").for_each(change);
}

fn followed(all: &[Results<Gateway>], options: &HistoryOptions) -> (History, Latest) {
    let history = of(all, options).expect("are of one plan");
    let fast = history.series.iter().find(|series| series.target == "fast").expect("is followed").latest;
    (history, fast)
}

/// Regression test: a regression was reported again each night after its cell was dropped.
#[test]
fn a_cell_missing_from_the_newest_result_has_no_change() {
    let mut all = stored(&[1.0, 1.5, 1.0]);
    all[2].plan.cells.retain(|cell| cell.name != "fast");
    let (history, fast) = followed(&all, &HistoryOptions::default());
    assert_eq!((fast, history.regressions().count()), (Latest::Absent, 0));
    assert!(history.text().contains("the cell is not in the newest result"), "{}", history.text());
    assert_eq!(followed(&all[..2], &HistoryOptions::default()).0.regressions().count(), 1);
}

/// Regression test: the night after one limited by the load engine had no predecessor, and so no regression.
#[test]
fn a_night_without_evidence_hides_no_regression() {
    let mut all = stored(&[1.0, 1.0, 1.5]);
    spoil(&mut all[1], |record| record.seen.limit = Some(Limit::Load));
    let (history, fast) = followed(&all, &HistoryOptions::default());
    let found = fast.change().expect("two nights can be compared");
    assert_eq!((found.step.since, found.verdict), (0, Trend::Regression));
    let text = history.text();
    for part in ["1 (since 19700101-000000)\n", " since 19700101-000000: regression "] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let csv = Past(&history).csv();
    let newest = csv.lines().find(|row| row.contains(".fast,") && row.contains(",night2,"));
    assert!(newest.is_some_and(|row| row.contains(",night0,")), "{csv}");
}

/// Regression test: a release with only wrong responses was a night without a value.
#[test]
fn a_broken_cell_is_a_regression_until_it_works_again() {
    let mut all = stored(&[1.0, 1.0, 1.0, 1.0]);
    for night in [1, 2] {
        spoil(&mut all[night], |record| record.validity = Validity::Invalid("wrong answers".into()));
    }
    for newest in [1, 2] {
        let (history, fast) = followed(&all[..=newest], &HistoryOptions::default());
        assert_eq!((fast, history.regressions().count()), (Latest::Broken(0), 1));
        let text = history.text();
        let said = "broken: valid runs in 19700101-000000, none in the newest result\n";
        assert!(text.contains(said), "{text}");
        assert!(Past(&history).csv().contains(",broken,fast has no valid run\n"));
    }
    assert_eq!(followed(&all, &HistoryOptions::default()).0.regressions().count(), 0);
}

/// Regression test: with a threshold below the margin, the page denied reporting changes that it did report.
#[test]
fn the_page_names_the_largest_unreported_change() {
    let all = stored(&[1.0, 1.0]);
    let text = |threshold| followed(&all, &HistoryOptions { threshold, ..Default::default() }).0.text();
    assert!(text(None).contains("Changes of 3.0 % or less are"), "{}", text(None));
    assert!(text(Some(0.01)).contains("Changes of 1.0 % or less are"), "{}", text(Some(0.01)));
}

/// Regression test: the rate offered by the load engine was followed as if it were the target's.
#[test]
fn an_offered_rate_is_not_followed() {
    let mut all = stored(&[1.0, 1.0]);
    let rate = HistoryOptions { metric: Some(Metric::RequestsPerSecond), ..Default::default() };
    let at_one_rate = |all: &mut [Results<Gateway>], name: &str| {
        for Results { plan, runs, .. } in all {
            let cells = plan.cells.iter_mut().chain(runs.iter_mut().map(|run| &mut run.run.cell));
            cells.filter(|cell| cell.name == name).for_each(|cell| {
                cell.levels = cell.levels.with("load_model", Level::new("equal-rate"));
            });
        }
    };
    at_one_rate(&mut all, "slow");
    let (history, _) = followed(&all, &rate);
    assert_eq!(history.series.len(), 1);
    assert!(history.text().contains("Cells at equal-rate are omitted"), "{}", history.text());
    at_one_rate(&mut all, "fast");
    let error = of(&all, &rate).expect_err("nothing is left").to_string();
    assert!(error.contains("rates are followed at saturation only"), "{error}");
}

#[test]
fn errors_are_rejected_with_the_metrics_that_can_be_followed() {
    let options = HistoryOptions { metric: Some(Metric::ErrorRatio), ..Default::default() };
    let error = of(&stored(&[1.0]), &options).expect_err("is refused").to_string();
    let start = "--metric: invalid value `error_ratio`: ";
    assert!(error.starts_with(start) && error.contains("cpu_us_per_request, "), "{error}");
    let metrics: Result<BTreeSet<Metric>, String> = FOLLOWED.split(", ").map(str::parse).collect();
    let metrics = metrics.expect("are metrics");
    assert!(metrics.len() == 13 && !metrics.contains(&Metric::ErrorRatio), "{metrics:?}");
}

#[test]
fn another_build_is_reported_once_for_all_nights() {
    let mut all = stored(&[1.0, 1.0, 1.0]);
    for (results, build) in all.iter_mut().zip(["x", "y", "z"]) {
        results.machine.sources.insert("this program".into(), build.into());
    }
    let text = followed(&all, &HistoryOptions::default()).0.text();
    let said = "Differs: another build of this program: load engine and origin differ.";
    assert_eq!(text.matches(said).count(), 1, "{text}");
}

mod stacks;
