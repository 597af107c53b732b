//! The same for TLS stacks.

use super::*;
use crate::instrument::stacks::Stacks;
use crate::instrument::stacks::synthetic::{self, Made};

#[test]
fn a_library_is_followed_through_its_versions() {
    let nights = [("1.0", 1.0), ("1.1", 1.0), ("1.2", 1.5)];
    let all: Vec<Results<Stacks>> = nights
        .into_iter()
        .zip(1..)
        .map(|((version, effect), seed)| {
            let mut results = synthetic::results(&Made { version, effect, seed, ..Made::NOTHING });
            results.machine.started_unix = seed;
            results
        })
        .collect();
    let cells = parse_cells("engine=fast,certificate=rsa-2048").expect("is read");
    let options = HistoryOptions { cells, ..HistoryOptions::default() };
    let history = of(&all, &options).expect("are of one plan");
    let [series] = history.series.as_slice() else { panic!("{:?}", history.series) };
    assert_eq!(series.cell, "handshake.1.3.full.rsa-2048.tickets=2.fast");
    assert_eq!(series.metric, Metric::ServerUsPerHandshake);
    let versions: Vec<&str> = series.points.iter().map(|point| point.version.as_str()).collect();
    assert_eq!(versions, ["fake 1.0", "fake 1.1", "fake 1.2"]);
    assert_eq!(history.regressions().count(), 1);
    let last = series.latest.change().expect("three values");
    assert!((last.step.ratio / 1.5 - 1.0).abs() < 0.03 && last.verdict == Trend::Regression, "{last:?}");
    let memory = HistoryOptions { metric: Some(Metric::KibPerSession), ..HistoryOptions::default() };
    assert_eq!(of(&all, &memory).expect("has values").series.len(), 2);

    let cells = parse_cells("colour=red").expect("is read");
    let error = of(&all, &HistoryOptions { cells, ..HistoryOptions::default() }).expect_err("is refused");
    assert!(
        error.to_string().starts_with("--cell: unknown key `colour`: expected one of engine, name, "),
        "{error}"
    );
}
