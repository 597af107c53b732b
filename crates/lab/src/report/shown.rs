//! The presentation of an instrument's results.

use crate::base::error::LabError;
use crate::experiment::metric::Metric;
use crate::findings::comparison;
use crate::findings::judge::Judge;
use crate::findings::results::Results;
use crate::findings::summary::{CellSummary, Summary};
use crate::findings::value::Value;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::planning::subjects::Subjects;
use crate::store::Store;
use crate::store::run::RunOf;
use serde_json::{Value as Json, json};
use std::path::Path;
use weir_report::chart::palette::Look;
use weir_report::model::{About, Figures, Group};

/// The instrument's part of a page.
#[derive(Debug, Default)]
pub struct Page {
    /// The levels that all cells share, in words.
    pub constants: String,
    /// The cells by their places.
    pub groups: Vec<Group>,
    /// Charts other than those of groups.
    pub figures: Vec<Figures>,
    /// Descriptions of the subjects, and their settings files.
    pub targets: Vec<About>,
    /// The method, as names and values.
    pub method: Vec<(&'static str, String)>,
}

/// Gives a subject's index and its look.
pub type Looks<'a> = dyn Fn(&str) -> (usize, Look) + 'a;

/// The presentation of an instrument's results.
pub trait Shown: Judge + Subjects {
    /// Loads a directory of results, and the counts outside the blocks.
    ///
    /// # Errors
    /// As [`Results::read`].
    fn results(directory: &Path) -> Result<Results<Self>, LabError> {
        let mut results = Results::read(directory)?;
        Self::complete(&mut results)?;
        Ok(results)
    }

    /// Adds the counts outside the blocks.
    ///
    /// # Errors
    /// A stored file that cannot be read.
    fn complete(results: &mut Results<Self>) -> Result<(), LabError>;

    /// Facts reported by subjects that differ between two results with these names.
    fn differences(_results: [&Results<Self>; 2], _names: [&str; 2]) -> Vec<String> {
        Vec::new()
    }

    /// The setting of the runs, in a sentence.
    fn setting(summary: &Summary) -> String;

    /// The warnings before all else.
    fn warnings(_summary: &Summary) -> Vec<String> {
        Vec::new()
    }

    /// A cell's distinctive levels, but for the compared factor.
    fn row(plan: &Plan, cell: &Cell, compared: Option<&str>) -> String;

    /// The circumstances of a comparison, as the first words of a sentence: `with TLS on both sides`; empty if nothing
    /// varies.
    fn circumstances(plan: &Plan, cell: &Cell, compared: Option<&str>) -> String {
        match Self::row(plan, cell, compared) {
            row if row.is_empty() => row,
            row => format!("with {row}"),
        }
    }

    /// A cell's place in full, for lists of single findings.
    fn place_title(cell: &Cell) -> String;

    /// A cell's title.
    fn title(cell: &Cell) -> String {
        cell.to_string()
    }

    /// The key that folds long lists.
    fn chapter(cell: &Cell) -> String;

    /// The heading of a family's comparisons on the page.
    fn family_title(metric: Metric, family: &str) -> String {
        comparison::heading(metric, family)
    }

    /// The subjects and the factors, for `weir plan`.
    fn describe(_text: &mut String, _plan: &Plan, _found: &Self::Found) {}

    /// What a profile's shares are shares of: CPU microseconds per unit and its name, such as `request`.
    fn cost(found: &CellSummary) -> Option<(f64, &'static str)>;

    /// The cells on a terminal, a paragraph for each place.
    fn tables(text: &mut String, results: &Results<Self>);

    /// The metrics with a column in the table, and the table's title.
    fn columns(cell: &Cell) -> (String, Vec<Metric>);

    /// The instrument's part of the page.
    fn page(results: &Results<Self>, store: &Store, looks: &Looks<'_>) -> Page;

    /// How to reproduce the last run of a cell by hand.
    fn reproduction(plan: &Plan, cell: &Cell, runs: &[&RunOf<Self>]) -> Option<String>;

    /// `summary.json`.
    fn json(results: &Results<Self>) -> Json {
        json(results)
    }
}

/// The findings as flat rows: every level and every metric of a cell is a field of its own.
pub(crate) fn json<I: Judge>(results: &Results<I>) -> Json {
    let summary = &results.summary;
    json!({
        "schema": 1,
        "experiment": summary.experiment,
        "weight": summary.weight,
        "foreign": summary.foreign,
        "notes": summary.notes,
        "machine": summary.machine,
        "cells": summary.cells.iter().map(cell::<I>).collect::<Vec<_>>(),
        "comparisons": summary.comparisons.iter().map(comparison).collect::<Vec<_>>(),
        "claims": summary.claims,
    })
}

fn cell<I: Judge>(found: &CellSummary) -> Json {
    let mut fields = levels(&found.cell);
    for metric in I::METRICS {
        let value = found.values.get(metric);
        fields[metric.key()] = json!(value.map(|value| value.value));
        if let Some((low, high)) = value.and_then(Value::interval) {
            fields[format!("{}_low", metric.key())] = json!(low);
            fields[format!("{}_high", metric.key())] = json!(high);
        }
    }
    fields["target"] = json!(found.cell.name);
    fields["version"] = json!(found.version);
    fields["rate"] = json!(found.rate);
    fields["blocks"] = json!(found.blocks);
    fields["invalid_runs"] = json!(found.invalid_runs);
    fields["limit"] = json!(found.limit);
    fields["validity"] = json!(found.validity);
    fields
}

fn comparison(one: &comparison::Comparison) -> Json {
    let mut fields = levels(&one.cell);
    merge(&mut fields, json!(one.ratio));
    fields["metric"] = json!(one.metric);
    fields["baseline"] = json!(one.baseline);
    fields["target"] = json!(one.target);
    fields["folder"] = json!(one.cell.subject);
    fields["factor"] = json!(one.factor);
    fields["rate"] = json!(one.rate);
    fields["blocks"] = json!(one.blocks);
    fields["remark"] = json!(one.remark);
    fields["aa"] = json!(one.aa);
    fields
}

/// The levels of a cell as fields; the load model's field is `load`.
fn levels(cell: &Cell) -> Json {
    let mut fields = json!({});
    for (key, level) in cell.levels.iter().filter(|(key, _)| *key != "rate") {
        fields[if key == "load_model" { "load" } else { key }] = json!(level);
    }
    fields
}

/// Adds the fields of an object to another.
pub(crate) fn merge(fields: &mut Json, others: Json) {
    if let (Json::Object(fields), Json::Object(others)) = (fields, others) {
        fields.extend(others);
    }
}
