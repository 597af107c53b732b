//! What two results of either kind are compared by.

use super::matching::{Between, Pair};
use crate::cell::Group;
use crate::error::ConfigError;
use crate::experiment::{Level, Load, Mode};
use crate::machine::Machine;
use crate::metric::Metric;
use crate::stacks::Scenario;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A result of gateways, or of TLS stacks.
pub(crate) trait Stored: Sized {
    /// What is run, block by block.
    type Cell;
    /// One run of it.
    type Run;

    /// What a version is of.
    const SUBJECT: &'static str;
    /// What the unchanged ones show.
    const DRIFT: &'static str;
    /// What is known of sessions that differ.
    const SESSIONS: &'static str;

    fn directory(&self) -> &Path;
    fn machine(&self) -> &Machine;
    fn experiment(&self) -> &str;
    fn margin(&self) -> f64;
    /// The factors that both must have, with their levels.
    fn factors(&self) -> BTreeMap<String, String>;
    /// The cells by their stable names, without the second of the A/A pair: it says once more what the first says.
    fn cells(&self) -> Vec<Named<'_, Self>>;
    /// Under what a cell of this name is run here.
    fn conditions(&self, cell: &Self::Cell) -> Result<BTreeMap<String, String>, ConfigError>;
    /// Whether a cell has such levels; values of one key are alternatives. `option` is the one that gave them.
    fn selects(
        &self,
        option: &str,
        levels: &[(String, String)],
        cell: &Self::Cell,
    ) -> Result<bool, ConfigError>;
    /// Of a target or engine; empty where it is not told.
    fn version(&self, subject: &str) -> &str;

    /// Its name in the tables.
    fn name(cell: &Self::Cell) -> &str;
    /// What it is a cell of: a target's folder, an engine's.
    fn subject(cell: &Self::Cell) -> &str;
    fn place(cell: &Self::Cell) -> Place;
    /// Whether nothing in it is of anyone's making but the lab's, so that it can only show drift.
    fn is_control(cell: &Self::Cell) -> bool;
    /// What is compared of it.
    fn metrics(cell: &Self::Cell) -> Vec<Metric>;
    /// What of it is followed if nobody says what.
    fn main_metric(cell: &Self::Cell) -> Option<Metric>;
    /// What its runs say of a metric; `name` is what notes call it.
    fn sample(metric: Metric, cell: &Self::Cell, runs: &[&Self::Run], name: &str) -> Sample;

    /// Whether the runs of a cell tell that it was made of another program, whatever version and sources are.
    fn is_other(between: Between<'_, Self>, pair: &Pair<'_, Self>) -> bool;
    /// What the runs were made of and is another in the second result.
    fn differences(between: Between<'_, Self>) -> Vec<String>;
}

/// A cell under its stable name, with its runs.
pub(crate) type Named<'a, S> = (String, &'a <S as Stored>::Cell, Vec<&'a <S as Stored>::Run>);

/// The runs of a cell in one result.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Of each valid run that has one, in the order of the blocks.
    pub(crate) values: Vec<f64>,
    /// Runs that may be used.
    pub(crate) valid: usize,
    /// All of them.
    pub(crate) runs: usize,
    /// What became of the first.
    pub(crate) first: Option<String>,
    /// Requests per second that were offered; `None` in a closed loop, and of TLS stacks.
    pub(crate) rate: Option<f64>,
    /// Why the values say nothing of what was measured.
    pub(crate) note: Option<String>,
}

/// All that a cell shares with those that it is compared with in its own result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Of gateways.
    Gateway(Group),
    /// Of TLS stacks.
    Stack(Scenario),
}

impl Place {
    /// Client side, upstream side; TLS stacks have none.
    pub fn mode(&self) -> Option<Mode> {
        match self {
            Self::Gateway(group) => Some(group.mode),
            Self::Stack(_) => None,
        }
    }

    /// How requests arrive; TLS stacks have none.
    pub fn load(&self) -> Option<Load> {
        match self {
            Self::Gateway(group) => Some(group.load),
            Self::Stack(_) => None,
        }
    }

    /// What stands above the changes of a metric: `CPU per request, saturated`.
    pub(crate) fn heading(&self, metric: Metric) -> String {
        self.load().map_or_else(|| metric.to_string(), |load| format!("{metric}, {load}"))
    }

    /// As short as it is known by: the mode, or the scenario.
    pub(crate) fn short(&self) -> String {
        match self {
            Self::Gateway(group) => group.mode.to_string(),
            Self::Stack(scenario) => scenario.to_string(),
        }
    }

    /// Its further factors, by their keys.
    pub(crate) fn levels(&self) -> Vec<(&str, &Level)> {
        match self {
            Self::Gateway(group) => group.factors.iter().map(|(key, level)| (key.as_str(), level)).collect(),
            Self::Stack(scenario) => scenario.levels().collect(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gateway(group) => write!(formatter, "{}, {group}", group.mode),
            Self::Stack(scenario) => scenario.fmt(formatter),
        }
    }
}

impl Serialize for Place {
    /// The fields that tell it beside the cell's name, which has the rest.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Gateway(Group { mode, load, .. }) => {
                serializer.collect_map([("mode", mode.to_string()), ("load", load.to_string())])
            }
            Self::Stack(scenario) => serializer.collect_map([("scenario", scenario)]),
        }
    }
}
