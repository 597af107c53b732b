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
use weir_report::chart::bars::{self, Bar};
use weir_report::chart::palette::Look;
use weir_report::model::{About, Figures, Group, Picture};
use weir_report::text::short;

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

/// The presentation of results, with defaults for any instrument.
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
    fn complete(_results: &mut Results<Self>) -> Result<(), LabError> {
        Ok(())
    }

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
    fn row(_plan: &Plan, cell: &Cell, compared: Option<&str>) -> String {
        compared.map_or_else(|| cell.levels.words(), |key| cell.levels.without(key).words())
    }

    /// The circumstances of a comparison, as the first words of a sentence: `with TLS on both sides`; empty if nothing
    /// varies.
    fn circumstances(plan: &Plan, cell: &Cell, compared: Option<&str>) -> String {
        match Self::row(plan, cell, compared) {
            row if row.is_empty() => row,
            row => format!("with {row}"),
        }
    }

    /// A cell's place in full, for lists of single findings.
    fn place_title(cell: &Cell) -> String {
        Self::short(cell)
    }

    /// A cell's title.
    fn title(cell: &Cell) -> String {
        cell.to_string()
    }

    /// The key that folds long lists.
    fn chapter(_cell: &Cell) -> String {
        String::new()
    }

    /// The heading of a family's comparisons on the page.
    fn family_title(metric: Metric, family: &str) -> String {
        comparison::heading(metric, family)
    }

    /// The subjects and the factors, for `weir plan`.
    fn describe(_text: &mut String, _plan: &Plan, _found: &Self::Found) {}

    /// What a profile's shares are shares of: CPU microseconds per unit and its name, such as `request`.
    fn cost(_found: &CellSummary) -> Option<(f64, &'static str)> {
        None
    }

    /// The cells on a terminal: their values beside their names, a paragraph for each place.
    fn tables(text: &mut String, results: &Results<Self>) {
        let mut place = None;
        for found in &results.summary.cells {
            let own = Self::row(&results.plan, &found.cell, None);
            if place.as_ref() != Some(&own) {
                text.push('\n');
                // Nothing to add if nothing varies.
                if !own.is_empty() {
                    weir_report::text::wrap(text, &own);
                }
                place = Some(own);
            }
            let values: Vec<String> =
                found.values.iter().map(|(metric, value)| value.words(*metric)).collect();
            let words = match values.is_empty() {
                true => found.why_invalid.clone().unwrap_or_else(|| "no run".into()),
                false => values.join(", "),
            };
            weir_report::text::flow(text, &format!("{}: {words}", found.cell.name), 2, 6);
        }
    }

    /// The metrics with a column in the table, and the table's title.
    fn columns(cell: &Cell) -> (String, Vec<Metric>) {
        let has = |metric: &&Metric| Self::has(**metric, cell);
        ("Cells".into(), Self::METRICS.iter().filter(has).copied().collect())
    }

    /// The instrument's part of the page: a chart for each metric.
    fn page(results: &Results<Self>, _store: &Store, looks: &Looks<'_>) -> Page {
        let figures = Self::METRICS.iter().map(|metric| bars::<Self>(results, *metric, looks));
        let machine = &results.machine;
        let about = |(name, about): (&String, &String)| About {
            title: name.clone(),
            version: machine.versions.get(name).cloned().unwrap_or_default(),
            about: about.clone(),
            files: Vec::new(),
        };
        let targets = machine.about.iter().map(about).collect();
        Page { figures: figures.collect(), targets, ..Page::default() }
    }

    /// How to reproduce the last run of a cell by hand.
    fn reproduction(plan: &Plan, cell: &Cell, runs: &[&RunOf<Self>]) -> Option<String>;

    /// `summary.json`.
    fn json(results: &Results<Self>) -> Json {
        json(results)
    }
}

/// A bar for each cell in each place.
fn bars<I: Shown>(results: &Results<I>, metric: Metric, looks: &Looks<'_>) -> Figures {
    let mut places: Vec<(String, Vec<&CellSummary>)> = Vec::new();
    for found in results.summary.cells.iter().filter(|found| found.values.contains_key(&metric)) {
        let own = I::row(&results.plan, &found.cell, None);
        match places.iter_mut().find(|(place, _)| *place == own) {
            Some((_, cells)) => cells.push(found),
            None => places.push((own, vec![found])),
        }
    }
    let bar = |found: &&'_ CellSummary| {
        let value = found.values.get(&metric);
        let words = value.map_or_else(|| "-".into(), |value| short(value.value));
        (found.cell.name.clone(), looks(&found.cell.name).1, value.copied(), words)
    };
    let pictures = places.into_iter().filter_map(|(caption, cells)| {
        let all: Vec<(String, Look, Option<Value>, String)> = cells.iter().map(bar).collect();
        let bars: Vec<Bar<'_>> = all
            .iter()
            .map(|(name, look, value, words)| Bar {
                name,
                look: *look,
                value: value.map(|value| value.value),
                interval: value.and_then(|value| value.interval()),
                parts: Vec::new(),
                words: words.clone(),
            })
            .collect();
        let svg = bars::draw(&format!("{metric}: {caption}"), metric.unit(), &bars, bars::reach(&bars))?;
        Some(Picture { caption, svg })
    });
    let note = "Medians over blocks; whiskers are the interval of the location over blocks.".into();
    Figures { title: metric.title().into(), note, pictures: pictures.collect() }
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
