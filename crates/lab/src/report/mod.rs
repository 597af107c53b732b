//! `report.html`: one self-contained file, readable offline, on a phone and on paper.
//!
//! `view` turns plan, summary and runs into the plain values of `model`; `sections` turn these into HTML, with `chart` for
//! what is drawn. Nothing here reads a clock or depends on the order of a hash, so a rebuilt report is the same.

pub(crate) mod chart;
#[cfg(test)]
mod check;
pub(crate) mod markup;
pub(crate) mod model;
pub(crate) mod page;
mod sections;
#[cfg(test)]
mod tests;
pub(crate) mod view;

use crate::plan::Plan;
use crate::run::RunRecord;
use crate::summary::Summary;

/// The report of an experiment; `settings` are the files that its targets were run with, by name.
pub(crate) fn render(
    plan: &Plan,
    summary: &Summary,
    records: &[RunRecord],
    settings: &[(String, String)],
) -> String {
    page::render(&view::report(plan, summary, records, settings))
}
