//! An instrument: a kind of measurement, with its metrics, its runs and its rules of validity. The pipeline from an
//! experiment's file to its report is common to all instruments. Each submodule is one instrument.

pub mod commands;
pub mod gateway;
mod shown;
pub mod stacks;

pub use shown::{Looks, Page, Shown};

use crate::base::error::{ConfigError, LabError};
use crate::experiment::Experiment;
use crate::experiment::metric::Metric;
use crate::experiment::options::RunOptions;
use crate::interrupt::Interrupt;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::planning::planned_run::PlannedRun;
use crate::planning::subjects::Subjects;
use crate::store::machine::Machine;
use crate::store::profiles::Profiled;
use crate::store::run::{RunOf, Stored};
use crate::value::Value;
use std::collections::BTreeMap;
use std::path::Path;
use weir_load::result::Limit;

/// A kind of measurement.
pub trait Instrument: Stored + Subjects {
    /// Whether its executor can sample a subject.
    const HAS_PROFILES: bool = false;
    /// The known spread between sessions.
    const SESSIONS: &'static str = "";

    /// Executes runs.
    type Executor: Executor<Self>;

    /// The compared metrics of a cell; the main one comes first.
    fn compared(_cell: &Cell) -> Vec<Metric> {
        Self::METRICS.to_vec()
    }
    /// The compared metrics of a cell that shares its cores with another; none without duets.
    fn compared_in_duets(_cell: &Cell) -> Vec<Metric> {
        Vec::new()
    }
    /// Whether runs of a cell can have a metric.
    fn has(_metric: Metric, _cell: &Cell) -> bool {
        true
    }
    /// Installs the absent subjects that the experiment or the options name. Returns whether any was installed; a
    /// failed installation is reported, but no error.
    ///
    /// # Errors
    /// An interrupt.
    fn install(
        _experiment: &Experiment,
        _found: &Self::Found,
        _options: &RunOptions,
        _interrupt: &Interrupt,
    ) -> Result<bool, LabError> {
        Ok(false)
    }

