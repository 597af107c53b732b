//! Provenance: invalid runs, how to reproduce a cell, the targets' files, the machine, the method.

use super::parts::{AT_ONCE, alike, folded, heading};
use crate::markup::{Column, Table, details, escape};
use crate::model::{Report, Reproduction};
use std::collections::BTreeMap;
use weir_stats::plural;

pub(crate) fn invalid(report: &Report) -> String {
    if report.invalid.is_empty() {
        return heading("Invalid runs", "None.");
    }
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for run in &report.invalid {
        by_reason.entry(&run.why).or_default().push(&run.id);
    }
    // A reason with different figures per run has a row per run.
    let mut rows: Vec<(&str, Vec<&str>)> = by_reason.into_iter().collect();
    rows.sort_by(|left, right| right.1.len().cmp(&left.1.len()).then(left.0.cmp(right.0)));
    let mut table = Table::new([(Column::Number, "runs"), (Column::Wide, "why"), (Column::Wide, "which")]);
    for (why, ids) in &rows {
        let names: Vec<String> = ids.iter().map(|id| format!("<code>{}</code>", escape(id))).collect();
        let which = match names.as_slice() {
            [only] => only.clone(),
            all => details(false, &plural(all.len() as u64, "run"), &all.join("<br>")),
        };
        table.row("", [ids.len().to_string(), escape(why), which]);
    }
    let note = format!(
        "{}, kept in <code>runs/</code> and excluded from all numbers above.",
        plural(report.invalid.len() as u64, "run")
    );
    let table = table.finish();
    let body = if rows.len() <= AT_ONCE {
        table
    } else {
        details(false, &format!("{} reasons", rows.len()), &table)
    };
    heading("Invalid runs", &note) + &body
}

pub(crate) fn reproduce(report: &Report) -> String {
    let one = |cell: &Reproduction| {
        let commands = format!("<pre>{}</pre>", escape(&cell.commands));
        details(false, &format!("<code>{}</code>", escape(&cell.cell)), &commands)
    };
    let mut html = heading("Reproduce a cell", "One run of a cell, and the commands of its last run.");
    if report.reproductions.len() <= AT_ONCE {
        html.extend(report.reproductions.iter().map(one));
        return html;
    }
    for (mode, of_mode) in alike(&report.reproductions, |cell| &cell.mode) {
        let body: String = of_mode.iter().map(|cell| one(cell)).collect();
        html.push_str(&details(false, &folded(mode, "", of_mode.len(), "cells"), &body));
    }
    html
}

pub(crate) fn targets(report: &Report) -> String {
    if report.targets.is_empty() {
        return String::new();
    }
    let mut html = heading("Targets and their settings", "");
    for target in &report.targets {
        let (title, version, about) = (escape(&target.title), escape(&target.version), escape(&target.about));
        html.push_str(&format!("<h3>{title} <small>{version}</small></h3>\n<p class=\"note\">{about}</p>\n"));
        for (file, text) in &target.files {
            let text = format!("<pre>{}</pre>", escape(text));
            html.push_str(&details(false, &format!("<code>{}</code>", escape(file)), &text));
        }
    }
    html
}

pub(crate) fn machine(report: &Report) -> String {
    let mut table = Table::new([(Column::Key, ""), (Column::Wide, "")]);
    for (name, value) in &report.machine {
        table.row("", [escape(name), escape(value)]);
    }
    let mut html = heading("Machine and method", "") + &table.finish();
    if !report.findings.is_empty() {
        let findings: String =
            report.findings.iter().map(|one| format!("<li>{}</li>", escape(one))).collect();
        html.push_str(&format!("<h3>Disturbances on this machine</h3>\n<ul>{findings}</ul>\n"));
    }
    html.push_str(
        "<footer>Ratios are Hodges-Lehmann estimates of the per-block log ratio with exact Wilcoxon signed-rank \
         intervals; p-values are adjusted over the comparisons of one metric under one load (Benjamini and \
         Hochberg). On loopback the kernel charges the receiving side's work to the sender. Method and limits: \
         docs/METHODOLOGY.md.</footer>\n",
    );
    html
}
