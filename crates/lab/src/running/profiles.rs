//! Makes the profiles of an experiment's cells: separate runs after its blocks.

use crate::base::error::LabError;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::planning::planned_run::{PlannedRun, Stage};
use crate::running::measure::{Executor, Measure, Request};
use crate::running::progress::Progress;
use crate::store::Store;
use crate::store::profiles::{self, Profiled};

/// Profiles each cell that has none yet; the second of an A/A pair is the first again. A profile that fails is stored
/// with its reason.
pub(crate) fn make<I: Measure>(
    plan: &Plan,
    store: &Store,
    executor: &mut dyn Executor<I>,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    profiles::create_directory(store)?;
    let is_missing = |cell: &&Cell| !cell.is_again() && !profiles::has(store, cell);
    let cells: Vec<&Cell> = plan.cells.iter().filter(is_missing).collect();
    let expected_ms = cells.iter().map(|cell| I::phases_ms(&plan.experiment, cell, Stage::Profile)).sum();
    progress.begin(cells.len() as u64, expected_ms);
    for cell in cells {
        let run = PlannedRun {
            id: format!("profile-{}", cell.id),
            stage: Stage::Profile,
            cell: cell.clone(),
            beside: None,
        };
        progress.starts(std::slice::from_ref(&run), plan.blocks.len());
        let request = Request { run: &run, experiment: &plan.experiment, rate: I::rate(plan, cell) };
        if let Some(profiled) = executor.profile(request)? {
            progress.ended(&line(cell, &profiled));
            profiles::write(store, cell, profiled)?;
        }
        progress.turned(false);
    }
    progress.end();
    Ok(())
}

fn line(cell: &Cell, Profiled { recorded, .. }: &Profiled) -> String {
    match recorded {
        Ok(recorded) => format!("profile {cell}  {} samples", recorded.stacks.samples()),
        Err(why) => format!("profile {cell}  none: {why}"),
    }
}
