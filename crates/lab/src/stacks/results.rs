//! A results directory of stacks as it is read, and summed up.

use super::cell::StackCell;
use super::key;
use super::plan::{NAME, StacksPlan, is_selected, unknown_key};
use super::run::StackRun;
use super::store;
use super::summary::StacksSummary;
use super::text;
use crate::error::{ConfigError, LabError};
use crate::machine::Machine;
use crate::store::Store;
use std::path::{Path, PathBuf};

/// What an experiment with stacks has stored, and what it comes to.
#[derive(Clone, Debug)]
pub struct StacksResults {
    /// Where it is stored.
    pub directory: PathBuf,
    /// What was planned.
    pub(crate) plan: StacksPlan,
    /// What it was run on.
    pub machine: Machine,
    /// The runs.
    pub records: Vec<StackRun>,
    /// What they come to.
    pub summary: StacksSummary,
}

impl StacksResults {
    /// Reads the runs of a directory and sums them up.
    ///
    /// # Errors
    /// What is not the result of such an experiment.
    pub fn read(directory: &Path) -> Result<Self, LabError> {
        let store = Store::open(directory);
        let (plan, machine) = (store::plan(&store)?, store.machine()?);
        let records = store::runs(&store, &plan)?;
        let counted = store::all_counted(&store, &plan)?;
        let summary = StacksSummary::of(&plan, &records).with(&counted, machine.cores.len());
        Ok(Self { directory: directory.to_owned(), plan, machine, records, summary })
    }

    /// The version of an engine: what it says of itself, or what its description says where it never ran.
    pub fn version(&self, engine: &str) -> &str {
        let told = self.summary.facts.get(engine).map(|facts| &facts.tls);
        told.or_else(|| self.machine.versions.get(engine)).map_or("", String::as_str)
    }

    /// What has to be known before any number is read.
    pub(crate) fn labels(&self) -> Vec<String> {
        text::labels(&self.plan, &self.summary)
    }
}

/// Whether a cell has such levels; values of one key are alternatives.
///
/// # Errors
/// A key that no cell has. `option` is the one that gave them.
pub(crate) fn select(
    option: &str,
    levels: &[(String, String)],
    cell: &StackCell,
) -> Result<bool, ConfigError> {
    let is_known = |key: &str| matches!(key, "engine" | NAME) || key::find(key).is_some();
    let is_unknown = |(key, _): &&(String, String)| !is_known(key);
    match levels.iter().find(is_unknown) {
        Some((key, value)) => Err(ConfigError::new(format!("{option} {key}={value}"), unknown_key())),
        None => Ok(is_selected(cell, levels)),
    }
}
