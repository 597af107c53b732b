//! The HTML report of an experiment's results, in plain values: the same for all instruments.

use crate::doctor;
use crate::experiment::metric::Metric;
use crate::findings::claims::{self, ClaimVerdict, Evidence, Finding};
use crate::findings::comparison::Comparison;
use crate::findings::judge::Judge;
use crate::findings::results::Results;
use crate::findings::summary::by_cell;
use crate::planning::plan::Plan;
use crate::report::answer::sentences;
use crate::report::shown::{Page, Shown};
use crate::report::split;
use crate::report::words::{QUICK, called, labels};
use crate::stats::Better;
use crate::stats::verdict::{Verdict, difference};
use crate::store::Store;
use crate::store::machine::Machine;
use crate::store::run::RunOf;
use std::collections::BTreeMap;
use weir_load::plural;
use weir_report::chart::palette::Look;
use weir_report::model::{Claim, Family, InvalidRun, Outcome, Report, Reproduction, Standing, Subject};
use weir_report::{model, page};

/// The whole file.
pub(crate) fn render<I: Shown>(results: &Results<I>, store: &Store) -> String {
    page::render(&report(results, store))
}

/// The contents of the report.
pub(crate) fn report<I: Shown>(results: &Results<I>, store: &Store) -> Report {
    let Results { plan, machine, runs, summary, .. } = results;
    let subjects = subjects(plan, machine);
    let look = |name: &str| {
        let place = subjects.iter().position(|subject| subject.name == name).unwrap_or(0);
        (place, subjects.get(place).map_or(Look { place: 0, is_again: false }, |subject| subject.look))
    };
    let Page { constants, groups, figures, targets, method } = I::page(results, store, &look);
    let (claims, claims_unrun) = claims(&summary.claims, &called::<I>(plan));
    let experiment = &plan.experiment;
    Report {
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        answer: sentences(results),
        quick: experiment.quick.then(|| QUICK.to_owned()),
        labels: labels::<I>(plan, summary),
        constants,
        analysis: paragraphs(experiment.analysis.as_deref()),
        groups,
        families: families(results, &|name| look(name).1),
        figures,
        splits: split::splits(results),
        advised: results.advised.clone(),
        claims,
        claims_unrun,
        invalid: runs.iter().filter(|run| !run.validity.is_valid()).map(invalid::<I>).collect(),
        reproductions: reproductions(results),
        targets,
        machine: hardware(machine).into_iter().chain(method).collect(),
        findings: findings(machine),
        subjects,
    }
}

