//! Scaling: the rate per thread as the number of threads grows.

use super::title;
use crate::experiment::metric::Metric;
use crate::findings::summary::CellSummary;
use crate::planning::cell::Levels;
use crate::planning::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_load::plural;

/// A drop of the rate per thread by more than [`MUCH`] below ideal scaling on these cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Drop {
    /// The scenario without `threads`.
    scenario: Levels,
    /// The engine's name in the results.
    engine: String,
    /// The number of threads.
    threads: u64,
    /// The number of threads it is compared with.
    fewest: u64,
    /// The number of cores.
    cores: usize,
    /// The rate per thread, divided by the rate if the threads shared nothing but the cores.
    kept: f64,
}

/// Two identical runs on a steady machine differ by less.
const MUCH: f64 = 0.15;

/// The drops of all engines and scenarios with varying threads.
pub(super) fn drops(cells: &[CellSummary], cores: usize) -> Vec<Drop> {
    let mut families: BTreeMap<(Levels, &str), Vec<(u64, f64)>> = BTreeMap::new();
    for found in cells {
        let Some(threads) = found.cell.levels.number("threads") else { continue };
        let Some(rate) = found.get(Metric::HandshakesPerSecond) else { continue };
        let family = (found.cell.levels.without("threads"), found.cell.name.as_str());
        families.entry(family).or_default().push((threads, rate / threads as f64));
    }
    let mut drops = Vec::new();
    for ((scenario, engine), mut points) in families {
        points.sort_by_key(|(threads, _)| *threads);
        let Some(((fewest, alone), more)) = points.split_first() else { continue };
        let drop = |&(threads, rate): &(u64, f64)| {
            let kept = rate / alone * share(*fewest, cores).recip() / share(threads, cores);
            Drop { scenario: scenario.clone(), engine: engine.into(), threads, fewest: *fewest, cores, kept }
        };
        drops.extend(more.iter().map(drop).filter(|drop| drop.kept < 1.0 - MUCH));
    }
    drops
}

/// The share of a core per thread.
fn share(threads: u64, cores: usize) -> f64 {
    (cores as f64 / threads as f64).min(1.0)
}

/// The largest drop of each engine, with the number of its others.
pub(super) fn largest(drops: &[Drop]) -> Vec<String> {
    let mut engines: BTreeMap<&str, Vec<&Drop>> = BTreeMap::new();
    for drop in drops {
        engines.entry(&drop.engine).or_default().push(drop);
    }
    let line = |own: Vec<&Drop>| {
        let largest = own.iter().min_by(|one, other| one.kept.total_cmp(&other.kept))?;
        Some(match own.len() {
            1 => format!("{}.", largest.text()),
            count => format!("{}; the largest of its {count} drops.", largest.text()),
        })
    };
    engines.into_values().filter_map(line).collect()
}

impl Drop {
    /// `resumption by ticket, TLS 1.2: rustls-0.23.16: 4 threads are 38 % below ideal scaling from 1 on 2 cores`.
    fn text(&self) -> String {
        let Self { engine, threads, fewest, cores, kept, .. } = self;
        let (scenario, lost) = (title::of(&self.scenario), (1.0 - kept) * 100.0);
        let cores = plural(*cores as u64, "core");
        format!(
            "{scenario}: {engine}: {threads} threads are {lost:.0} % below ideal scaling from {fewest} on {cores}"
        )
    }
}

/// The time inside a lock, and its bound on the rate: more cores do not speed up serialized work.
pub(super) fn in_locks(plan: &Plan, found: &CellSummary, ns: f64) -> String {
    let bound = || format!("at most {:.0} k/s", 1e6 / ns);
    format!("in locks {ns:.0} ns ({})", plan.remarks.get(&found.cell.id).cloned().unwrap_or_else(bound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Level;
    use crate::findings::value::Value;
    use crate::planning::cell::Cell;
    use crate::store::run::Validity;

    fn found(engine: &str, threads: u32, rate: f64) -> CellSummary {
        let levels = [("do", Level::new("handshake")), ("threads", Level::new(threads))];
        let levels = levels.map(|(key, level)| (key.to_owned(), level)).into_iter().collect();
        CellSummary {
            cell: Cell { id: String::new(), name: engine.into(), subject: engine.into(), levels },
            version: String::new(),
            rate: None,
            blocks: 10,
            valid_runs: 10,
            invalid_runs: 0,
            limit: None,
            validity: Validity::Valid,
            why_invalid: None,
            why_uncounted: None,
            values: [(Metric::HandshakesPerSecond, Value::exactly(rate))].into(),
        }
    }

    fn cells() -> [CellSummary; 8] {
        [
            found("even", 1, 100.0),
            found("even", 2, 190.0),
            found("even", 4, 180.0),
            found("locked", 1, 100.0),
            found("locked", 2, 120.0),
            found("locked", 4, 60.0),
            found("slower", 1, 100.0),
            found("slower", 2, 160.0),
        ]
    }

    #[test]
    fn a_drop_is_not_explained_by_the_cores() {
        let drops = drops(&cells(), 2);
        let kept: Vec<(&str, u64, f64)> =
            drops.iter().map(|drop| (drop.engine.as_str(), drop.threads, drop.kept)).collect();
        assert_eq!(kept, [("locked", 2, 0.6), ("locked", 4, 0.3), ("slower", 2, 0.8)]);
    }

    /// Regression test: on a busy machine, the report began with a line for each of 27 drops of about the same size.
    #[test]
    fn each_engine_has_one_line() {
        assert_eq!(
            largest(&drops(&cells(), 2)),
            [
                "handshake: locked: 4 threads are 70 % below ideal scaling from 1 on 2 cores; the largest of its 2 drops.",
                "handshake: slower: 2 threads are 20 % below ideal scaling from 1 on 2 cores."
            ]
        );
    }
}
