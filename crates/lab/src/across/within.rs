//! The comparison of two levels of a factor in one result: its runs share their blocks, so they are paired.

use crate::base::error::{ConfigError, LabError};
use crate::experiment::options::RunOptions;
use crate::experiment::{Compare, Level};
use crate::findings::comparison;
use crate::findings::results::Results;
use crate::findings::summary::by_cell;
use crate::planning::cell::Levels;
use crate::planning::select::{check_only, of_cells};
use crate::report::export::Reported;
use crate::report::shown::Shown;
use crate::report::words;
use crate::stats::Weight;
use serde_json::Value as Json;
use std::path::Path;
use weir_report::text::wrap;

/// Two levels of a factor in one result.
#[derive(Clone, Debug)]
pub struct Within {
    /// Labels, and one line for each comparison, at most 100 columns wide.
    pub text: String,
    /// The result's cells, and these comparisons.
    pub json: Json,
    /// The comparisons in other formats.
    pub reported: Reported,
}

/// As [`crate::compare_levels`].
pub(crate) fn compare_levels<I: Shown>(directory: &Path, levels: [&str; 2]) -> Result<Within, LabError> {
    Ok(of(I::results(directory)?, levels)?)
}

/// Compares levels of a result that has been read.
fn of<I: Shown>(mut results: Results<I>, levels: [&str; 2]) -> Result<Within, ConfigError> {
    let [(factor, old), (_, new)] = pairs(&results, levels)?;
    let plan = &mut results.plan;
    plan.baseline = None;
    plan.experiment.baseline.clear();
    plan.experiment.claims.clear();
    plan.experiment.compare = vec![Compare {
        factor: factor.clone(),
        baseline: Level::new(old),
        cell: Levels::from_iter([(factor.clone(), Level::new(new))]),
    }];
    results.summary.claims.clear();
    results.summary.comparisons = comparison::all::<I>(&results.plan, &by_cell(&results.plan, &results.runs));
    results.summary.weight = Weight::of(*results.summary.blocks().end() as usize);
    let reported = Reported::of_levels(&results);
    let mut text = String::new();
    for label in words::labels::<I>(&results.plan, &results.summary) {
        wrap(&mut text, &label);
    }
    results.summary.comparisons.retain(|one| !one.aa);
    if results.summary.comparisons.is_empty() {
        let message = format!("no two cells that differ in `{factor}` alone: nothing to compare");
        return Err(ConfigError::new(results.directory.display(), message));
    }
    words::comparisons(&mut text, &results);
    Ok(Within { text, json: I::json(&results), reported })
}

/// The factor with each of its two levels.
fn pairs<I: Shown>(results: &Results<I>, levels: [&str; 2]) -> Result<[(String, String); 2], ConfigError> {
    let pair = |text: &str| -> Result<(String, String), ConfigError> {
        let (key, level) = RunOptions::parse_pair("level", text)?;
        Ok((of_cells(&key).to_owned(), level))
    };
    let pairs = [pair(levels[0])?, pair(levels[1])?];
    let [(first, old), (second, new)] = &pairs;
    let wrong = |message: String| Err(ConfigError::new(format!("level {}", levels[1]), message));
    if first != second {
        return wrong(format!("expected another level of `{first}`, as both are of one factor"));
    }
    if Level::new(old) == Level::new(new) {
        return wrong("given twice; expected another level".into());
    }
    check_only::<I>("level", &pairs, &results.plan.cells, &results.plan.experiment)?;
    Ok(pairs)
}
