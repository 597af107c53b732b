//! Two results of one plan: what has changed from the first to the second, and how much of it is the session's.

pub(crate) mod change;
pub(crate) mod matching;
mod program;
mod text;

pub use change::Change;

use crate::error::{ConfigError, LabError};
use crate::experiment::Load;
use crate::machine::Machine;
use crate::metric::Metric;
use crate::results::Results;
use crate::store::stamp;
use matching::Matched;
use serde::Serialize;
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
    /// Each metric of each cell that both have; in each group the changed targets, then the unchanged.
    pub changes: Vec<Change>,
    /// Cells that the first result alone has.
    pub only_a: Vec<String>,
    /// Cells that the second alone has.
    pub only_b: Vec<String>,
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
    /// Versions of the targets, by name.
    pub versions: BTreeMap<String, String>,
}

impl Side {
    fn of(results: &Results) -> Self {
        let Machine { started_unix, kernel, versions, .. } = results.machine.clone();
        Self { directory: results.directory.clone(), started_unix, kernel, versions }
    }
}

/// Compares the results in two directories. `changed` names targets that are other programs though their version is the
/// same in both.
///
/// # Errors
/// What is no result of this program; results that are not of one plan on one machine, with what differs; an unknown name
/// in `changed`.
pub fn compare(a: &Path, b: &Path, changed: &[String]) -> Result<Across, LabError> {
    matching::check_different(&[a, b])?;
    Ok(of(&Results::read(a)?, &Results::read(b)?, changed)?)
}

fn of(a: &Results, b: &Results, changed: &[String]) -> Result<Across, ConfigError> {
    let between = matching::Between { names: ["A", "B"], results: [a, b] };
    between.check_plan()?;
    let matched = Matched::new(a, b);
    between.check_cells(&matched)?;
    let names: BTreeSet<&str> = matched.both.iter().map(|pair| pair.cell.target.as_str()).collect();
    if let Some(unknown) = changed.iter().find(|name| !names.contains(name.as_str())) {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(ConfigError::new(
            format!("--changed {unknown}"),
            format!("no such target in both results: allowed are {names}"),
        ));
    }
    let margin = b.plan.experiment.margin;
    let changed = program::changed(between, &matched, changed);
    let changes = change::all(a, b, &matched, &changed, margin);
    Ok(Across {
        schema: 1,
        experiment: b.plan.experiment.name.clone(),
        margin,
        a: Side::of(a),
        b: Side::of(b),
        labels: text::labels(between, &changes, !changed.is_empty()),
        changes,
        only_a: matched.only_a,
        only_b: matched.only_b,
    })
}

impl Across {
    /// Labels and one line for each change, at most 100 columns wide.
    pub fn text(&self) -> String {
        text::render(self)
    }

    /// The changes that are shown to be for the worse, and what works no more. What moved though nothing changed is no
    /// regression.
    pub fn regressions(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_regression())
    }

    /// Which results these are: the first is A, the second B.
    pub(crate) fn sides(&self) -> [String; 2] {
        [("A", &self.a), ("B", &self.b)].map(|(name, Side { directory, started_unix, .. })| {
            format!("{name}: {}, begun {}", directory.display(), stamp(*started_unix))
        })
    }

    fn families(&self) -> BTreeSet<(Load, Metric)> {
        self.changes.iter().map(|change| (change.load, change.metric)).collect()
    }
}

#[cfg(test)]
mod tests;
