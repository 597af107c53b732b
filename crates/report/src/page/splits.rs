//! The cost of a request by category: stacked bars, the table behind them, and each target's flame graph.

use super::parts::heading;
use crate::chart::stack;
use crate::markup::{Column, Table, details, escape, framed};
use crate::model::{Part, Report, Split, SplitBar};
use crate::text::NONE;
use std::collections::BTreeMap;

const NOTE: &str = "CPU per unit, from the runs above, times each category's share of samples, from a separate run of each \
                    cell. A sample counts for the category of its innermost known function. Intervals are those of \
                    sampling, 95 %.";

/// The bars that fit into a table beside each other, with their intervals.
const MOST_COLUMNS: usize = 5;

/// The differences that are shown at once.
const OPEN: usize = 4;

pub(crate) fn render(report: &Report) -> String {
    let drawn: String = report.splits.iter().map(one).collect();
    match drawn.is_empty() {
        true => drawn,
        false => heading("Where the CPU goes", NOTE) + &drawn,
    }
}

fn one(split: &Split) -> String {
    let Split { title, unit, bars, differences } = split;
    let axis = format!("CPU microseconds per {unit}");
    let chart = stack::draw(&format!("{axis} by category, {title}"), &axis, bars).unwrap_or_default();
    let flames: String = bars.iter().map(flame).collect();
    let table = if bars.len() > MOST_COLUMNS { table_of_many(bars) } else { table(bars) };
    format!(
        "<h3>{}</h3>\n<div class=\"wide\">{chart}</div>\n{}{table}{flames}",
        escape(title),
        sentences(differences)
    )
}

fn sentences(differences: &[String]) -> String {
    let paragraphs = |some: &[String]| -> String {
        some.iter().map(|text| format!("<p class=\"prose\">{}</p>\n", escape(text))).collect()
    };
    let (first, more) = differences.split_at(differences.len().min(OPEN));
    match more.len() {
        0 => paragraphs(first),
        count => paragraphs(first) + &details(false, &format!("{count} more differences"), &paragraphs(more)),
    }
}

/// A row for each bar, without intervals, which would not fit.
fn table_of_many(bars: &[SplitBar]) -> String {
    let names: BTreeMap<usize, &Part> =
        bars.iter().flat_map(|bar| &bar.parts).map(|part| (part.place, part)).collect();
    let heads = names.values().map(|part| (Column::Number, escape(part.name)));
    let first = [(Column::Key, String::new()), (Column::Number, "all".to_owned())];
    let mut table =
        Table::new(first.into_iter().chain(heads).chain([(Column::Number, "samples".to_owned())]));
    for bar in bars {
        let own = |place: &usize| bar.parts.iter().find(|part| part.place == *place);
        let cells =
            names.keys().map(|place| own(place).map_or(NONE.to_owned(), |part| format!("{:.1}", part.value)));
        let first = [escape(&bar.name), format!("{:.1}", bar.total)];
        table.row("", first.into_iter().chain(cells).chain([bar.samples.to_string()]));
    }
    format!("<div class=\"wide\">{}</div>", table.finish())
}

/// A row for each category that any of these has.
fn table(bars: &[SplitBar]) -> String {
    let names: BTreeMap<usize, &Part> =
        bars.iter().flat_map(|bar| &bar.parts).map(|part| (part.place, part)).collect();
    let head = [(Column::Key, "category".to_owned())].into_iter();
    let mut table = Table::new(head.chain(bars.iter().map(|bar| (Column::Number, escape(&bar.name)))));
    for (place, named) in names {
        let cells = bars.iter().map(|bar| match bar.parts.iter().find(|part| part.place == place) {
            Some(Part { value, interval: (low, high), .. }) => format!("{value:.2} [{low:.2}, {high:.2}]"),
            None => NONE.to_owned(),
        });
        let key = format!(
            "<svg class=\"mark\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect width=\"12\" height=\"12\" \
                           class=\"{}\"/></svg>{}",
            stack::class(named),
            escape(named.name)
        );
        table.row("", [key].into_iter().chain(cells));
    }
    let sums = bars.iter().map(|bar| format!("{:.2}", bar.total));
    table.row("first", ["all".to_owned()].into_iter().chain(sums));
    table.finish()
}

fn flame(bar: &SplitBar) -> String {
    let notes: String =
        bar.notes.iter().map(|note| format!("<p class=\"note\">{}</p>\n", escape(note))).collect();
    let summary = format!("<b>{}</b> <small>flame graph, {} samples</small>", escape(&bar.name), bar.samples);
    let against = bar.against.iter().map(|(base, flame)| {
        let note = format!("<p class=\"note\">Against {}, by share of samples:</p>\n", escape(base));
        note + &framed(flame)
    });
    details(false, &summary, &(notes + &framed(&bar.flame) + &against.collect::<String>()))
}
