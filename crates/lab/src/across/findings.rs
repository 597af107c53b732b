//! The findings of a comparison of two results of one plan, as written to JSON and text.

use super::change::Change;
use crate::findings::evidence::{Asked, Regressions};
use crate::findings::results::Results;
use crate::report::shown::Shown;
use crate::store::machine::Machine;
use crate::store::stamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The comparison of two results of one plan.
#[derive(Clone, Debug, Serialize)]
pub struct Across {
    /// Schema version.
    pub schema: u32,
    /// The experiment's name.
    pub experiment: String,
    /// Two values within this ratio are equivalent: 0.03 is 3 %.
    pub margin: f64,
    /// The first result: the denominator.
    pub a: Side,
    /// The second: the numerator.
    pub b: Side,
    /// Caveats, to read before any number.
    pub labels: Vec<String>,
    /// Each metric of each common cell; in each group the changed, then the unchanged.
    pub changes: Vec<Change>,
    /// Cells in the first result only.
    pub only_a: Vec<String>,
    /// Cells in the second result only.
    pub only_b: Vec<String>,
    /// The kind of program compared: target or engine.
    #[serde(skip)]
    pub(crate) subject: &'static str,
}

/// One of the two results.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// The result's directory.
    pub directory: PathBuf,
    /// The start, in seconds since 1970.
    pub started_unix: u64,
    /// The kernel it ran on.
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
    /// Changed programs that are shown to be worse, are broken, or cannot be decided. A change in an unchanged program
    /// is drift, not a regression.
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

    /// The directory and start of A and B.
    pub(crate) fn sides(&self) -> [String; 2] {
        [("A", &self.a), ("B", &self.b)].map(|(name, Side { directory, started_unix, .. })| {
            format!("{name}: {}, started {}", directory.display(), stamp(*started_unix))
        })
    }
}
