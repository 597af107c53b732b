//! The statements that the experiment set out to check, and what became of each.

use super::heading;
use crate::report::markup::{Column, NONE, Table, escape};
use crate::report::model::{Claim, Report, Standing};

/// Lines of evidence that are shown for a claim.
const FOUND: usize = 8;

pub(crate) fn render(report: &Report) -> String {
    if report.claims.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        (Column::Text, "verdict here"),
        (Column::Wide, "statement"),
        (Column::Wide, "its figures"),
        (Column::Wide, "found here"),
    ]);
    for claim in &report.claims {
        let class = match claim.standing {
            Standing::Confirmed => "equivalent",
            Standing::Contradicted => "worse",
            Standing::Open => "undecided",
        };
        let figures = if claim.figures.is_empty() { NONE.into() } else { escape(&claim.figures) };
        table.row(
            "",
            [
                format!("<span class=\"verdict {class}\">{}</span>", escape(&claim.verdict)),
                format!(
                    "{}<br><small>{}, {}</small>",
                    escape(&claim.says),
                    escape(&claim.source),
                    escape(&claim.id)
                ),
                figures,
                found(claim),
            ],
        );
    }
    let note = "Statements of others, each a predicate on named cells that was fixed before the run. <i>Undecided</i>: valid \
                runs here neither confirm nor contradict it, or there are none.";
    heading("Claims", note) + &table.finish()
}

fn found(claim: &Claim) -> String {
    let mut lines: Vec<String> = claim.found.iter().take(FOUND).map(|line| escape(line)).collect();
    if claim.found.len() > FOUND {
        lines.push(format!("and {} more: summary.json", claim.found.len() - FOUND));
    }
    if lines.is_empty() { NONE.into() } else { lines.join("<br>") }
}
