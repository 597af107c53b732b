//! Across results: the changes between two results of one plan and the drift between them, two levels of a factor in one
//! result, and a history of many results.

mod both;
pub(crate) mod change;
pub mod export;
mod findings;
pub mod history;
pub(crate) mod matching;
mod program;
pub(crate) mod sample;
mod text;
mod within;

pub use change::Change;
pub use findings::{Across, Side};
pub(crate) use matching::{check_different, check_directories};
pub use within::Within;
pub(crate) use within::compare_levels;

use crate::base::error::{ConfigError, LabError};
use crate::findings::results::Results;
use crate::report::shown::Shown;
use matching::Matched;
use std::collections::BTreeSet;
use std::path::Path;

/// As [`crate::compare`].
pub(crate) fn compare<I: Shown>(a: &Path, b: &Path, changed: &[String]) -> Result<Across, LabError> {
    Ok(of(&I::results(a)?, &I::results(b)?, changed)?)
}

/// Compares results that have been read.
pub(crate) fn of<I: Shown>(
    a: &Results<I>,
    b: &Results<I>,
    changed: &[String],
) -> Result<Across, ConfigError> {
    let between = matching::Between { names: ["A", "B"], results: [a, b] };
    between.check_plan()?;
    let matched = Matched::new(a, b);
    between.check_cells(&matched)?;
    let names: BTreeSet<&str> = matched.both.iter().map(|pair| pair.cell.subject.as_str()).collect();
    if let Some(unknown) = changed.iter().find(|name| !names.contains(name.as_str())) {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(ConfigError::new(
            "--changed",
            format!("unknown {} `{unknown}`: expected one of those in both results: {names}", I::SUBJECT),
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

#[cfg(test)]
mod tests;
