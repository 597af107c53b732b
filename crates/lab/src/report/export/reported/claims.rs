//! The export of claims, which are alike in both kinds of results.

use super::row::row;
use crate::base::leaves::name;
use crate::findings::claims::{ClaimVerdict, Finding};
use crate::report::export::junit::{Case, Outcome};
use crate::report::export::{Table, number};
use crate::stats::Weight;

/// A row for each claim, and one for each of its cells.
pub(super) fn rows(claims: &[Finding]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for claim in claims {
        let metric = claim.metric.map_or_else(String::new, name);
        rows.push(row(&[
            ("kind", "claim".into()),
            ("name", claim.id.clone()),
            ("metric", metric.clone()),
            ("weight", name(claim.weight)),
            ("verdict", claim.verdict.to_string()),
            ("note", claim.why.clone()),
        ]));
        rows.extend(claim.cells.iter().map(|one| {
            row(&[
                ("kind", "claim-cell".into()),
                ("name", claim.id.clone()),
                ("target", one.cell.clone()),
                ("metric", metric.clone()),
                ("against", number(one.against.as_ref())),
                ("value", number(one.value)),
                ("low", number(one.low)),
                ("high", number(one.high)),
                ("blocks", one.blocks.to_string()),
                ("weight", name(Weight::of(one.blocks as usize))),
                ("verdict", one.verdict.to_string()),
                ("note", number(one.note.as_ref().or(one.remark.as_ref()))),
            ])
        }));
    }
    rows
}

pub(super) fn table(claims: &[Finding]) -> Table {
    let row = |claim: &Finding| {
        vec![
            claim.id.clone(),
            claim.source.clone(),
            claim.says.clone(),
            claim.verdict_text(),
            claim.why.clone(),
        ]
    };
    Table {
        title: "Claims".into(),
        columns: vec!["claim", "source", "says", "verdict", "why"],
        rows: claims.iter().map(row).collect(),
    }
}

pub(super) fn case(claim: &Finding) -> Case {
    let why = format!("{}: {}", claim.verdict_text(), claim.why);
    let outcome = match claim.verdict {
        ClaimVerdict::Confirmed => Outcome::Passed,
        ClaimVerdict::Contradicted => Outcome::Failed(why),
        ClaimVerdict::Undecided | ClaimVerdict::NotTestable => Outcome::Skipped(why),
    };
    Case { class: "claim", name: claim.id.clone(), outcome, says: claim.says.clone() }
}
