//! What is exported of cells and comparisons, and the rows of the table of values.

use crate::export::junit::Case;
use crate::export::{Table, number};
use crate::stats::verdict::Ratio;
use serde::Serialize;

/// The cells in each form.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    pub(super) rows: Vec<Vec<String>>,
    pub(super) tables: Vec<Table>,
    pub(super) cases: Vec<Case>,
    /// Those without a valid run, and why.
    pub(super) unmeasured: Vec<String>,
}

/// A comparison in each form.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub(super) row: Vec<String>,
    pub(super) metric: String,
    pub(super) place: String,
    pub(super) target: String,
    pub(super) baseline: String,
    pub(super) ratio: Ratio,
    pub(super) words: String,
    pub(super) is_worse: bool,
    /// Whether it is one of two targets, and not of two levels of a factor or of the A/A pair.
    pub(super) is_with_baseline: bool,
}

/// In the form of one value on each row: a cell has a row for each metric, a claim one for the whole (`claim`) and one
/// for each cell that it is about (`claim-cell`). What a kind of result does not have is empty.
pub(super) const COLUMNS: &str = "kind,name,case,target,version,mode,connections,bytes,load,factors,metric,unit,against,value,low,\
    high,coverage,blocks,p_value,p_adjusted,weight,verdict,note";

impl Compared {
    /// What is compared, and where.
    pub(super) fn title(&self) -> String {
        let Self { metric, place, target, baseline, .. } = self;
        format!("{metric}, {place}: {target} vs {baseline}")
    }

    /// The same with what it came to.
    pub(super) fn line(&self) -> String {
        format!("{}: {} {}", self.title(), self.ratio.text(), self.words)
    }
}

/// A row with such fields; the others are empty.
pub(super) fn row(fields: &[(&str, String)]) -> Vec<String> {
    let field = |column: &str| fields.iter().find(|(known, _)| *known == column);
    COLUMNS
        .split(',')
        .map(|column| field(column).map_or_else(String::new, |(_, text)| text.clone()))
        .collect()
}

/// What a row of a comparison says of its ratio.
pub(super) fn judged(ratio: &Ratio, blocks: u32, remark: Option<&String>) -> [(&'static str, String); 10] {
    [
        ("value", number(ratio.value)),
        ("low", number(ratio.low)),
        ("high", number(ratio.high)),
        ("coverage", number(ratio.coverage)),
        ("blocks", blocks.to_string()),
        ("p_value", number(ratio.p_value)),
        ("p_adjusted", number(ratio.p_adjusted)),
        ("weight", name(ratio.weight)),
        ("verdict", ratio.verdict.to_string()),
        ("note", number(ratio.note.as_ref().or(remark))),
    ]
}

/// The name that a metric or a weight has in JSON.
pub(super) fn name(of: impl Serialize) -> String {
    let value = serde_json::to_value(of).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
