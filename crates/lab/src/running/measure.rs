//! An instrument at work: it prepares its subjects, and its executor makes the runs.

use crate::base::error::LabError;
use crate::experiment::Experiment;
use crate::experiment::options::RunOptions;
use crate::findings::judge::Judge;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::planning::planned_run::PlannedRun;
use crate::planning::subjects::Subjects;
use crate::running::interrupt::Interrupt;
use crate::store::machine::Machine;
use crate::store::profiles::Profiled;
use crate::store::run::RunOf;
use std::path::Path;

/// How an instrument prepares its subjects and makes their runs.
pub trait Measure: Judge + Subjects {
    /// Executes runs.
    type Executor: Executor<Self>;

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
}

/// Executes runs. An instrument's own one starts processes; tests return synthetic results.
pub trait Executor<I: Measure> {
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
