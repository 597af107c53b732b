//! `report.html`: one self-contained file, readable offline, on a phone and on paper.
//!
//! `view` turns plan, summary and runs into the plain values of `model`, and `page` turns these into HTML.

#[cfg(test)]
mod tests;
pub(crate) mod view;

pub(crate) use weir_report::{chart, markup, model, page};

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
