//! An instrument: what can be measured, how one run of it is made and judged, and which metrics it has. Everything between an
//! experiment's file and its report is the pipeline's, and the same for all instruments. A folder here is one of them.

pub mod commands;
pub mod gateway;
mod shown;
pub mod stacks;

pub use shown::{Looks, Page, Shown};

use crate::cell::{Cell, Levels};
use crate::error::{ConfigError, LabError};
use crate::experiment::{AGAIN, Experiment, Level};
use crate::found::ExperimentFile;
use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::metric::Metric;
use crate::options::RunOptions;
use crate::plan::Plan;
use crate::run::{PlannedRun, Run, Stage};
use crate::value::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use weir_load::result::Limit;

/// Makes an error about a key, wherever it stands.
pub type Blame<'a> = dyn Fn(&str, String) -> ConfigError + 'a;

/// The runs of an instrument.
pub type RunOf<I> = Run<<I as Instrument>::Seen>;

/// What can be measured, and how.
pub trait Instrument: Copy + Debug + Sized + 'static {
    /// What the file's `instrument` says.
    const NAME: &'static str;
    /// What is measured: the factor that names it, and the word for it.
    const SUBJECT: &'static str;
    /// The folder of the subjects' folders, relative to an experiment's file that names none.
    const DIRECTORY: &'static str;
    /// Keys of the file that other instruments do not have.
    const OWN_KEYS: &'static [&'static str] = &[];
    /// Whether the A/A pair is run beside the subjects that `--only` names.
    const KEEPS_PAIR: bool = true;
    /// Milliseconds that a run takes beyond its phases, where nothing else is known; 0 where nothing is.
    const OVERHEAD_MS: u64 = 0;
    /// What a cell can come to, in the order in which it is shown.
    const METRICS: &'static [Metric];
    /// Whether two runs can be made at the same time, each with a CPU clock of its own.
    const HAS_DUETS: bool = false;
    /// What is known of sessions that differ.
    const SESSIONS: &'static str = "";

    /// What one run saw, as it is stored beside its plan and its validity.
    type Seen: Clone + Debug + PartialEq + Serialize + DeserializeOwned;
    /// The subjects of an experiment, as found on this machine.
    type Found;
    /// Makes runs.
    type Executor: Executor<Self>;

    /// Whether the experiment can be followed, beyond what all experiments have in common.
    ///
    /// # Errors
    /// What is unknown, missing, contradictory or without effect, by its key, and what is allowed.
    fn check(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError>;
    /// The keys that cells can be told apart by, beside their subject.
    fn keys(experiment: &Experiment) -> Vec<String> {
        let keys = experiment.factors.iter().map(|factor| factor.key.clone());
        keys.filter(|key| key != Self::SUBJECT).collect()
    }
    /// The levels that cells can have of a key.
    fn levels(experiment: &Experiment, key: &str) -> Vec<Level> {
        experiment.levels(key)
    }
    /// Whether a key takes such a value, amid others that are right.
    fn takes(_key: &str, value: &toml::Value) -> bool {
        !value.is_table()
    }
    /// A value of the file in `folder`, in which a path that it names is absolute.
    fn placed(_key: &str, value: &toml::Value, _folder: &Path) -> toml::Value {
        value.clone()
    }
    /// What is compared of a cell; what it is about comes first.
    fn compared(_cell: &Cell) -> Vec<Metric> {
        Self::METRICS.to_vec()
    }
    /// What is compared of a cell that shares its cores with another; nothing where the instrument has no duets.
    fn compared_in_duets(_cell: &Cell) -> Vec<Metric> {
        Vec::new()
    }
    /// Whether runs of a cell can have a metric.
    fn has(_metric: Metric, _cell: &Cell) -> bool {
        true
    }

    /// Looks for the subjects on this machine, and whether they can do what is asked.
    ///
    /// # Errors
    /// A description that is wrong, or what no subject can do.
    fn find(
        experiment: &Experiment,
        file: &ExperimentFile,
        options: &RunOptions,
        text: &str,
    ) -> Result<Self::Found, LabError>;
    /// Installs absent subjects: those that the experiment or the options ask for. Whether any is here that was not. One
    /// that cannot be installed is no error, and is said.
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
    /// Every cell, also those that cannot be run here.
    ///
    /// # Errors
    /// A combination of levels that cannot be followed.
    fn candidates(experiment: &Experiment, found: &Self::Found) -> Result<Vec<Candidate>, ConfigError>;
    /// The subjects that are not here, and why.
    fn absent(found: &Self::Found) -> BTreeMap<String, String>;
    /// What is not run though its subject is here, beside the candidates that say so themselves, a line each.
    fn dropped(_experiment: &Experiment, _found: &Self::Found) -> Vec<String> {
        Vec::new()
    }
    /// The cells of the runs before the first block.
    fn calibration(_experiment: &Experiment, _cells: &[Cell]) -> Result<Vec<Cell>, ConfigError> {
        Ok(Vec::new())
    }
    /// Milliseconds of a run's phases, as far as they are known before.
    fn phases_ms(_experiment: &Experiment, _cell: &Cell, _stage: Stage) -> u64 {
        0
    }
    /// Milliseconds that a run takes beyond its phases, by the subjects that say so.
    fn overheads_ms(_found: &Self::Found) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// Makes ready what `plan` needs, such as builds; what cannot be is absent from then on.
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
    /// Starts what makes runs, in the directory of their results.
    ///
    /// # Errors
    /// Files that cannot be written.
    fn executor(
        experiment: &Experiment,
        found: Self::Found,
        directory: &Path,
        interrupt: Interrupt,
    ) -> Result<Self::Executor, LabError>;
    /// Fixes what calibration was to find.
    ///
    /// # Errors
    /// It found too little to go on, and `needs_all` or no cell can do without.
    fn calibrated(_plan: &mut Plan, _runs: &[RunOf<Self>], _needs_all: bool) -> Result<(), LabError> {
        Ok(())
    }
    /// The rate that a cell is offered; `None` where none is, and where calibration has yet to find it.
    fn rate(_plan: &Plan, _cell: &Cell) -> Option<f64> {
        None
    }

    /// Whether what lies within a stored run is of a layout that this program reads.
    ///
    /// # Errors
    /// Another one, in words.
    fn check_layout(_run: &serde_json::Value) -> Result<(), String> {
        Ok(())
    }
    /// Judges a run by the rules of this program, whatever was said of it before.
    ///
    /// # Errors
    /// Its cell is none of the experiment's.
    fn judge(experiment: &Experiment, run: &mut RunOf<Self>) -> Result<(), ConfigError>;
    /// A run's value of a metric.
    fn value(metric: Metric, run: &RunOf<Self>) -> Option<f64>;
    /// A run in a line, after its block: what it is of, and what it came to, such as `b001
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
    /// A cell's place as short as it is known by.
    fn short(cell: &Cell) -> String {
        cell.levels.words()
    }
    /// What every instrument knows of a run.
    fn facts(seen: &Self::Seen) -> Facts<'_>;

    /// Whether nothing in a cell is of anyone's making but the lab's, so that it is compared with nothing and shows drift.
    fn is_control(_cell: &Cell) -> bool {
        false
    }
    /// Where a cell's comparisons stand among those of its family.
    fn order(_cell: &Cell) -> u32 {
        0
    }
    /// What comparisons have in common, beside their metric, that are judged together; empty where all are.
    fn family(_cell: &Cell) -> &str {
        ""
    }
    /// Why such valid runs say nothing of a metric of what was measured, whatever their values are.
    fn unsupported(_metric: Metric, _cell: &Cell, _name: &str, _valid: &[&RunOf<Self>]) -> Option<String> {
        None
    }
    /// Why a valid run says nothing of a metric, though it does of others.
    fn spoilt(_metric: Metric, _run: &RunOf<Self>) -> Option<String> {
        None
    }
    /// Why such valid runs have no value that could be used: to leave out just the runs without one would be to leave out the
    /// worst.
    fn without_value(_metric: Metric, _name: &str, _valid: &[&RunOf<Self>]) -> Option<String> {
        None
    }
    /// What is to be known of such valid runs beside what they say.
    fn remark(_metric: Metric, _cell: &Cell, _name: &str, _valid: &[&RunOf<Self>]) -> Option<String> {
        None
    }
    /// What two cells differ in that nobody asked about.
    fn unlike(_cells: [&Cell; 2], _runs: [&[&RunOf<Self>]; 2]) -> Option<String> {
        None
    }
    /// What a cell comes to in a metric, from its valid runs or, where they count, from all: the median over the blocks.
    fn summarise(
        metric: Metric,
        _cell: &Cell,
        valid: &[&RunOf<Self>],
        _all: &[&RunOf<Self>],
    ) -> Option<Value> {
        let values: Vec<f64> = valid.iter().filter_map(|run| Self::value(metric, run)).collect();
        Value::of(&values)
    }
    /// Under what a cell is run, all that its name leaves out too.
    ///
    /// # Errors
    /// The cell is none of the experiment's.
    fn conditions(_plan: &Plan, cell: &Cell) -> Result<BTreeMap<String, String>, ConfigError> {
        Ok(cell.levels.iter().map(|(key, level)| (key.to_owned(), level.to_string())).collect())
    }
    /// Whether the runs of a cell tell that its subject was another program, whatever version and sources are; `is_other_lab`
    /// says that this program was.
    fn is_other(_runs: [&[&RunOf<Self>]; 2], _is_other_lab: bool) -> bool {
        false
    }
}

