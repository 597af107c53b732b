//! What a results directory of stacks holds: the plan, the machine, a file for each run.

use super::cell::StackCell;
use super::document::INSTRUMENT;
use super::instructions::Counted;
use super::plan::StacksPlan;
use super::run::StackRun;
use crate::error::LabError;
use crate::store::Store;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::Path;

/// Whether a directory holds the results of stacks.
pub fn is_of_stacks(directory: &Path) -> bool {
    #[derive(Deserialize)]
    struct Stored {
        experiment: Instrument,
    }
    #[derive(Deserialize)]
    struct Instrument {
        #[serde(default)]
        instrument: String,
    }
    let plan = fs::read_to_string(directory.join("plan.json")).ok();
    let stored = plan.and_then(|text| serde_json::from_str::<Stored>(&text).ok());
    stored.is_some_and(|stored| stored.experiment.instrument == INSTRUMENT)
}

/// The plan.
pub(super) fn plan(store: &Store) -> Result<StacksPlan, LabError> {
    store.read_json("plan.json", StacksPlan::SCHEMA)
}

/// A run that is stored already.
pub(super) fn run(store: &Store, id: &str) -> Result<Option<StackRun>, LabError> {
    if_there(store, &format!("runs/{id}.json"), StackRun::SCHEMA)
}

/// The stored runs of a plan, in its order.
pub(super) fn runs(store: &Store, plan: &StacksPlan) -> Result<Vec<StackRun>, LabError> {
    let planned = plan.blocks.iter().flatten();
    planned.filter_map(|planned| run(store, &planned.id).transpose()).collect()
}

/// The instructions of a cell, if they were counted.
pub(super) fn counted(store: &Store, cell: &StackCell) -> Result<Option<Counted>, LabError> {
    if_there(store, &counted_name(cell), Counted::SCHEMA)
}

/// The instructions of each cell that was counted, in the plan's order.
pub(super) fn all_counted(store: &Store, plan: &StacksPlan) -> Result<Vec<Counted>, LabError> {
    plan.cells.iter().filter_map(|cell| counted(store, cell).transpose()).collect()
}

/// Keeps the instructions of a cell.
pub(super) fn write_counted(store: &Store, counted: &Counted) -> Result<(), LabError> {
    let directory = store.directory().join(INSTRUCTIONS);
    fs::create_dir_all(&directory).map_err(LabError::file(&directory, "cannot be made"))?;
    store.write_json(&counted_name(&counted.cell), counted)
}

/// The folder of instruction counts.
const INSTRUCTIONS: &str = "instructions";

fn counted_name(cell: &StackCell) -> String {
    format!("{INSTRUCTIONS}/{cell}.json")
}

/// A file of the store, if it was written.
fn if_there<T: DeserializeOwned>(store: &Store, name: &str, schema: u32) -> Result<Option<T>, LabError> {
    match store.directory().join(name).exists() {
        true => store.read_json(name, schema).map(Some),
        false => Ok(None),
    }
}
