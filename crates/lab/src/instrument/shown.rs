//! How an instrument's results are shown, where they differ from those of others.

use super::{Instrument, RunOf};
use crate::cell::Cell;
use crate::comparison;
use crate::error::LabError;
use crate::metric::Metric;
use crate::plan::Plan;
use crate::results::Results;
use crate::store::Store;
use crate::summary::{CellSummary, Summary};
use crate::value::Value;
use serde_json::{Value as Json, json};
use std::path::Path;
use weir_report::chart::bars::{self, Bar};
use weir_report::chart::palette::Look;
use weir_report::model::{About, Figures, Group, Picture};
use weir_report::text::short;

/// What a page has beside what all pages have.
#[derive(Debug, Default)]
pub struct Page {
    /// The levels that all cells share, in words.
    pub constants: String,
    /// The cells by their places.
    pub groups: Vec<Group>,
    /// Charts of another kind than those of groups.
    pub figures: Vec<Figures>,
    /// What subjects are, and the files that they were run with.
    pub targets: Vec<About>,
    /// The method, as names and values.
    pub method: Vec<(&'static str, String)>,
}

/// Gives a subject's place among the others, and how it is drawn.
pub type Looks<'a> = dyn Fn(&str) -> (usize, Look) + 'a;

/// How results are shown. What is not said is shown as for any instrument.
pub trait Shown: Instrument {
    /// Reads a directory of results, and what is known beside the blocks.
    ///
    /// # Errors
    /// As [`Results::read`].
    fn results(directory: &Path) -> Result<Results<Self>, LabError> {
        let mut results = Results::read(directory)?;
        Self::complete(&mut results)?;
        Ok(results)
    }

    /// Adds what is known beside the blocks.
    ///
    /// # Errors
    /// A stored file that cannot be read.
    fn complete(_results: &mut Results<Self>) -> Result<(), LabError> {
        Ok(())
    }

    /// What subjects say of themselves and is another in the second of two results of such names.
    fn differences(_results: [&Results<Self>; 2], _names: [&str; 2]) -> Vec<String> {
        Vec::new()
    }

    /// Where and how runs were made, in a sentence.
    fn setting(summary: &Summary) -> String;

    /// What has to be known before all else.
    fn warnings(_summary: &Summary) -> Vec<String> {
        Vec::new()
    }

    /// What tells a cell's place from others, but for the factor that is compared.
    fn row(_plan: &Plan, cell: &Cell, compared: Option<&str>) -> String {
        compared.map_or_else(|| cell.levels.words(), |key| cell.levels.without(key).words())
    }

    /// Where a comparison holds, as the first words of a sentence: `with TLS on both sides`; empty where nothing is varied.
    fn circumstances(plan: &Plan, cell: &Cell, compared: Option<&str>) -> String {
        match Self::row(plan, cell, compared) {
            row if row.is_empty() => row,
            row => format!("with {row}"),
        }
    }

    /// A cell's place in full, as lists of single findings need it.
    fn place_title(cell: &Cell) -> String {
        Self::short(cell)
    }

    /// What a person calls a cell.
    fn title(cell: &Cell) -> String {
        cell.to_string()
    }

    /// By what long lists are folded.
    fn chapter(_cell: &Cell) -> String {
        String::new()
    }

    /// What stands above the comparisons of a family on the page.
    fn family_title(metric: Metric, family: &str) -> String {
        comparison::heading(metric, family)
    }

    /// The subjects and what is varied, for `weir plan`.
    fn describe(_text: &mut String, _plan: &Plan, _found: &Self::Found) {}

    /// The cells on a terminal: their values beside their names, a paragraph for each place.
    fn tables(text: &mut String, results: &Results<Self>) {
        let mut place = None;
        for found in &results.summary.cells {
            let own = Self::row(&results.plan, &found.cell, None);
            if place.as_ref() != Some(&own) {
                text.push('\n');
                // Where nothing is varied there is nothing to say.
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

    /// The metrics that a table for people has a column for, and what the table is called.
    fn columns(cell: &Cell) -> (String, Vec<Metric>) {
        let has = |metric: &&Metric| Self::has(**metric, cell);
        ("Cells".into(), Self::METRICS.iter().filter(has).copied().collect())
    }

    /// What the page has beside what all pages have: a chart for each metric.
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

    /// How the last run of a cell can be made by hand.
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
pub(crate) fn json<I: Instrument>(results: &Results<I>) -> Json {
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

fn cell<I: Instrument>(found: &CellSummary) -> Json {
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

/// The levels of a cell as fields; of how requests arrive, the field is `load`.
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
