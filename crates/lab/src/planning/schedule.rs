//! The runs of a block, and their order.

use crate::experiment::metric::Metric;
use crate::experiment::{Claim, Layout};
use crate::planning::cell::{Cell, Levels};
use crate::planning::counterpart::counterparts;
use crate::planning::plan::{Plan, Turn};
use crate::planning::planned_run::{PlannedRun, Stage};
use crate::stats::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// The cells of a turn: one, or the two of a duet.
pub(crate) type Slot<'a> = Vec<&'a Cell>;

/// The slots of a block in a new order: places in random order, within a place the subjects, and within a subject
/// the compared levels, so that cells to compare run close together and the machine's slow drift affects them alike.
/// In a layout of duets, `with_alone` adds each cell on its own.
pub(crate) fn block<'a>(plan: &'a Plan, with_alone: bool, rng: &mut Rng) -> Vec<Slot<'a>> {
    let alone = plan.cells.iter().map(|cell| vec![cell]);
    let slots: Vec<Slot<'_>> = match plan.experiment.layout {
        Layout::Blocks => alone.collect(),
        Layout::Duet => duets(plan).into_iter().chain(alone.filter(|_| with_alone)).collect(),
    };
    let mut places: BTreeMap<Levels, BTreeMap<&str, Vec<Slot<'_>>>> = BTreeMap::new();
    for slot in slots {
        places.entry(common(plan, slot[0])).or_default().entry(&slot[0].name).or_default().push(slot);
    }
    let of_place = |subjects: BTreeMap<&str, Vec<_>>| subjects.into_values().collect::<Vec<_>>();
    let mut places: Vec<Vec<Vec<Slot<'_>>>> = places.into_values().map(of_place).collect();
    rng.shuffle(&mut places);
    for subjects in &mut places {
        rng.shuffle(subjects);
        subjects.iter_mut().for_each(|levels| rng.shuffle(levels));
    }
    places.concat().concat()
}

/// The levels that a cell shares with all its counterparts.
fn common(plan: &Plan, cell: &Cell) -> Levels {
    let compared = plan.experiment.compare.iter().map(|compare| &compare.factor);
    compared.fold(cell.place(), |place, factor| place.without(factor))
}

/// The turns of a block whose runs are compared with each other: they are repeated together.
pub(crate) fn groups<'a>(plan: &Plan, turns: &'a [Turn]) -> Vec<&'a [Turn]> {
    let place = |turn: &Turn| turn.0.first().map(|run| common(plan, &run.cell));
    let is_one_group = |left: &Turn, right: &Turn| match plan.experiment.layout {
        Layout::Blocks => place(left) == place(right),
        Layout::Duet => false,
    };
    turns.chunk_by(is_one_group).collect()
}

/// Each cell with each of its counterparts, and with those of the claims on it; no pair twice.
pub(crate) fn duets(plan: &Plan) -> Vec<Slot<'_>> {
    let cells: Vec<&Cell> = plan.cells.iter().collect();
    let mut seen = BTreeSet::new();
    let mut duets = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let compared = counterparts(plan, &cells, cell).into_iter().map(|counterpart| counterpart.index);
        for other in compared.chain(of_claims(plan, &cells, cell)) {
            if seen.insert((index.min(other), index.max(other))) {
                duets.push(vec![*cell, cells[other]]);
            }
        }
    }
    duets
}

/// The cells that claims compare this one with by a metric that duets measure.
fn of_claims(plan: &Plan, cells: &[&Cell], cell: &Cell) -> Vec<usize> {
    let is_of_duets = |claim: &&Claim| claim.metric.is_some_and(Metric::is_decided_in_duets);
    let claims = plan.experiment.claims.iter().filter(is_of_duets);
    let is_meant = |claim: &&Claim| !cell.is_again() && claim.not_testable.is_none() && cell.has(&claim.cell);
    let levels = claims.filter(is_meant).filter_map(|claim| claim.against.as_ref());
    let other = |levels: &Levels| cells.iter().position(|other| cell.is_but_for(other, levels));
    levels.filter(|levels| !cell.has(levels)).filter_map(other).collect()
}

/// Whether cells also run alone in a block, if this many of all blocks have that: spread evenly.
pub(crate) fn is_with_alone(block: u32, blocks: u32, alone: u32) -> bool {
    let (block, blocks, alone) = (u64::from(block), u64::from(blocks.max(1)), u64::from(alone.min(blocks)));
    block * alone / blocks > (block - 1) * alone / blocks
}

/// The turns of these slots.
pub(crate) fn numbered(prefix: &str, stage: Stage, order: &[Slot<'_>]) -> Vec<Turn> {
    let turn = |(index, slot): (usize, &Slot<'_>)| {
        let run = |cell: &&Cell| PlannedRun {
            id: format!("{prefix}-{:03}-{cell}", index + 1),
            stage,
            cell: (*cell).clone(),
            beside: slot.iter().find(|other| other != &cell).map(|other| other.id.clone()),
        };
        Turn(slot.iter().map(run).collect())
    };
    order.iter().enumerate().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_with_cells_alone_are_spread() {
        let with = |blocks, alone| -> Vec<u32> {
            (1..=blocks).filter(|block| is_with_alone(*block, blocks, alone)).collect()
        };
        assert_eq!(with(12, 3), [4, 8, 12]);
        assert_eq!(with(5, 2), [3, 5]);
        assert_eq!(with(2, 9), [1, 2]);
        assert!(with(9, 0).is_empty());
    }
}
