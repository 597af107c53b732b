//! The statements on a terminal, and as a document.

use super::record::Measurement;
use super::{STUDIES, Statement, Study, Verdict};
use crate::findings::claims::{self, Evidence};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use time::OffsetDateTime;
use weir_load::plural;
use weir_report::export::{Table, markdown as tables};
use weir_report::text::{NONE, flow, short};

const INTRODUCTION: [&str; 4] = [
    "Weir started from four published studies. This page has each of their statements with the claim that checks it, the \
     value measured here, and the verdict. `weir studies --markdown docs/STUDIES.md` writes this page from the stored verdicts \
     in docs/studies.",
    "A claim names an experiment, some of its cells, and the value expected there; most values are ratios of two cells. A \
     verdict needs the whole interval: *confirmed* if it is within the expected values in every cell, *contradicted* if \
     it is outside in one, *undecided* otherwise. *Indication* means fewer than ten blocks. *Reported* has the figures of the \
     report that the claim was written from, and after *the original* those of the study itself.",
    "A sentence of direction (\"is faster\") has a one-sided claim, and the study's figure has one of its own (\"by a tenth\"). \
     Where subjects ran in duets, CPU time per request stands for rates, as the inverse.",
    "To measure the statements of a study again: `weir studies run S4 --quick --out out/S4`; to store the verdicts of its \
     results in docs/studies: `weir studies out/S4/outbound out/S4/outbound-settings --keep`.",
];

/// The statements with their verdicts, within 100 columns. Among verdicts of given results, a stored one says so.
pub fn terminal(statements: &[Statement]) -> String {
    let has_given = statements.iter().any(Statement::is_given);
    let mut text = String::new();
    for (study, own) in studies(statements) {
        let _ = writeln!(text, "{}: {}\n{}\n{}", study.source, study.title, study.original, counts(&own));
        let given: Vec<&Statement> = own.iter().copied().filter(|one| one.is_given()).collect();
        if !given.is_empty() {
            let _ = writeln!(text, "In these results, {}", counts(&given));
        }
        text.push('\n');
        for statement in own {
            let (_, verdict, why) = statement.verdict();
            flow(&mut text, &statement.claim.says, 2, 4);
            let stored = statement.measurement().filter(|on| has_given && !on.is_given);
            let from = stored.map(|on| format!("stored on {}, {}: ", day(on), on.cpu)).unwrap_or_default();
            flow(&mut text, &format!("{from}{verdict}: {why}"), 6, 8);
            let measured = here(statement);
            if measured != NONE {
                flow(&mut text, &format!("measured {measured}; expected {}", asked(statement)), 6, 8);
            }
            let figures = reported(statement);
            if !figures.is_empty() {
                flow(&mut text, &format!("reported: {figures}"), 6, 8);
            }
            flow(&mut text, &format!("{}: {}", statement.experiment, statement.claim.id), 6, 8);
        }
        text.push('\n');
    }
    text
}

/// The same as a page in Markdown, with the measurements behind it.
pub fn markdown(statements: &[Statement]) -> String {
    let row = |statement: &&Statement| {
        let (_, verdict, why) = statement.verdict();
        let claim = format!("{}: {}", statement.experiment, statement.claim.id);
        vec![
            statement.claim.says.clone(),
            reported(statement),
            asked(statement),
            here(statement),
            format!("{verdict}: {why}"),
            claim,
        ]
    };
    let of_study = |(study, own): (&Study, Vec<&Statement>)| Table {
        title: format!("{}: {}. {}", study.source, study.title, counts(&own)),
        columns: vec!["statement", "reported", "expected", "measured here", "verdict", "claim"],
        rows: own.iter().map(row).collect(),
    };
    let mut all: Vec<Table> = studies(statements).map(of_study).collect();
    all.push(measurements(statements));
    let originals = STUDIES.iter().map(|study| format!("{}: {}", study.source, study.original));
    let labels: Vec<String> = originals.collect();
    let page = tables::render("The studies, statement by statement", &labels, &all);
    let introduction = INTRODUCTION.join("\n\n");
    match page.split_once('\n') {
        Some((heading, rest)) => format!("{heading}\n\n{introduction}\n{rest}"),
        None => page,
    }
}

/// The studies that have statements among these.
fn studies(statements: &[Statement]) -> impl Iterator<Item = (&'static Study, Vec<&Statement>)> {
    let of = |study: &'static Study| {
        let own = statements.iter().filter(|statement| statement.claim.source == study.source);
        (study, own.collect::<Vec<_>>())
    };
    STUDIES.iter().map(of).filter(|(_, own)| !own.is_empty())
}

/// `12 statements: 7 confirmed, 3 contradicted, 2 not testable here`.
fn counts(statements: &[&Statement]) -> String {
    let mut counts: BTreeMap<Verdict, u64> = BTreeMap::new();
    for statement in statements {
        *counts.entry(statement.verdict().0).or_default() += 1;
    }
    let each: Vec<String> = counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    format!("{}: {}", plural(statements.len() as u64, "statement"), each.join(", "))
}

/// The expected value, as it was judged or as the claim has it.
fn asked(statement: &Statement) -> String {
    let text = match statement.finding() {
        Some(finding) => finding.asked_text(),
        None => claims::finding(&statement.claim, Vec::new()).asked_text(),
    };
    if text.is_empty() { NONE.into() } else { text }
}

/// The study's figures, and the original's.
fn reported(statement: &Statement) -> String {
    let claim = &statement.claim;
    let original = claim.original.as_ref().map(|figures| format!("the original: {figures}"));
    let figures = claim.figures.clone().filter(|figures| figures != "none");
    figures.into_iter().chain(original).collect::<Vec<_>>().join("; ")
}

/// `0.912 [0.905, 0.921]`, or the range over several cells.
fn here(statement: &Statement) -> String {
    let cells: &[Evidence] = statement.finding().map_or(&[], |finding| &finding.cells);
    let mut values: Vec<f64> = cells.iter().filter_map(|one| one.value).collect();
    values.sort_by(f64::total_cmp);
    match (cells, values.as_slice()) {
        ([one], _) => one.value_text(),
        (_, [least, .., most]) => format!("{} to {} in {} cells", short(*least), short(*most), values.len()),
        (_, [one]) => short(*one),
        (_, []) => NONE.into(),
    }
}

/// The results behind the verdicts.
fn measurements(statements: &[Statement]) -> Table {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (_, on) in statements.iter().filter_map(|statement| statement.measured.as_ref()) {
        let versions = on.versions.iter().filter(|(_, version)| !version.is_empty());
        let versions: Vec<String> = versions.map(|(name, version)| format!("{name} {version}")).collect();
        let machine = format!("{}, {}", on.cpu, plural(on.cores as u64, "core"));
        let row = vec![on.command.clone(), day(on), machine, versions.join(", ")];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    Table { title: "Measurements".into(), columns: vec!["command", "date", "machine", "versions"], rows }
}

/// The day of a measurement, such as `2026-11-27`.
fn day(on: &Measurement) -> String {
    let seconds = i64::try_from(on.started_unix).unwrap_or_default();
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH).date().to_string()
}
