//! Two results of one plan: what has changed from the first to the second, and how much of it is the session's.

pub(crate) mod change;
mod gateways;
pub(crate) mod load;
pub(crate) mod matching;
mod program;
mod stacks;
pub(crate) mod stored;
mod text;

pub use change::Change;
pub use load::{Loads, loads};
pub use stored::Place;

use crate::error::{ConfigError, LabError};
use crate::evidence::{Asked, Regressions};
use crate::machine::Machine;
use crate::results::Results;
use crate::stacks::{StacksResults, is_of_stacks};
use crate::store::{Store, stamp};
use matching::Matched;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use stored::Stored;

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
    fn of(results: &impl Stored) -> Self {
        let Machine { started_unix, kernel, versions, .. } = results.machine().clone();
        Self { directory: results.directory().to_owned(), started_unix, kernel, versions }
    }
}

/// Compares the results in two directories, both of gateways or both of TLS stacks. `changed` names targets or engines
/// that are other programs though their version is the same in both.
///
/// # Errors
/// What is no result of this program; results that are not of one plan on one machine, with what differs; an unknown name
/// in `changed`.
pub fn compare(a: &Path, b: &Path, changed: &[String]) -> Result<Across, LabError> {
    matching::check_different(&[a, b])?;
    Ok(match are_of_stacks(&[a, b])? {
        true => of(&StacksResults::read(a)?, &StacksResults::read(b)?, changed)?,
        false => of(&Results::read(a)?, &Results::read(b)?, changed)?,
    })
}

/// Whether all of these are results of TLS stacks; else all are of gateways.
///
/// # Errors
/// One is of the one kind and one of the other, or is no result at all.
pub(crate) fn are_of_stacks(directories: &[&Path]) -> Result<bool, LabError> {
    let first = |is_such: bool| directories.iter().find(|directory| is_of_stacks(directory) == is_such);
    match (first(true), first(false)) {
        (of_stacks, None) => Ok(of_stacks.is_some()),
        (None, Some(_)) => Ok(false),
        (Some(of_stacks), Some(other)) => {
            // What is no result at all is told as that.
            Store::open(other).plan()?;
            let message = format!(
                "results of TLS stacks cannot be put beside {}, results of gateways; allowed is one plan",
                other.display()
            );
            Err(ConfigError::new(of_stacks.display(), message).into())
        }
    }
}

fn of<S: Stored>(a: &S, b: &S, changed: &[String]) -> Result<Across, ConfigError> {
    let between = matching::Between { names: ["A", "B"], results: [a, b] };
    between.check_plan()?;
    let matched = Matched::new(a, b);
    between.check_cells(&matched)?;
    let names: BTreeSet<&str> = matched.both.iter().map(|pair| S::subject(pair.cell)).collect();
    if let Some(unknown) = changed.iter().find(|name| !names.contains(name.as_str())) {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(ConfigError::new(
            format!("--changed {unknown}"),
            format!("no such {} in both results: allowed are {names}", S::SUBJECT),
        ));
    }
    let margin = b.margin();
    let changed = program::changed(between, &matched, changed);
    let changes = change::all(between, &matched, &changed, margin);
    Ok(Across {
        schema: 1,
        experiment: b.experiment().to_owned(),
        margin,
        a: Side::of(a),
        b: Side::of(b),
        labels: text::labels(between, &changes, !changed.is_empty()),
        changes,
        only_a: matched.only_a,
        only_b: matched.only_b,
        subject: S::SUBJECT,
    })
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