/// The author's text, by paragraph.
fn paragraphs(text: Option<&str>) -> Vec<String> {
    let paragraphs = text.into_iter().flat_map(|text| text.split("\n\n"));
    paragraphs.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// The doctor's complaints.
fn findings(machine: &Machine) -> Vec<String> {
    let found = machine.doctor.iter().filter(|finding| finding.level != doctor::Level::Good);
    found.map(|finding| format!("{}: {}. {}", finding.id, finding.value, finding.advice)).collect()
}

/// The subjects in the order of their first cell; the second of the A/A pair is drawn like the first.
fn subjects(plan: &Plan, machine: &Machine) -> Vec<Subject> {
    let mut subjects: Vec<Subject> = Vec::new();
    let mut next = 0;
    for cell in &plan.cells {
        if subjects.iter().any(|seen| seen.name == cell.name) {
            continue;
        }
        let first = subjects.iter().find(|seen| cell.is_again() && seen.name == cell.first_name());
        let look = match first {
            Some(first) => Look { is_again: true, ..first.look },
            None => {
                next += 1;
                Look { place: next - 1, is_again: cell.is_again() }
            }
        };
        subjects.push(Subject {
            name: cell.name.clone(),
            version: machine.versions.get(&cell.subject).cloned().unwrap_or_default(),
            look,
            is_baseline: plan.baseline.as_ref() == Some(&cell.name),
        });
    }
    subjects
}

/// By family, metric and kind of comparison, in sorted order.
fn families<I: Shown>(results: &Results<I>, look: &dyn Fn(&str) -> Look) -> Vec<Family> {
    type Key<'a> = (&'a str, Metric, Option<&'a str>);
    let all = &results.summary.comparisons;
    let mut families: BTreeMap<Key<'_>, Vec<model::Comparison>> = BTreeMap::new();
    for one in all {
        let key = (one.family.as_str(), one.metric, one.factor.as_deref());
        families.entry(key).or_default().push(shown::<I>(one, &results.plan, look));
    }
    let family = |((family, metric, factor), comparisons): (Key<'_>, Vec<model::Comparison>)| {
        let by = factor.map_or_else(String::new, |factor| format!(", by {factor}"));
        let is_floor = |one: &Comparison| {
            one.aa && (one.family.as_str(), one.metric) == (family, metric) && one.ratio.reach().is_some()
        };
        Family {
            title: I::family_title(metric, family) + &by,
            is_less_better: metric.better() == Better::Less,
            has_floor: all.iter().any(is_floor),
            comparisons,
        }
    };
    families.into_iter().map(family).collect()
}

fn shown<I: Shown>(one: &Comparison, plan: &Plan, look: &dyn Fn(&str) -> Look) -> model::Comparison {
    let margin = plan.experiment.margin;
    model::Comparison {
        mode: I::chapter(&one.cell),
        group: I::row(plan, &one.cell, one.factor.as_deref()),
        target: one.target.clone(),
        look: look(&one.cell.name),
        baseline: one.baseline.clone(),
        is_aa: one.aa,
        ratio: one.ratio.clone(),
        blocks: one.blocks,
        outcome: outcome(one.ratio.verdict, one.ratio.value, one.metric),
        difference: one.ratio.value.map_or_else(String::new, |ratio| difference(ratio, margin)),
        words: one.verdict_text(margin),
    }
}

/// The standing of a verdict on this ratio.
fn outcome(verdict: Verdict, ratio: Option<f64>, metric: Metric) -> Outcome {
    match (verdict, ratio) {
        (Verdict::Different, Some(ratio)) if !metric.better().is_worse(ratio) => Outcome::Better,
        (Verdict::Different, _) => Outcome::Worse,
        (Verdict::Equivalent, _) => Outcome::Equivalent,
        (Verdict::Undecided, _) => Outcome::Undecided,
    }
}

/// The claims worth showing, and a line about the others. `called` returns a cell's title by its name.
fn claims(findings: &[Finding], called: &dyn Fn(&str) -> String) -> (Vec<Claim>, String) {
    let (shown, unrun) = claims::shown(findings);
    (shown.into_iter().map(|finding| claim(finding, called)).collect(), unrun.unwrap_or_default())
}

fn claim(finding: &Finding, called: &dyn Fn(&str) -> String) -> Claim {
    Claim {
        id: finding.id.clone(),
        source: finding.source.clone(),
        says: finding.says.clone(),
        asked: finding.asked_text(),
        figures: finding.figures_text(),
        verdict: finding.verdict_text(),
        standing: match finding.verdict {
            ClaimVerdict::Confirmed => Standing::Confirmed,
            ClaimVerdict::Contradicted => Standing::Contradicted,
            ClaimVerdict::Undecided | ClaimVerdict::NotTestable => Standing::Open,
        },
        why: finding.why.clone(),
        evidence: finding.cells.iter().map(|one| evidence(one, called)).collect(),
    }
}

/// `request.h1-h1c.c100.b1000.saturated.weir vs ..nginx: 0.93 [0.90, 0.97], 12 blocks: confirmed`.
fn evidence(one: &Evidence, called: &dyn Fn(&str) -> String) -> String {
    let against = one.against.as_ref().map_or_else(String::new, |other| format!(" vs {}", called(other)));
    let notes: Vec<&str> = one.note.iter().chain(&one.remark).map(String::as_str).collect();
    let note = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    let (cell, blocks) = (called(&one.cell), plural(one.blocks.into(), "block"));
    format!("{cell}{against}: {}, {blocks}: {}{note}", one.value_text(), one.verdict)
}

fn invalid<I: Judge>(run: &RunOf<I>) -> InvalidRun {
    InvalidRun { id: run.run.id.clone(), why: run.validity.to_string() }
}

/// How to reproduce the last run of each cell by hand.
fn reproductions<I: Shown>(results: &Results<I>) -> Vec<Reproduction> {
    let cells = by_cell(&results.plan, &results.runs);
    let one = |(cell, runs): &(&crate::planning::cell::Cell, Vec<&RunOf<I>>)| {
        let commands = I::reproduction(&results.plan, cell, runs)?;
        Some(Reproduction { mode: I::chapter(cell), cell: cell.to_string(), commands })
    };
    cells.iter().filter_map(one).collect()
}

/// The machine.
fn hardware(machine: &Machine) -> Vec<(&'static str, String)> {
    let hardware = &machine.hardware;
    let virtual_words = if hardware.is_virtual { ", virtual" } else { "" };
    let (features, cores) = (hardware.features.join(" "), machine.cores.len());
    let mut facts = vec![
        ("processor", format!("{} ({cores} cores usable{virtual_words}; {features})", hardware.cpu)),
        (
            "kernel, memory",
            format!("{}, {:.1} GiB", hardware.kernel, hardware.memory_kib as f64 / 1_048_576.0),
        ),
        ("network", machine.network.clone()),
    ];
    facts.extend(hardware.governor.clone().map(|governor| ("governor", governor)));
    facts
}

#[cfg(test)]
mod tests;
