//! All numbers of all cells.

use super::parts::{AT_ONCE, folded, heading, in_order};
use crate::markup::{Column, Table, details, escape};
use crate::model::{Cell, Group, Report};
use crate::text::number;

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
    for (index, mode) in
        in_order(report.groups.iter().map(|group| group.mode.as_str())).into_iter().enumerate()
    {
        let groups: Vec<&Group> = report.groups.iter().filter(|group| group.mode == mode).collect();
        let words = groups[0].mode_words;
        let mut body = String::new();
        for conditions in in_order(groups.iter().map(|group| group.conditions.as_str())) {
            let alike: Vec<&Group> =
                groups.iter().copied().filter(|group| group.conditions == conditions).collect();
            if !conditions.is_empty() {
                body.push_str(&format!("<h4>{}</h4>\n", escape(conditions)));
            }
            body.push_str(&table(report, &alike));
        }
        match many {
            true => html.push_str(&details(index == 0, &folded(mode, words, groups.len(), "groups"), &body)),
            false => {
                html.push_str(&format!("<h3>{} <small>{}</small></h3>\n{body}", escape(mode), escape(words)));
            }
        }
    }
    html
}

fn table(report: &Report, groups: &[&Group]) -> String {
    let unit = groups[0].unit;
    let mut table = Table::new([
        (Column::Key, "target".to_owned()),
        (Column::Text, "version".into()),
        (Column::Number, "connec-<br>tions".into()),
        (Column::Text, "load".into()),
        (Column::Number, format!("{unit}s/s")),
        (Column::Number, "mean \u{b5}s".into()),
        (Column::Number, "sd \u{b5}s".into()),
        (Column::Number, "p50 \u{b5}s".into()),
        (Column::Number, "p95 \u{b5}s".into()),
        (Column::Number, "p99 \u{b5}s".into()),
        (Column::Number, "errors %".into()),
        (Column::Number, "CPU \u{b5}s".into()),
        (Column::Number, "utili-<br>sation".into()),
        (Column::Number, "origin<br>CPU \u{b5}s".into()),
        (Column::Number, "load<br>CPU \u{b5}s".into()),
        (Column::Number, "switches,<br>each".into()),
        (Column::Number, "RSS MiB<br>peak".into()),
        (Column::Number, "RSS MiB<br>at end".into()),
        (Column::Number, "GC through-<br>put %".into()),
        (Column::Number, "MiB after<br>full GC".into()),
        (Column::Text, "limit".into()),
        (Column::Number, "valid<br>runs".into()),
    ]);
    for group in groups {
        for (index, cell) in group.cells.iter().enumerate() {
            row(&mut table, report, group, cell, index == 0);
        }
    }
    table.finish()
}

/// Empty where there is none: a column without any value is left out.
fn where_any(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.digits$}"))
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
    table.row(
        class,
        [
            format!("{}{}", subject.look.key(), escape(&subject.name)),
            escape(&subject.version),
            if group.users_vary { group.users.to_string() } else { String::new() },
            load,
            number(cell.per_second, 0),
            number(cell.mean_us, 0),
            number(cell.sd_us, 0),
            number(cell.p50_us, 0),
            number(cell.p95_us, 0),
            number(cell.p99_us, 0),
            number(cell.error_ratio.map(|ratio| ratio * 100.0), 2),
            number(cell.cpu_us, 1),
            number(cell.utilisation, 2),
            number(cell.origin_cpu_us, 1),
            number(cell.load_cpu_us, 1),
            number(cell.switches_per_request, 2),
            number(cell.rss_kib.map(|kib| kib / 1024.0), 1),
            number(cell.rss_end_kib.map(|kib| kib / 1024.0), 1),
            where_any(cell.gc_throughput_percent, 2),
            where_any(cell.after_full_gc_kib.map(|kib| kib / 1024.0), 1),
            cell.limit.as_deref().map_or_else(|| "-".into(), escape),
            format!("{}/{}", cell.valid_runs, cell.runs),
        ],
    );
}
