//! All numbers of all cells.

use super::parts::{AT_ONCE, alike, folded, heading};
use crate::markup::{Column, Table, details, escape};
use crate::model::{Cell, Group, Report};
use crate::text::NONE;

const NOTE: &str = "One row per cell. Rate, CPU, memory and utilisation are medians over blocks; times are over all requests of \
                    all valid runs, and omitted if only a lower bound (timeouts, unsent requests). CPU is microseconds \
                    per request, or per handshake if connections carry at most one request: of the gateway, the test \
                    server and the load engine.";

pub(crate) fn render(report: &Report) -> String {
    if report.groups.is_empty() {
        return String::new();
    }
    let mut html = heading("Numbers", NOTE);
    let many = report.groups.len() > AT_ONCE * 2;
    for (index, (mode, groups)) in alike(&report.groups, |group| &group.mode).into_iter().enumerate() {
        let (words, count) = (groups[0].mode_words, groups.len());
        let mut body = String::new();
        for (conditions, groups) in alike(groups, |group| &group.conditions) {
            if !conditions.is_empty() {
                body.push_str(&format!("<h4>{}</h4>\n", escape(conditions)));
            }
            body.push_str(&table(report, &groups));
        }
        match many {
            true => html.push_str(&details(index == 0, &folded(mode, words, count, "groups"), &body)),
            false => {
                html.push_str(&format!("<h3>{} <small>{}</small></h3>\n{body}", escape(mode), escape(words)));
            }
        }
    }
    html
}

fn table(report: &Report, groups: &[&Group]) -> String {
    let figures = groups.iter().flat_map(|group| &group.cells).next().map_or(&[][..], |cell| &cell.figures);
    let before = [
        (Column::Key, "target"),
        (Column::Text, "version"),
        (Column::Number, "connec-<br>tions"),
        (Column::Text, "load"),
    ];
    let after = [(Column::Text, "limit"), (Column::Number, "valid<br>runs")];
    let figures = figures.iter().map(|(title, _)| (Column::Number, title.as_str()));
    let mut table = Table::new(before.into_iter().chain(figures).chain(after));
    for group in groups {
        for (index, cell) in group.cells.iter().enumerate() {
            row(&mut table, report, group, cell, index == 0);
        }
    }
    table.finish()
}

fn row(table: &mut Table, report: &Report, group: &Group, cell: &Cell, is_first: bool) {
    let subject = &report.subjects[cell.subject];
    let class = match (is_first, subject.is_baseline) {
        (true, true) => "first baseline",
        (true, false) => "first",
        (false, true) => "baseline",
        (false, false) => "",
    };
    let load = match (group.is_saturated, group.rate) {
        (true, _) => "saturated".into(),
        (false, Some(rate)) => format!("{rate:.0}/s"),
        (false, None) => "equal rate".to_owned(),
    };
    let before = [
        format!("{}{}", subject.look.key(), escape(&subject.name)),
        escape(&subject.version),
        if group.users_vary { group.users.to_string() } else { String::new() },
        load,
    ];
    let after = [
        cell.limit.as_deref().map_or_else(|| NONE.into(), escape),
        format!("{}/{}", cell.valid_runs, cell.runs),
    ];
    let figures = cell.figures.iter().map(|(_, figure)| figure.clone());
    table.row(class, before.into_iter().chain(figures).chain(after));
}
