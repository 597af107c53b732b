//! The experiment's claims and their verdicts.

use super::parts::heading;
use crate::markup::{Column, Table, details, escape};
use crate::model::{Claim, Report, Standing};
use crate::text::NONE;

/// Maximum lines of evidence shown at once.
const AT_ONCE: usize = 2;

pub(crate) fn render(report: &Report) -> String {
    let unrun = match report.claims_unrun.as_str() {
        "" => String::new(),
        words => format!("<p class=\"note\">{}</p>\n", escape(words)),
    };
    match (report.claims.is_empty(), unrun.is_empty()) {
        (true, true) => return String::new(),
        (true, false) => return heading("Claims", "") + &unrun,
        _ => {}
    }
    let mut table = Table::new([
        (Column::Text, "verdict"),
        (Column::Wide, "statement, and how it is checked"),
        (Column::Wide, "its figures"),
        (Column::Wide, "result"),
    ]);
    for claim in &report.claims {
        let class = match claim.standing {
            Standing::Confirmed => "equivalent",
            Standing::Contradicted => "worse",
            Standing::Open => "undecided",
        };
        let figures = if claim.figures.is_empty() {
            NONE.into()
        } else {
            format!("<span class=\"cap\">its figures: </span>{}", escape(&claim.figures))
        };
        table.row(
            "",
            [
                format!("<span class=\"verdict {class}\">{}</span>", escape(&claim.verdict)),
                says(claim),
                figures,
                found(claim),
            ],
        );
    }
    let note = "Published statements, each a predicate on named cells, fixed before the run. <i>Undecided</i>: valid runs here \
                neither confirm nor contradict it, or there are none.";
    format!("{}<div class=\"stack\">{}</div>\n{unrun}", heading("Claims", note), table.finish())
}

fn says(claim: &Claim) -> String {
    let asked = if claim.asked.is_empty() { String::new() } else { format!(": {}", escape(&claim.asked)) };
    format!(
        "{}<br><small>{} {}{asked}</small>",
        escape(&claim.says),
        escape(&claim.source),
        escape(&claim.id)
    )
}

fn found(claim: &Claim) -> String {
    let lines: Vec<String> = claim.evidence.iter().map(|line| escape(line)).collect();
    let small = format!("<small>{}</small>", lines.join("<br>"));
    let why = format!("<span class=\"cap\">result: </span>{}", escape(&claim.why));
    match lines.len() {
        0 => why,
        1..=AT_ONCE => format!("{why}<br>{small}"),
        many => why + &details(false, &format!("<small>{many} cells</small>"), &small),
    }
}
