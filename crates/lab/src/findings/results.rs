//! A results directory once loaded: every run judged by the rules of this program, and summed up.

use crate::base::error::LabError;
use crate::experiment::Level;
use crate::findings::claims;
use crate::findings::judge::Judge;
use crate::findings::summary::Summary;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::planning::planned_run::PlannedRun;
use crate::store::Store;
use crate::store::machine::Machine;
use crate::store::profiles::{self, CellProfile};
use crate::store::run::RunOf;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use weir_report::model::Advised;

/// The file of the stored advice.
const ADVISED: &str = "advice.json";

/// An experiment's stored data and its findings.
#[derive(Clone, Debug)]
pub struct Results<I: Judge> {
    /// The directory.
    pub directory: PathBuf,
    /// The plan.
    pub plan: Plan,
    /// The machine.
    pub machine: Machine,
    /// The runs, judged.
    pub runs: Vec<RunOf<I>>,
    /// The findings.
    pub summary: Summary,
    /// The profiles, in the plan's order of cells.
    pub profiles: Vec<CellProfile>,
    /// The advice on it that was stored.
    pub advised: Option<Advised>,
}

impl<I: Judge> Results<I> {
    /// Loads the runs of a directory and sums them up. No derived file is read.
    ///
    /// # Errors
    /// When it is no directory of results, a file in it has an unknown schema, or a run is not the one planned under
    /// its id.
    pub fn read(directory: &Path) -> Result<Self, LabError> {
        let store = Store::open(directory);
        let (plan, machine) = (store.plan()?, store.machine()?);
        let mut runs = store.runs::<I>()?;
        let planned: BTreeMap<&str, &PlannedRun> = plan.runs().map(|run| (run.id.as_str(), run)).collect();
        for run in &mut runs {
            check_planned(&run.run, planned.get(run.run.id.as_str()).copied())
                .map_err(|message| LabError::Stored { path: store.run_path(&run.run.id), message })?;
            I::judge(&plan.experiment, run).map_err(|error| LabError::Stored {
                path: directory.join("plan.json"),
                message: error.to_string(),
            })?;
        }
        let mut summary = Summary::of::<I>(&plan, &machine, &runs);
        summary.foreign.repeated = store.disturbed() as u32;
        let profiles = profiles::read(&store, &plan)?;
        claims::profiled::check(&mut summary.claims, &plan, &profiles);
        let advised = store.read_json(ADVISED, 1)?;
        Ok(Self { directory: directory.to_owned(), plan, machine, runs, summary, profiles, advised })
    }
}

impl<I: Judge> Results<I> {
    /// Stores advice on it for its report.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep_advice(&self, advised: &Advised) -> Result<(), LabError> {
        Store::open(&self.directory).write_json(ADVISED, advised)
    }

    /// A subject's version: reported by itself, or else by its description; empty if unknown.
    pub(crate) fn version(&self, subject: &str) -> &str {
        let found = self.summary.cells.iter().find(|found| found.cell.subject == subject);
        let reported = found.map(|found| found.version.as_str()).filter(|version| !version.is_empty());
        reported.or_else(|| self.machine.versions.get(subject).map(String::as_str)).unwrap_or("")
    }
}

/// A run of another cell or block than planned would be missing in one and counted in another.
fn check_planned(run: &PlannedRun, planned: Option<&PlannedRun>) -> Result<(), String> {
    let Some(planned) = planned else {
        return Err(format!("id: `{}`: expected a run of plan.json", run.id));
    };
    let cells = [&run.cell, &planned.cell];
    let keys: BTreeSet<&str> =
        cells.iter().flat_map(|cell: &&Cell| cell.levels.iter()).map(|(key, _)| key).collect();
    for key in ["target"].into_iter().chain(keys) {
        let [found, allowed] = cells.map(|cell| cell.level(key));
        if found != allowed {
            let text =
                |level: Option<Level>| level.map_or_else(|| "missing".into(), |level| level.to_string());
            return Err(format!("{key}: `{}`: expected `{}`, as planned", text(found), text(allowed)));
        }
    }
    match run == planned {
        true => Ok(()),
        false => Err(format!("stage, name or cell: expected those of `{}` in plan.json", run.id)),
    }
}