/// Makes runs. An instrument's own starts processes; tests give results that they made up.
pub trait Executor<I: Instrument> {
    /// Makes the runs of one turn, at the same time where there are several, and says what each saw. A subject that fails is
    /// seen, and no error.
    ///
    /// # Errors
    /// An interrupt, or what keeps every run from being made.
    fn execute(&mut self, turn: &[Request<'_>]) -> Result<Vec<I::Seen>, LabError>;

    /// What is left to do when all runs are made, or none can be.
    ///
    /// # Errors
    /// As [`Self::execute`].
    fn finish(&mut self, _plan: &Plan, _is_done: bool) -> Result<(), LabError> {
        Ok(())
    }
}

/// A run that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Which cell, which block.
    pub run: &'a PlannedRun,
    /// What it is a run of.
    pub experiment: &'a Experiment,
    /// Requests per second that it is offered; `None` in a closed loop.
    pub rate: Option<f64>,
}

/// A subject's cells under such levels, the second of the A/A pair among them, with ids that begin with `place`.
pub(crate) fn with_pair(experiment: &Experiment, subject: &str, levels: &Levels, place: &str) -> Vec<Cell> {
    let again = (experiment.aa.as_deref() == Some(subject)).then(|| format!("{subject}{AGAIN}"));
    let names = [Some(subject.to_owned()), again].into_iter().flatten();
    let cell = |name: String| {
        let (id, subject) = (format!("{place}{name}"), subject.to_owned());
        Cell { id, name, subject, levels: levels.clone() }
    };
    names.map(cell).collect()
}

/// A cell that could be run.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Which.
    pub cell: Cell,
    /// Whether it can be.
    pub standing: Standing,
    /// What has to be known of it whatever it comes to.
    pub remark: Option<String>,
}

/// Whether a cell can be run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It can.
    Present,
    /// Its subject is not here.
    Absent,
    /// Its subject is here and cannot do it.
    Unable(String),
}

/// What processes outside a run and other guests took together.
pub(crate) fn taken(foreign: Option<f64>, stolen: Option<f64>) -> Option<f64> {
    Some(foreign? + stolen.unwrap_or(0.0))
}

/// What every instrument knows of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// Milliseconds from the first process's start to the last one's end.
    pub elapsed_ms: u64,
    /// Of these, milliseconds of its phases.
    pub phases_ms: u64,
    /// The share of its cores that others took, processes outside it or other guests of the host; `None` where the system
    /// does not tell.
    pub taken: Option<f64>,
    /// Requests per second that it was offered.
    pub rate: Option<f64>,
    /// What held it down.
    pub limit: Option<Limit>,
    /// Why its subject does not work, if that is why the run failed, and its last words.
    pub broken: Option<(&'a str, &'a str)>,
    /// Whether it failed, by whoever's fault.
    pub has_failed: bool,
    /// Where its processes' logs are kept, in the directory of the results.
    pub logs: Option<&'a Path>,
}
