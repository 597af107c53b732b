//! Profiles of an experiment's cells: separate runs after its blocks, stored beside their runs as folded stacks.

use crate::base::error::LabError;
use crate::instrument::{Executor, Instrument, Profiled, Request};
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::planning::planned_run::{PlannedRun, Stage};
use crate::progress::Progress;
use crate::store::Store;
use serde::{Deserialize, Serialize};
use std::fs;
use weir_profile::{Profile, Rules, Stacks};

/// The directory of profiles in that of the results.
const DIRECTORY: &str = "profiles";

/// The schema of a profile's own file.
const SCHEMA: u32 = 1;

/// The profile of one cell.
#[derive(Clone, Debug)]
pub struct CellProfile {
    /// The cell.
    pub cell: Cell,
    /// How it was made.
    pub about: About,
    /// The samples and their shares; `None` if there are none.
    pub sampled: Option<(Stacks, Profile)>,
}

/// How a profile was made, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct About {
    /// The schema's version.
    pub schema: u32,
    /// The id of its cell.
    pub cell: String,
    /// Why there are no samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The time sampled, in seconds.
    pub seconds: f64,
    /// The CPU time in the samples, in seconds.
    pub cpu_seconds: f64,
    /// CPU microseconds per request or handshake while sampling.
    pub cost_us: Option<f64>,
    /// What limits the profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Profiles each cell that has none yet; the second of an A/A pair is the first again. A profile that fails is stored
/// with its reason.
pub(crate) fn make<I: Instrument>(
    plan: &Plan,
    store: &Store,
    executor: &mut dyn Executor<I>,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let directory = store.directory().join(DIRECTORY);
    fs::create_dir_all(&directory).map_err(LabError::file(&directory, "cannot be created"))?;
    let is_missing = |cell: &&Cell| !cell.is_again() && !directory.join(format!("{}.json", cell.id)).exists();
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
            write(store, cell, profiled)?;
        }
        progress.turned(false);
    }
    progress.end();
    Ok(())
}

/// The stored profiles, in the plan's order of cells.
pub(crate) fn read(store: &Store, plan: &Plan) -> Result<Vec<CellProfile>, LabError> {
    let rules = Rules::built_in();
    let mut profiles = Vec::new();
    for cell in &plan.cells {
        let Some(about) = store.read_json::<About>(&name(cell, "json"), SCHEMA)? else { continue };
        let path = store.directory().join(name(cell, "folded"));
        let sampled = match about.failure {
            Some(_) => None,
            None => {
                let stacks = weir_profile::read(&path)
                    .map_err(|error| LabError::Stored { path, message: error.to_string() })?;
                let profile = Profile::new(&stacks, &rules);
                Some((stacks, profile))
            }
        };
        profiles.push(CellProfile { cell: cell.clone(), about, sampled });
    }
    Ok(profiles)
}

fn write(store: &Store, cell: &Cell, Profiled { recorded, cost_us }: Profiled) -> Result<(), LabError> {
    let empty = About {
        schema: SCHEMA,
        cell: cell.id.clone(),
        failure: None,
        seconds: 0.0,
        cpu_seconds: 0.0,
        cost_us,
        notes: Vec::new(),
    };
    let about = match recorded {
        Ok(recorded) => {
            store.write(&name(cell, "folded"), &recorded.stacks.folded())?;
            let (seconds, cpu_seconds, notes) = (recorded.seconds, recorded.cpu_seconds, recorded.notes);
            About { seconds, cpu_seconds, notes, ..empty }
        }
        Err(why) => About { failure: Some(why), ..empty },
    };
    store.write_json(&name(cell, "json"), &about)
}

fn line(cell: &Cell, Profiled { recorded, .. }: &Profiled) -> String {
    match recorded {
        Ok(recorded) => format!("profile {cell}  {} samples", recorded.stacks.samples()),
        Err(why) => format!("profile {cell}  none: {why}"),
    }
}

fn name(cell: &Cell, extension: &str) -> String {
    format!("{DIRECTORY}/{}.{extension}", cell.id)
}
