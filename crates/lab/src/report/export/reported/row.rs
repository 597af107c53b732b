//! The exported parts of cells and comparisons, and the rows of the CSV.

use crate::base::leaves::name;
use crate::report::export::junit::Case;
use crate::report::export::{Table, number};
use crate::stats::verdict::Ratio;

/// The cells in each format.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    pub(super) rows: Vec<Vec<String>>,
    pub(super) tables: Vec<Table>,
    pub(super) cases: Vec<Case>,
    /// Cells without a valid run, with the reason.
    pub(super) unmeasured: Vec<String>,
}

/// A comparison in each format.
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
    /// Whether `--fail-on` judges it: a target against the baseline, or the two levels that were asked for; not the A/A
    /// pair, nor the levels that an experiment compares besides.
    pub(super) is_judged: bool,
}

/// One value per row: a cell has a row for each metric, a claim one for the whole (`claim`) and one for each of its
/// cells (`claim-cell`). A column that does not apply is empty.
pub(super) const COLUMNS: &str = "kind,name,case,target,version,mode,connections,bytes,load,factors,metric,unit,against,value,low,\
    high,coverage,blocks,p_value,p_adjusted,weight,verdict,note";

impl Compared {
    /// The metric, the place and the two sides.
    pub(super) fn title(&self) -> String {
        let Self { metric, place, target, baseline, .. } = self;
        format!("{metric}, {place}: {target} vs {baseline}")
    }

    /// The title, the ratio and the verdict.
    pub(super) fn line(&self) -> String {
        format!("{}: {} {}", self.title(), self.ratio.text(), self.words)
    }
}

/// A row with these fields; the others are empty.
pub(super) fn row(fields: &[(&str, String)]) -> Vec<String> {
    let field = |column: &str| fields.iter().find(|(known, _)| *known == column);
    COLUMNS
        .split(',')
        .map(|column| field(column).map_or_else(String::new, |(_, text)| text.clone()))
        .collect()
}

/// The fields of a comparison's ratio.
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
