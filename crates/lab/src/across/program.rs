//! Whether the programs of two results are the same, as far as the results show.

use super::matching::{Between, Matched, Pair};
use crate::report::shown::Shown;
use crate::store::machine::Machine;
use std::collections::BTreeSet;

/// The targets or engines known to have changed in the second result: by `named`, by version or by source. One without
/// a version counts as changed.
pub(super) fn changed<'a, I: Shown>(
    between: Between<'_, I>,
    matched: &Matched<'a, I>,
    named: &[String],
) -> BTreeSet<&'a str> {
    let is_other_lab = between.is_other_source(Machine::THIS_PROGRAM);
    let is_other = |pair: &&Pair<'a, I>| {
        let subject = pair.cell.subject.as_str();
        let [before, after] = between.results.map(|results| results.version(subject));
        let is_one_version = before == after && !before.is_empty();
        !is_one_version
            || named.iter().any(|name| name == subject)
            || between.is_other_source(subject)
            || I::is_other(pair.runs.each_ref().map(Vec::as_slice), is_other_lab)
    };
    let subjects = matched.both.iter().filter(|pair| !I::is_control(pair.cell));
    subjects.filter(is_other).map(|pair| pair.cell.subject.as_str()).collect()
}
