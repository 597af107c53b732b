//! The counterparts of each cell.

use crate::experiment::{Compare, is_of_subjects};
use crate::planning::cell::{Cell, Levels};
use crate::planning::plan::Plan;

/// The other side of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Counterpart {
    /// Its index among the cells.
    pub(crate) index: usize,
    /// The factor whose two levels are compared; `None` for two subjects.
    pub(crate) factor: Option<String>,
    /// The names of the cell and its counterpart in the comparison.
    pub(crate) names: [String; 2],
}

/// The counterparts of a cell among others: the baseline or, in the A/A pair, the first one; and the levels that the
/// experiment compares.
pub(crate) fn counterparts(plan: &Plan, cells: &[&Cell], cell: &Cell) -> Vec<Counterpart> {
    let mut found = Vec::new();
    let own = if cell.is_again() { Some(cell.first_name()) } else { plan.baseline.as_deref() };
    let is_own = |other: &&Cell, name: &str| other.name == name && other.place() == cell.place();
    if let Some(name) = own.filter(|name| *name != cell.name)
        && let Some(index) = cells.iter().position(|other| is_own(other, name))
    {
        found.push(Counterpart { index, factor: None, names: [cell.name.clone(), name.to_owned()] });
    }
    for Compare { factor, baseline, cell: meant } in &plan.experiment.compare {
        let level = cell.level(factor).filter(|level| level != baseline);
        let Some(level) = level.filter(|_| !cell.is_again() && cell.has(meant)) else { continue };
        let wanted = Levels::from_iter([(factor.clone(), baseline.clone())]);
        let Some(index) = cells.iter().position(|other| cell.is_but_for(other, &wanted)) else { continue };
        // A subject's name contains its settings.
        let names = match is_of_subjects(factor) {
            true => [cell.name.clone(), cells[index].name.clone()],
            false => [&level, baseline].map(|level| format!("{} {factor}={level}", cell.name)),
        };
        found.push(Counterpart { index, factor: Some(factor.clone()), names });
    }
    found
}
