use super::*;

fn points(values: &[f64]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (result, value) in values.iter().enumerate() {
        let mut point = Point {
            result,
            version: "1".into(),
            rate: None,
            value: Some(*value),
            low: None,
            high: None,
            blocks: 12,
            change: None,
            note: None,
        };
        point.follow(points.last(), Load::Saturated);
        points.push(point);
    }
    points
}

fn last(metric: Metric, values: &[f64]) -> Last {
    Last::of(metric, &points(values), None, 0.03).expect("two values")
}

#[test]
fn quantiles_are_those_of_r() {
    // R: quantile(c(1, 2, 4, 8), c(0.25, 0.5, 0.75))
    let sorted = [1.0, 2.0, 4.0, 8.0];
    assert_eq!([0.25, 0.5, 0.75].map(|at| quantile(&sorted, at)), [Some(1.75), Some(3.0), Some(5.0)]);
    assert_eq!(quantile(&[], 0.5), None);
}

/// Ten quiet results, of which each differs from the one before by 1 or 2 %.
const QUIET: [f64; 10] = [100.0, 101.0, 100.0, 102.0, 101.0, 100.0, 102.0, 100.0, 101.0, 100.0];

#[test]
fn from_ten_past_results_on_the_threshold_is_learnt() {
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
fn less_than_ten_past_results_have_the_default() {
    let found = last(Metric::CpuUsPerRequest, &[&QUIET[..9], &[120.0]].concat());
    assert_eq!(
        (found.rule, found.threshold, found.verdict),
        (Rule::Default, DEFAULT_THRESHOLD, Trend::Usual)
    );
    assert_eq!(last(Metric::CpuUsPerRequest, &[100.0, 140.0]).verdict, Trend::Regression);
    assert_eq!(last(Metric::RequestsPerSecond, &[100.0, 140.0]).verdict, Trend::Improvement);
    assert_eq!(last(Metric::RequestsPerSecond, &[140.0, 100.0]).verdict, Trend::Regression);
    assert!(Last::of(Metric::P99Us, &points(&[100.0]), None, 0.03).is_none());
}

#[test]
fn nothing_below_the_minimum_is_reported() {
    let still = [100.0; 10];
    let found = last(Metric::CpuUsPerRequest, &[&still[..], &[102.9]].concat());
    assert_eq!((found.rule, found.threshold, found.verdict), (Rule::Minimum, 0.03, Trend::Usual));
    assert_eq!(last(Metric::CpuUsPerRequest, &[&still[..], &[103.1]].concat()).verdict, Trend::Regression);
}

#[test]
fn a_threshold_that_is_given_counts() {
    let found = Last::of(Metric::CpuUsPerRequest, &points(&[100.0, 111.0]), Some(0.1), 0.03).expect("two");
    assert_eq!((found.rule, found.verdict), (Rule::Given, Trend::Regression));
}

#[test]
fn a_change_between_two_rates_is_none() {
    let mut two = points(&[100.0, 100.0]);
    let (first, second) = two.split_at_mut(1);
    (first[0].rate, second[0].rate, second[0].change) = (Some(1000.0), Some(1100.0), None);
    second[0].follow(first.first(), Load::EqualRate);
    assert_eq!(second[0].change, None);
    assert!(second[0].note.as_ref().is_some_and(|note| note.contains("1000/s")), "{:?}", second[0].note);
}

#[test]
fn a_sparkline_runs_from_the_least_to_the_largest() {
    assert_eq!(sparkline(&[Some(1.0), None, Some(8.0), Some(4.5)]), "▁ █▅");
    assert_eq!(sparkline(&[Some(2.0), Some(2.0)]), "▄▄");
    assert_eq!(sparkline(&vec![Some(1.0); 80]).chars().count(), 50);
}
