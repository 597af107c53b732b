//! The subjects of an experiment on this machine, and the cells that they can run.

use super::cell::Cell;
use super::planned_run::Stage;
use crate::base::error::{ConfigError, LabError};
use crate::experiment::options::RunOptions;
use crate::experiment::{Experiment, Grammar};
use crate::found::ExperimentFile;
use std::collections::BTreeMap;

/// An instrument's subjects, and their cells.
pub trait Subjects: Grammar {
    /// Whether the A/A pair runs beside the subjects that `--only` names.
    const KEEPS_PAIR: bool = true;
    /// The default overhead of a run beyond its phases in milliseconds.
    const OVERHEAD_MS: u64;

    /// The subjects of an experiment, as found on this machine.
    type Found;

    /// Finds the subjects on this machine, and what they support.
    ///
    /// # Errors
    /// An invalid description, or a demand that no subject meets.
    fn find(
        experiment: &Experiment,
        file: &ExperimentFile,
        options: &RunOptions,
        text: &str,
    ) -> Result<Self::Found, LabError>;
    /// Every cell, also those that cannot run on this machine.
    ///
    /// # Errors
    /// An impossible combination of levels.
    fn candidates(experiment: &Experiment, found: &Self::Found) -> Result<Vec<Candidate>, ConfigError>;
    /// The absent subjects, and why.
    fn absent(found: &Self::Found) -> BTreeMap<String, String>;
    /// Further skipped cells of present subjects, beside the candidates' own reasons, a line each.
    fn dropped(_experiment: &Experiment, _found: &Self::Found) -> Vec<String> {
        Vec::new()
    }
    /// The cells of the runs before the first block.
    fn calibration(_experiment: &Experiment, _cells: &[Cell]) -> Result<Vec<Cell>, ConfigError> {
        Ok(Vec::new())
    }
    /// Milliseconds of a run's phases, as far as they are known in advance.
    fn phases_ms(experiment: &Experiment, cell: &Cell, stage: Stage) -> u64;
    /// Overheads of runs beyond their phases in milliseconds, by the subjects that declare them.
    fn overheads_ms(_found: &Self::Found) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

/// A cell that could run.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The cell.
    pub cell: Cell,
    /// Whether it can.
    pub standing: Standing,
    /// A remark on its results.
    pub remark: Option<String>,
}

/// Whether a cell can run on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It can.
    Present,
    /// Its subject is absent.
    Absent,
    /// Its subject is present but cannot run it.
    Unable(String),
}
