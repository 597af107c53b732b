//! The verdicts: a table with a row per group and a column per target, and all figures below.

use super::parts::{AT_ONCE, alike, folded};
use crate::markup::{Column, Table, details, escape};
use crate::model::{Comparison, Family, Outcome, Report};
use crate::text::{NONE, number};
use std::fmt::Write;
use weir_stats::verdict::Ratio;

/// The main metrics in full; the others are collapsed.
pub(crate) fn render(report: &Report) -> String {
    let mut html = String::new();
    for (index, family) in report.families.iter().enumerate() {
        let title = escape(&family.title);
        let body = format!("<p class=\"note\">{}</p>\n{}{}", note(family), overview(family), figures(family));
        match index {
            0 => {
                let _ = write!(html, "<h2>Verdicts: {title}</h2>\n{body}");
            }
            // The rate is the other main metric of a saturated experiment.
            _ => html.push_str(&details(
                !family.is_less_better,
                &format!("<b>{title}</b> <small>{}</small>", tally(family.comparisons.iter())),
                &body,
            )),
        }
    }
    if html.is_empty() {
        return "<h2>Verdicts</h2>\n<p class=\"note\">There is nothing to compare.</p>\n".into();
    }
    html
}

fn note(family: &Family) -> String {
    let better = if family.is_less_better { "Less is better." } else { "More is better." };
    let floor = match family.has_floor {
        true => "the interval excludes 1 and the ratio is beyond the noise floor",
        false => "the interval excludes 1; no A/A pair shows a noise floor",
    };
    format!(
        "{better} Ratio of the target to its baseline, with its interval. <i>Different</i> only if {floor}: {}.",
        tally(family.comparisons.iter())
    )
}

/// Counts of outcomes over the comparisons, except the A/A pair.
fn tally<'a>(comparisons: impl Iterator<Item = &'a Comparison> + Clone) -> String {
    let count =
        |outcome: Outcome| comparisons.clone().filter(|one| !one.is_aa && one.outcome == outcome).count();
    format!(
        "{} better, {} worse, {} equivalent, {} undecided",
        count(Outcome::Better),
        count(Outcome::Worse),
        count(Outcome::Equivalent),
        count(Outcome::Undecided)
    )
}

/// All verdicts at a glance; by mode if there are many.
fn overview(family: &Family) -> String {
    let all: Vec<&Comparison> = family.comparisons.iter().collect();
    if alike(&all, |one| &one.group).len() <= AT_ONCE {
        return matrix(&all, "");
    }
    let mut html = String::new();
    for (index, (mode, of_mode)) in alike(all, |one| &one.mode).into_iter().enumerate() {
        let summary = format!("<b>{}</b> <small>{}</small>", escape(mode), tally(of_mode.iter().copied()));
        html.push_str(&details(index == 0, &summary, &matrix(&of_mode, &format!("{mode}, "))));
    }
    format!("<div class=\"unfolded\">\n{html}</div>\n")
}

/// A row per group, whose name is shown without `prefix`, and a column per target.
fn matrix<'a>(comparisons: &[&'a Comparison], prefix: &str) -> String {
    let key = |one: &&'a Comparison| (one.is_aa, &one.target, &one.baseline, one.look);
    let mut columns = alike(comparisons.iter().copied(), key);
    columns.sort_by_key(|((is_aa, ..), _)| *is_aa);
    let title = |of_column: &[&Comparison]| {
        let Comparison { is_aa, target, baseline, look, .. } = of_column[0];
        let aa = if *is_aa { "A/A: " } else { "" };
        format!("{}{}<br><small>{aa}against {}</small>", look.key(), escape(target), escape(baseline))
    };
    let titles = columns.iter().map(|(_, of_column)| (Column::Text, title(of_column)));
    let mut table = Table::new([(Column::Key, String::new())].into_iter().chain(titles));
    for (group, _) in alike(comparisons, |one| &one.group) {
        let cells = columns.iter().map(|(_, of_column)| {
            // A narrow page has a line per target instead of a column.
            let line = |one: &&Comparison| {
                format!("<span class=\"cap\">{}</span><div>{}</div>", title(of_column), brief(one))
            };
            of_column.iter().find(|one| one.group == *group).map_or_else(|| NONE.to_owned(), line)
        });
        table.row("", [escape(group.strip_prefix(prefix).unwrap_or(group))].into_iter().chain(cells));
    }
    format!("<div class=\"matrix\">{}</div>\n", table.finish())
}

/// A verdict in a narrow cell: the word or the size of the difference, with the ratio below.
fn brief(one: &Comparison) -> String {
    let words = match (one.outcome, one.ratio.value) {
        (Outcome::Better | Outcome::Worse, Some(ratio)) => {
            format!("{} {}", if ratio < 1.0 { '\u{25bc}' } else { '\u{25b2}' }, one.difference)
        }
        (Outcome::Equivalent, _) => "= equivalent".into(),
        _ => "undecided".into(),
    };
    let figures = one.ratio.value.map_or_else(String::new, |_| one.ratio.text());
    let class = class(one.outcome);
    let indication = if one.ratio.is_indication() { "<br>(indication)" } else { "" };
    format!("<span class=\"verdict {class}\">{words}</span><br><small>{figures}{indication}</small>")
}

/// All figures of all comparisons, collapsed; by mode if there are many.
fn figures(family: &Family) -> String {
    let all: Vec<&Comparison> = family.comparisons.iter().collect();
    if all.len() <= 2 * AT_ONCE {
        return details(false, "All figures, and why comparisons are undecided", &table(&all));
    }
    let mut html = String::new();
    for (mode, of_mode) in alike(all, |one| &one.mode) {
        let summary = folded(mode, "all figures", of_mode.len(), "comparisons");
        html.push_str(&details(false, &summary, &table(&of_mode)));
    }
    html
}

fn table(comparisons: &[&Comparison]) -> String {
    let mut table = Table::new([
        (Column::Key, "target"),
        (Column::Text, "against"),
        (Column::Wide, "cell"),
        (Column::Number, "ratio"),
        (Column::Number, "interval"),
        (Column::Number, "coverage"),
        (Column::Number, "p, adjusted"),
        (Column::Number, "blocks"),
        (Column::Wide, "verdict"),
    ]);
    for one in comparisons {
        let Ratio { value, coverage, p_adjusted, .. } = one.ratio;
        let interval = one.ratio.interval();
        let interval = interval.map_or_else(|| NONE.into(), |(low, high)| format!("{low:.3} to {high:.3}"));
        let coverage = coverage.map_or_else(|| NONE.into(), |part| format!("{:.1} %", part * 100.0));
        table.row(
            "",
            [
                format!("{}{}", one.look.key(), escape(&one.target)),
                format!("{}{}", escape(&one.baseline), if one.is_aa { " (A/A)" } else { "" }),
                escape(&one.group),
                number(value, 3),
                interval,
                coverage,
                number(p_adjusted, 4),
                one.blocks.to_string(),
                format!("<span class=\"verdict {}\">{}</span>", class(one.outcome), escape(&one.words)),
            ],
        );
    }
    table.finish()
}

fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::Equivalent => "equivalent",
        Outcome::Undecided => "undecided",
    }
}
