//! All numbers of all cells.

use super::parts::{AT_ONCE, alike, folded, heading};
use crate::markup::{Column, Table, details, escape};
use crate::model::{Cell, Group, Report, Subject};
use crate::text::{NONE, number};

const NOTE: &str = "One row for each cell. Rate, CPU, memory and utilisation are medians over blocks, times those of all requests of \
                    all valid runs; a time that would only be a lower bound is left out (requests timed out, or were never \
                    sent). CPU is microseconds per request, or per handshake where connections are made for one request \
                    or none: the gateway's own, and beside it the test server's and the load engine's.";

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
    let mut table = Table::new(columns(groups[0].unit).map(|(column, title, _)| (column, title)));
    for group in groups {
        for (index, cell) in group.cells.iter().enumerate() {
            let subject = &report.subjects[cell.subject];
            let class = match (index == 0, subject.is_baseline) {
                (true, true) => "first baseline",
                (true, false) => "first",
                (false, true) => "baseline",
                (false, false) => "",
            };
            let row = Row { group, cell, subject };
            table.row(class, columns(group.unit).map(|(.., value)| value(&row)));
        }
    }
    table.finish()
}

/// What a row is about.
struct Row<'a> {
    group: &'a Group,
    cell: &'a Cell,
    subject: &'a Subject,
}

/// What a column has in a row.
type Value = fn(&Row<'_>) -> String;

/// What each column holds, and its title.
fn columns(unit: &str) -> [(Column, String, Value); 22] {
    let text = |title: &str, value: Value| (Column::Text, title.to_owned(), value);
    let figure = |title: &str, value: Value| (Column::Number, title.to_owned(), value);
    [
        (Column::Key, "target".into(), |row| {
            format!("{}{}", row.subject.look.key(), escape(&row.subject.name))
        }),
        text("version", |row| escape(&row.subject.version)),
        figure(
            "connec-<br>tions",
            |Row { group, .. }| {
                if group.users_vary { group.users.to_string() } else { String::new() }
            },
        ),
        text("load", |row| load(row.group)),
        figure(&format!("{unit}s/s"), |row| number(row.cell.per_second, 0)),
        figure("mean \u{b5}s", |row| number(row.cell.mean_us, 0)),
        figure("sd \u{b5}s", |row| number(row.cell.sd_us, 0)),
        figure("p50 \u{b5}s", |row| number(row.cell.p50_us, 0)),
        figure("p95 \u{b5}s", |row| number(row.cell.p95_us, 0)),
        figure("p99 \u{b5}s", |row| number(row.cell.p99_us, 0)),
        figure("errors %", |row| number(row.cell.error_ratio.map(|ratio| ratio * 100.0), 2)),
        figure("CPU \u{b5}s", |row| number(row.cell.cpu_us, 1)),
        figure("utili-<br>sation", |row| number(row.cell.utilisation, 2)),
        figure("origin<br>CPU \u{b5}s", |row| number(row.cell.origin_cpu_us, 1)),
        figure("load<br>CPU \u{b5}s", |row| number(row.cell.load_cpu_us, 1)),
        figure("switches,<br>each", |row| number(row.cell.switches_per_request, 2)),
        figure("RSS MiB<br>peak", |row| number(row.cell.rss_kib.map(mib), 1)),
        figure("RSS MiB<br>at end", |row| number(row.cell.rss_end_kib.map(mib), 1)),
        figure("GC through-<br>put %", |row| where_any(row.cell.gc_throughput_percent, 2)),
        figure("MiB after<br>full GC", |row| where_any(row.cell.after_full_gc_kib.map(mib), 1)),
        text("limit", |row| row.cell.limit.as_deref().map_or_else(|| NONE.into(), escape)),
        figure("valid<br>runs", |row| format!("{}/{}", row.cell.valid_runs, row.cell.runs)),
    ]
}

fn load(group: &Group) -> String {
    match (group.is_saturated, group.rate) {
        (true, _) => "saturated".into(),
        (false, Some(rate)) => format!("{rate:.0}/s"),
        (false, None) => "equal rate".into(),
    }
}

fn mib(kib: f64) -> f64 {
    kib / 1024.0
}

/// Empty where there is none: a column without any value is left out.
fn where_any(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.digits$}"))
}
