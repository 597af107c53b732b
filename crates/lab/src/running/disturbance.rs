//! Disturbed runs: which to repeat, by the foreign load and never by their results.

use crate::findings::foreign::FOREIGN_MUCH;
use crate::findings::judge::Judge;
use crate::planning::plan::Turn;
use crate::store::run::RunOf;
use weir_load::plural;

/// The highest foreign load of the runs, if above the limit.
pub(crate) fn of<I: Judge>(runs: &[RunOf<I>]) -> Option<f64> {
    worst::<I>(runs).filter(|share| *share > FOREIGN_MUCH)
}

fn worst<I: Judge>(runs: &[RunOf<I>]) -> Option<f64> {
    runs.iter().filter_map(|run| I::facts(&run.seen).taken).reduce(f64::max)
}

/// The attempt with less foreign load, then the other.
pub(crate) fn quieter<I: Judge>(
    first: Vec<RunOf<I>>,
    second: Vec<RunOf<I>>,
) -> (Vec<RunOf<I>>, Vec<RunOf<I>>) {
    match worst::<I>(&second) < worst::<I>(&first) {
        true => (second, first),
        false => (first, second),
    }
}

/// `foreign load took 34 % of the cores: repeating 2 turns`.
pub(crate) fn again(share: f64, group: &[Turn]) -> String {
    let turns = plural(group.len() as u64, "turn");
    format!("foreign load took {:.0} % of the cores: repeating {turns}", share * 100.0)
}
