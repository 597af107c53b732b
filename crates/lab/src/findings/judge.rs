//! An instrument's judgement: which runs are valid, their values, and what its cells and their comparisons mean.

use super::value::Value;
use crate::base::error::ConfigError;
use crate::experiment::Experiment;
use crate::experiment::metric::Metric;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::store::run::{RunOf, Stored};
use std::collections::BTreeMap;
use std::path::Path;
use weir_load::result::Limit;

/// The rules by which an instrument's runs become findings.
pub trait Judge: Stored {
    /// The known spread between sessions.
    const SESSIONS: &'static str = "";

    /// The compared metrics of a cell; the main one comes first.
    fn compared(cell: &Cell) -> Vec<Metric>;
    /// The compared metrics of a cell that shares its cores with another.
    fn compared_in_duets(cell: &Cell) -> Vec<Metric>;
    /// Whether runs of a cell can have a metric.
    fn has(_metric: Metric, _cell: &Cell) -> bool {
        true
    }
    /// Judges a run by today's rules, whatever its stored validity.
    ///
    /// # Errors
    /// Its cell is not part of the experiment.
    fn judge(experiment: &Experiment, run: &mut RunOf<Self>) -> Result<(), ConfigError>;
    /// A run's value of a metric.
    fn value(metric: Metric, run: &RunOf<Self>) -> Option<f64>;
    /// The short name of a cell's place.
    fn short(cell: &Cell) -> String;
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
    fn conditions(plan: &Plan, cell: &Cell) -> Result<BTreeMap<String, String>, ConfigError>;
    /// Whether the runs show that the subject was another program, whatever its version and sources; `is_other_lab`
    /// says that this program was.
    fn is_other(runs: [&[&RunOf<Self>]; 2], is_other_lab: bool) -> bool;
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