    /// Prepares what `plan` needs, such as builds; subjects that cannot be prepared become absent.
    ///
    /// # Errors
    /// An interrupt.
    fn make_ready(_found: &mut Self::Found, _plan: &Plan, _interrupt: &Interrupt) -> Result<(), LabError> {
        Ok(())
    }
    /// The machine and the subjects, as they are stored with the results.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn machine(experiment: &Experiment, found: &Self::Found) -> Result<Machine, LabError>;
    /// Starts the executor in the results directory.
    ///
    /// # Errors
    /// Files that cannot be written.
    fn executor(
        experiment: &Experiment,
        found: Self::Found,
        directory: &Path,
        interrupt: Interrupt,
    ) -> Result<Self::Executor, LabError>;
    /// Derives the rates from the calibration runs.
    ///
    /// # Errors
    /// Too few valid runs, for one cell with `needs_all` or else for all.
    fn calibrated(_plan: &mut Plan, _runs: &[RunOf<Self>], _needs_all: bool) -> Result<(), LabError> {
        Ok(())
    }
    /// The rate offered to a cell; `None` without one, or before calibration.
    fn rate(_plan: &Plan, _cell: &Cell) -> Option<f64> {
        None
    }
    /// Judges a run by today's rules, whatever its stored validity.
    ///
    /// # Errors
    /// Its cell is not part of the experiment.
    fn judge(experiment: &Experiment, run: &mut RunOf<Self>) -> Result<(), ConfigError>;
    /// A run's value of a metric.
    fn value(metric: Metric, run: &RunOf<Self>) -> Option<f64>;
    /// A run in a line: its block, its cell and its values, such as `b001
    /// handshake.1.3.full.ecdsa-p256.go  server's time per handshake 61.2 us`.
    fn line(run: &RunOf<Self>) -> String {
        let cell = &run.run.cell;
        let values = Self::compared(cell).into_iter().filter_map(|metric| {
            let value = Self::value(metric, run)?;
            Some(format!("{metric} {value:.1} {}", metric.unit()))
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let wrong = if run.validity.is_valid() { String::new() } else { format!("  {}", run.validity) };
        format!("b{:03} {cell}  {values}{wrong}", run.run.stage.block())
    }
    /// The short name of a cell's place.
    fn short(cell: &Cell) -> String {
        cell.levels.words()
    }
    /// The facts that every instrument knows of a run.
    fn facts(seen: &Self::Seen) -> Facts<'_>;

    /// Whether a cell measures only the lab itself, so that it is compared with nothing and shows drift.
    fn is_control(_cell: &Cell) -> bool {
        false
    }
    /// A cell's position in its family.
    fn order(_cell: &Cell) -> u32 {
        0
    }
    /// The family that comparisons are judged in, beside their metric; empty for a single one.
    fn family(_cell: &Cell) -> &str {
        ""
    }
    /// Why these valid runs say nothing about a subject's metric, whatever their values are.
    fn unsupported(_metric: Metric, _cell: &Cell, _name: &str, _valid: &[&RunOf<Self>]) -> Option<String> {
        None
    }
    /// Why a valid run says nothing about one metric, though it does about others.
    fn spoilt(_metric: Metric, _run: &RunOf<Self>) -> Option<String> {
        None
    }
    /// Why these valid runs have no usable value: leaving out only the runs without a value would leave out the worst.
    fn without_value(_metric: Metric, _name: &str, _valid: &[&RunOf<Self>]) -> Option<String> {
        None
    }
    /// A remark on these valid runs.
    fn remark(_metric: Metric, _cell: &Cell, _name: &str, _valid: &[&RunOf<Self>]) -> Option<String> {
        None
    }
    /// Unrequested differences between two cells.
    fn unlike(_cells: [&Cell; 2], _runs: [&[&RunOf<Self>]; 2]) -> Option<String> {
        None
    }
    /// A cell's value of a metric, from its valid runs or, where they count, from all: the median over the blocks.
    fn summarise(
        metric: Metric,
        _cell: &Cell,
        valid: &[&RunOf<Self>],
        _all: &[&RunOf<Self>],
    ) -> Option<Value> {
        let values: Vec<f64> = valid.iter().filter_map(|run| Self::value(metric, run)).collect();
        Value::of(&values)
    }
    /// The full conditions of a cell, its name's omissions included.
    ///
    /// # Errors
    /// The cell is not part of the experiment.
    fn conditions(_plan: &Plan, cell: &Cell) -> Result<BTreeMap<String, String>, ConfigError> {
        Ok(cell.levels.iter().map(|(key, level)| (key.to_owned(), level.to_string())).collect())
    }
    /// Whether the runs show that the subject was another program, whatever its version and sources; `is_other_lab`
    /// says that this program was.
    fn is_other(_runs: [&[&RunOf<Self>]; 2], _is_other_lab: bool) -> bool {
        false
    }
}

/// Executes runs. An instrument's own one starts processes; tests return synthetic results.
pub trait Executor<I: Instrument> {
    /// Executes the runs of one turn, in parallel if there are several, and returns their measurements. A failing
    /// subject is a measurement, not an error.
    ///
    /// # Errors
    /// An interrupt, or a fault that prevents every run.
    fn execute(&mut self, turn: &[Request<'_>]) -> Result<Vec<I::Seen>, LabError>;

    /// Executes a run and samples its subject meanwhile; `None` if the instrument cannot, or the run has no subject.
    ///
    /// # Errors
    /// As [`Self::execute`].
    fn profile(&mut self, _run: Request<'_>) -> Result<Option<Profiled>, LabError> {
        Ok(None)
    }

    /// Cleans up after the last run, or after a failure.
    ///
    /// # Errors
    /// As [`Self::execute`].
    fn finish(&mut self, _plan: &Plan, _is_done: bool) -> Result<(), LabError> {
        Ok(())
    }
}

/// A run to execute.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The cell and the block.
    pub run: &'a PlannedRun,
    /// Its experiment.
    pub experiment: &'a Experiment,
    /// Requests per second offered; `None` in a closed loop.
    pub rate: Option<f64>,
}

/// The foreign load: processes outside a run and other guests.
pub(crate) fn taken(foreign: Option<f64>, stolen: Option<f64>) -> Option<f64> {
    Some(foreign? + stolen.unwrap_or(0.0))
}

/// The facts that every instrument knows of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// Milliseconds from the first process's start to the last one's end.
    pub elapsed_ms: u64,
    /// Of these, milliseconds of its phases.
    pub phases_ms: u64,
    /// The foreign load on its cores, of processes outside it or other guests; `None` if the system does not report it.
    pub taken: Option<f64>,
    /// Requests per second offered.
    pub rate: Option<f64>,
    /// The limit.
    pub limit: Option<Limit>,
    /// Why its subject is broken, if that is why the run failed, and its last output.
    pub broken: Option<(&'a str, &'a str)>,
    /// Whether it failed, for whatever reason.
    pub has_failed: bool,
    /// The kept logs of its processes, in the results directory.
    pub logs: Option<&'a Path>,
}
