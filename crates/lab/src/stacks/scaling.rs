//! What more threads make of the rate of each.

use super::cell::Scenario;
use super::summary::CellFindings;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_load::plural;

/// The rate of each thread beside that of the fewest, where it is more than [`MUCH`] below what the cores allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drop {
    /// The scenario without its threads.
    pub scenario: Scenario,
    /// The engine, as the results name it.
    pub engine: String,
    /// How many threads.
    pub threads: u64,
    /// The threads with which it is compared.
    pub fewest: u64,
    /// The cores that they had.
    pub cores: usize,
    /// Rate of each thread over what it would be if cores were all that they share.
    pub kept: f64,
}

/// Two identical runs of an even machine differ by less.
const MUCH: f64 = 0.15;

/// The drops of all engines and scenarios in which threads vary.
pub(super) fn drops(cells: &[CellFindings], cores: usize) -> Vec<Drop> {
    let mut families: BTreeMap<(Scenario, &str), Vec<(u64, f64)>> = BTreeMap::new();
    for found in cells {
        let Some((threads, rate)) = of_each(found) else { continue };
        let family = (found.cell.scenario.without("threads"), found.cell.name.as_str());
        families.entry(family).or_default().push((threads, rate));
    }
    let mut drops = Vec::new();
    for ((scenario, engine), mut points) in families {
        points.sort_by_key(|(threads, _)| *threads);
        let Some(((fewest, alone), more)) = points.split_first() else { continue };
        for (threads, rate) in more {
            let kept = rate / alone * share(*fewest, cores).recip() / share(*threads, cores);
            if kept < 1.0 - MUCH {
                let (threads, fewest) = (*threads, *fewest);
                drops.push(Drop {
                    scenario: scenario.clone(),
                    engine: engine.into(),
                    threads,
                    fewest,
                    cores,
                    kept,
                });
            }
        }
    }
    drops
}

/// The threads of a cell and the rate of each.
fn of_each(found: &CellFindings) -> Option<(u64, f64)> {
    let threads = found.cell.scenario.number("threads")?;
    let all = found.values.get(&Metric::HandshakesPerSecond)?.value;
    Some((threads, all / threads as f64))
}

/// How much of a core each of so many threads has.
fn share(threads: u64, cores: usize) -> f64 {
    (cores as f64 / threads as f64).min(1.0)
}

impl Drop {
    /// `handshake.1.2.resumed-ticket: rustls-0.23.16: 4 threads make 38 % less than ...`.
    pub(super) fn text(&self) -> String {
        let Self { engine, threads, fewest, cores, kept, .. } = self;
        let (scenario, lost) = (self.scenario.title(), (1.0 - kept) * 100.0);
        let cores = plural(*cores as u64, "core");
        format!(
            "{scenario}: {engine}: {threads} threads make {lost:.0} % less than {fewest} on {cores} would"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Level;
    use crate::stacks::cell::StackCell;
    use crate::stacks::summary::Located;

    fn found(engine: &str, threads: u32, rate: f64) -> CellFindings {
        let levels = [("do", Level::new("handshake")), ("threads", Level::new(threads))];
        let scenario = Scenario::new(levels.map(|(key, level)| (key.to_owned(), level)).into());
        CellFindings {
            cell: StackCell { name: engine.into(), engine: engine.into(), scenario },
            blocks: 10,
            invalid_runs: 0,
            why_invalid: None,
            why_uncounted: None,
            values: [(Metric::HandshakesPerSecond, Located { value: rate, low: None, high: None })].into(),
        }
    }

    #[test]
    fn a_drop_is_what_cores_do_not_explain() {
        let cells = [
            found("even", 1, 100.0),
            found("even", 2, 190.0),
            found("even", 4, 180.0),
            found("locked", 1, 100.0),
            found("locked", 2, 120.0),
            found("locked", 4, 60.0),
        ];
        let texts: Vec<String> = drops(&cells, 2).iter().map(Drop::text).collect();
        assert_eq!(
            texts,
            [
                "handshake: locked: 2 threads make 40 % less than 1 on 2 cores would",
                "handshake: locked: 4 threads make 70 % less than 1 on 2 cores would"
            ]
        );
    }
}
