//! Runs that others disturbed: which are made again, by what was taken from them and never by what they came to.

use crate::foreign::FOREIGN_MUCH;
use crate::instrument::{Instrument, RunOf};
use crate::plan::Turn;
use weir_load::plural;

/// The most that others took of the cores in any of the runs, where it is much.
pub(crate) fn of<I: Instrument>(runs: &[RunOf<I>]) -> Option<f64> {
    worst::<I>(runs).filter(|share| *share > FOREIGN_MUCH)
}

fn worst<I: Instrument>(runs: &[RunOf<I>]) -> Option<f64> {
    runs.iter().filter_map(|run| I::facts(&run.seen).taken).reduce(f64::max)
}

/// Of two attempts the one from which less was taken, and the other.
pub(crate) fn quieter<I: Instrument>(
    first: Vec<RunOf<I>>,
    second: Vec<RunOf<I>>,
) -> (Vec<RunOf<I>>, Vec<RunOf<I>>) {
    match worst::<I>(&second) < worst::<I>(&first) {
        true => (second, first),
        false => (first, second),
    }
}

/// `others took 34 % of the cores: 2 turns once more`.
pub(crate) fn again(share: f64, group: &[Turn]) -> String {
    let turns = plural(group.len() as u64, "turn");
    format!("others took {:.0} % of the cores: {turns} once more", share * 100.0)
}
