//! Two results of one plan: what has changed from the first to the second, and how much of it is the session's.

pub(crate) mod change;
pub(crate) mod load;
pub(crate) mod matching;
mod program;
pub(crate) mod sample;
mod text;

pub use change::Change;
pub use load::{Loads, loads};
pub(crate) use matching::check_different;

use crate::cell::Cell;
use crate::error::{ConfigError, LabError};
use crate::evidence::{Asked, Regressions};
use crate::instrument::Shown;
use crate::machine::Machine;
use crate::results::Results;
use crate::store::stamp;
use matching::Matched;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What became of the cells of one plan between two results.
#[derive(Clone, Debug, Serialize)]
pub struct Across {
    /// Version of this layout.
    pub schema: u32,
    /// The experiment's name.
    pub experiment: String,
    /// Two values within this ratio are called equivalent: 0.03 is 3 %.
    pub margin: f64,
    /// The first result: the denominator.
    pub a: Side,
    /// The second: the numerator.
    pub b: Side,
    /// What has to be known before any number is read.
    pub labels: Vec<String>,
    /// Each metric of each cell that both have; in each group the changed, then the unchanged.
    pub changes: Vec<Change>,
    /// Cells that the first result alone has.
    pub only_a: Vec<String>,
    /// Cells that the second alone has.
    pub only_b: Vec<String>,
    /// What has changed or has not: targets, or engines.
    #[serde(skip)]
    pub(crate) subject: &'static str,
}

/// One of the two results.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Where it is stored.
    pub directory: PathBuf,
    /// The seconds since 1970 at which it began.
    pub started_unix: u64,
    /// The kernel that it ran on.
    pub kernel: String,
    /// Versions of the targets or engines, by name.
    pub versions: BTreeMap<String, String>,
}

impl Side {
    fn of<I: Shown>(results: &Results<I>) -> Self {
        let Machine { started_unix, versions, hardware, .. } = results.machine.clone();
        Self { directory: results.directory.clone(), started_unix, kernel: hardware.kernel, versions }
    }
}

/// As [`crate::compare`].
pub(crate) fn compare<I: Shown>(a: &Path, b: &Path, changed: &[String]) -> Result<Across, LabError> {
    Ok(of(&I::results(a)?, &I::results(b)?, changed)?)
}

fn of<I: Shown>(a: &Results<I>, b: &Results<I>, changed: &[String]) -> Result<Across, ConfigError> {
    let between = matching::Between { names: ["A", "B"], results: [a, b] };
    between.check_plan()?;
    let matched = Matched::new(a, b);
    between.check_cells(&matched)?;
    let names: BTreeSet<&str> = matched.both.iter().map(|pair| pair.cell.subject.as_str()).collect();
    if let Some(unknown) = changed.iter().find(|name| !names.contains(name.as_str())) {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(ConfigError::new(
            format!("--changed {unknown}"),
            format!("no such {} in both results: allowed are {names}", I::SUBJECT),
        ));
    }
    let experiment = &b.plan.experiment;
    let changed = program::changed(between, &matched, changed);
    let changes = change::all(between, &matched, &changed, experiment.margin);
    Ok(Across {
        schema: 1,
        experiment: experiment.name.clone(),
        margin: experiment.margin,
        a: Side::of(a),
        b: Side::of(b),
        labels: text::labels(between, &changes, !changed.is_empty()),
        changes,
        only_a: matched.only_a,
        only_b: matched.only_b,
        subject: I::SUBJECT,
    })
}

/// The fields that tell a change's place beside the cell's name, which has the rest.
fn levels<S: Serializer>(cell: &Cell, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    match (cell.levels.get("mode"), cell.levels.get("load_model")) {
        (Some(mode), Some(load)) => {
            map.serialize_entry("mode", mode)?;
            map.serialize_entry("load", load)?;
        }
        _ => map.serialize_entry("scenario", &cell.levels)?,
    }
    map.end()
}

impl Across {
    /// Labels and one line for each change, at most 100 columns wide.
    pub fn text(&self) -> String {
        text::render(self)
    }

    /// What is shown to be for the worse, what works no more, and what cannot be decided. What moved though nothing changed
    /// is no regression.
    pub fn regressions(&self) -> Regressions {
        let changed = self.changes.iter().filter(|change| !change.unchanged);
        let mut found = Regressions::of(changed.map(|change| Asked {
            line: change.line(self.margin),
            ratio: &change.ratio,
            is_worse: change.is_regression(),
        }));
        found.undecided.extend(self.only_a.iter().map(|cell| format!("{cell}: not in B")));
        found
    }

    /// Which results these are: the first is A, the second B.
    pub(crate) fn sides(&self) -> [String; 2] {
        [("A", &self.a), ("B", &self.b)].map(|(name, Side { directory, started_unix, .. })| {
            format!("{name}: {}, begun {}", directory.display(), stamp(*started_unix))
        })
    }
}

#[cfg(test)]
mod tests;
