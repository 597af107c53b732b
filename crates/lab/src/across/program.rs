//! Whether the programs of two results are the same, as far as the results tell.

use super::matching::{Between, Matched, Pair};
use super::stored::Stored;
use std::collections::BTreeSet;

/// The targets or engines that are known to be others in the second result: by `named`, by their version, or by what they
/// were made from. One that tells no version is not known to be the same.
pub(super) fn changed<'a, S: Stored>(
    between: Between<'_, S>,
    matched: &Matched<'a, S>,
    named: &[String],
) -> BTreeSet<&'a str> {
    let is_other = |pair: &&Pair<'a, S>| {
        let subject = S::subject(pair.cell);
        let [before, after] = between.results.map(|results| results.version(subject));
        let is_one_version = before == after && !before.is_empty();
        !is_one_version
            || named.iter().any(|name| name == subject)
            || between.is_other_source(subject)
            || S::is_other(between, pair)
    };
    let subjects = matched.both.iter().filter(|pair| !S::is_control(pair.cell));
    subjects.filter(is_other).map(|pair| S::subject(pair.cell)).collect()
}

/// Which of the results do not tell what they were made of.
pub(super) fn untold<'a, S: Stored>(between: Between<'a, S>) -> Vec<&'a str> {
    let sides = between.names.into_iter().zip(between.results);
    let untold = sides.filter(|(_, results)| results.machine().sources.is_empty());
    untold.map(|(name, _)| name).collect()
}
