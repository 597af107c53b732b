//! A results directory as it is read: every run judged by the rules of this program, and summed up.

use crate::error::LabError;
use crate::machine::Machine;
use crate::plan::Plan;
use crate::run::RunRecord;
use crate::store::Store;
use crate::summary::Summary;
use std::path::{Path, PathBuf};

/// What an experiment has stored, and what it comes to.
#[derive(Clone, Debug)]
pub struct Results {
    /// Where it is stored.
    pub directory: PathBuf,
    /// What was planned.
    pub plan: Plan,
    /// What it was run on.
    pub machine: Machine,
    /// The runs, judged.
    pub records: Vec<RunRecord>,
    /// What they come to.
    pub summary: Summary,
}

impl Results {
    /// Reads the runs of a directory and sums them up. Nothing that was worked out before is read.
    ///
    /// # Errors
    /// When it is no directory of results, or a file in it has another form.
    pub fn read(directory: &Path) -> Result<Self, LabError> {
        let store = Store::open(directory);
        let (plan, machine) = (store.plan()?, store.machine()?);
        let mut records = store.runs()?;
        for record in &mut records {
            record.judge(&plan.experiment.conditions(&record.run.cell)?);
        }
        let summary = Summary::of(&plan, &machine, &records);
        Ok(Self { directory: directory.to_owned(), plan, machine, records, summary })
    }
}
