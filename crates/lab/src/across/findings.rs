//! What became of the cells of one plan between two results, as it is written and told.

use super::change::Change;
use crate::evidence::{Asked, Regressions};
use crate::instrument::Shown;
use crate::machine::Machine;
use crate::results::Results;
use crate::store::stamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

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
    pub(super) fn of<I: Shown>(results: &Results<I>) -> Self {
        let Machine { started_unix, versions, hardware, .. } = results.machine.clone();
        Self { directory: results.directory.clone(), started_unix, kernel: hardware.kernel, versions }
    }
}

impl Across {
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
