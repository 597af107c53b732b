//! What to change: the findings of `weir advise`, their proofs, and how the rules fared so far.

use super::parts::heading;
use crate::markup::{Column, Table, escape};
use crate::model::{Accuracy, Advice, Proof, Report};
use crate::text::{NONE, percent_range};

const NOTE: &str = "The rules of <code>weir advise</code> on these runs. The prediction is the profile\'s split times what a \
                    change saves of each category; a proof is an experiment of its own with that change.";

pub(crate) fn render(report: &Report) -> String {
    let Some(advised) = &report.advised else { return String::new() };
    let findings = match advised.findings.is_empty() {
        true => "<p class=\"prose\">Nothing worth changing.</p>\n".to_owned(),
        false => format!("<div class=\"stack\">{}</div>\n", findings(&advised.findings)),
    };
    heading("What to change", NOTE) + &findings + &accuracy(&advised.accuracy)
}

fn findings(all: &[Advice]) -> String {
    let mut table = Table::new([
        (Column::Wide, "target"),
        (Column::Wide, "what was seen, and what to change"),
        (Column::Text, "predicted to save"),
        (Column::Wide, "proof"),
    ]);
    for one in all {
        table.row(
            "",
            [
                format!("{}<br><small>{}</small>", escape(&one.subject), escape(&one.rule)),
                format!("{}.<br><b>Change:</b> {}", escape(&one.saw), escape(&one.change)),
                one.predicted.map_or_else(
                    || NONE.to_owned(),
                    |predicted| {
                        format!("<span class=\"cap\">predicted to save: </span>{}", percent(predicted))
                    },
                ),
                one.proof.as_ref().map_or_else(|| NONE.to_owned(), proof),
            ],
        );
    }
    table.finish()
}

fn proof(proof: &Proof) -> String {
    let class = match proof.outcome.as_str() {
        "proved" => "equivalent",
        "contradicted" => "worse",
        _ => "undecided",
    };
    let saved = proof.saved.map_or_else(String::new, |saved| format!(", saves {}", percent(saved)));
    format!(
        "<span class=\"verdict {class}\">{}</span><br><small>CPU per request {} times as much{saved}</small>",
        escape(&proof.outcome),
        escape(&proof.ratio)
    )
}

fn percent(share: [f64; 2]) -> String {
    percent_range(share).replace(" %", "&nbsp;%")
}

fn accuracy(rules: &[Accuracy]) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        (Column::Key, "rule"),
        (Column::Number, "experiments"),
        (Column::Number, "proved"),
        (Column::Number, "predictions"),
        (Column::Number, "held"),
    ]);
    for Accuracy { rule, proofs, proved, predicted, held } in rules {
        let numbers = [proofs, proved, predicted, held].map(ToString::to_string);
        table.row("", [escape(rule)].into_iter().chain(numbers));
    }
    format!("<h3>How the rules fared on this machine so far</h3>\n{}", table.finish())
}
