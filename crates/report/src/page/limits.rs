//! The limit of each cell.

use super::parts::heading;
use crate::markup::{Column, Table, details, escape};
use crate::model::{Cell, Group, Report};
use crate::text::NONE;

/// Maximum rows of an open table.
const OPEN: usize = 16;

pub(crate) fn render(report: &Report) -> String {
    let limited = |group: &&Group| group.is_saturated && group.cells.iter().any(|cell| cell.limit.is_some());
    let groups: Vec<&Group> = report.groups.iter().filter(limited).collect();
    if groups.is_empty() {
        return String::new();
    }
    let subjects =
        report.subjects.iter().map(|one| (Column::Text, format!("{}{}", one.look.key(), escape(&one.name))));
    let mut table = Table::new([(Column::Key, String::new())].into_iter().chain(subjects));
    for group in &groups {
        let words = group.words();
        let name = if words.is_empty() { group.mode.clone() } else { format!("{}, {words}", group.mode) };
        let cells = (0..report.subjects.len()).map(|index| {
            group.cells.iter().find(|cell| cell.subject == index).map_or_else(|| NONE.to_owned(), limit)
        });
        table.row("", [escape(&name)].into_iter().chain(cells));
    }
    let note = "At saturation, in most valid runs: the part that saturated its cores, and the gateway's utilisation. A rate \
                limited by load, origin or a shared core supports no verdict on rate or latency.";
    let table = table.finish();
    let body =
        if groups.len() <= OPEN { table } else { details(false, &format!("{} rows", groups.len()), &table) };
    heading("The limit in each cell", note) + &body
}

fn limit(cell: &Cell) -> String {
    let Some(limit) = &cell.limit else { return "<span class=\"undecided\">no valid run</span>".into() };
    let class = match limit.as_str() {
        "gateway" => "equivalent",
        "neither" => "undecided",
        _ => "other",
    };
    let used =
        cell.utilisation.map_or_else(String::new, |share| format!(" <small>{:.0} %</small>", share * 100.0));
    format!("<span class=\"{class}\">{}</span>{used}", escape(limit))
}
