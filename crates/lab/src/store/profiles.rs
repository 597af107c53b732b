//! Profiles of an experiment's cells, stored beside their runs as folded stacks.

use super::Store;
use crate::base::error::LabError;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use serde::{Deserialize, Serialize};
use std::fs;
use weir_profile::{Profile, Recorded, Rules, Stacks};

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

/// The samples of a run's subject.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// The samples, or why there are none.
    pub recorded: Result<Recorded, String>,
    /// CPU microseconds per request or handshake while it was sampled.
    pub cost_us: Option<f64>,
}

/// Creates their directory.
pub(crate) fn create_directory(store: &Store) -> Result<(), LabError> {
    let directory = store.directory().join(DIRECTORY);
    fs::create_dir_all(&directory).map_err(LabError::file(&directory, "cannot be created"))
}

/// Whether a cell has one.
pub(crate) fn has(store: &Store, cell: &Cell) -> bool {
    store.directory().join(name(cell, "json")).exists()
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

/// Stores a profile; one that failed, with its reason.
pub(crate) fn write(
    store: &Store,
    cell: &Cell,
    Profiled { recorded, cost_us }: Profiled,
) -> Result<(), LabError> {
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

fn name(cell: &Cell, extension: &str) -> String {
    format!("{DIRECTORY}/{}.{extension}", cell.id)
}
