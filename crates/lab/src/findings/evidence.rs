//! Whether there is evidence for the question: any measurements at all, and the basis of a condition on the result.

use crate::stats::verdict::{Ratio, Verdict};

/// The outcome of `--fail-on regression`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regressions {
    /// The comparisons shown to be worse, a line each.
    pub shown: Vec<String>,
    /// Why the rest is undecided; empty if the condition clearly holds or fails.
    pub undecided: Vec<String>,
}

/// One comparison of a condition.
pub(crate) struct Asked<'a> {
    pub(crate) line: String,
    pub(crate) ratio: &'a Ratio,
    pub(crate) is_worse: bool,
}

impl Regressions {
    /// The joint evidence of comparisons.
    ///
    /// A comparison without enough valid runs decides nothing, and leaves the condition open. One whose interval is too
    /// wide for a verdict still shows no regression: that counts as long as another comparison is decided.
    pub(crate) fn of<'a>(asked: impl IntoIterator<Item = Asked<'a>>) -> Self {
        let asked: Vec<Asked<'_>> = asked.into_iter().collect();
        let lines = |is_such: &dyn Fn(&Asked<'_>) -> bool| -> Vec<String> {
            asked.iter().filter(|one| is_such(one)).map(|one| one.line.clone()).collect()
        };
        let shown = lines(&|one| one.is_worse);
        let mut undecided = lines(&|one| one.ratio.lacks_evidence && !one.is_worse);
        if asked.is_empty() {
            undecided.push("nothing is compared".into());
        } else if undecided.is_empty() && asked.iter().all(|one| one.ratio.verdict == Verdict::Undecided) {
            undecided = lines(&|one| !one.is_worse);
        }
        Self { shown, undecided }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::verdict::Note;
    use crate::stats::{Estimate, Interval};

    fn ratio(verdict: Verdict, blocks: usize) -> Ratio {
        let interval = (blocks >= 5).then_some(Interval { low: 0.9, high: 1.1, coverage: 0.95 });
        let estimate = Estimate { value: 1.0, interval, p_value: 0.5, blocks };
        let note = (blocks < 5).then(|| Note::NoEvidence("too few".into()));
        Ratio { verdict, ..Ratio::of(Some(estimate), blocks, note) }
    }

    #[test]
    fn an_open_question_is_no_answer() {
        use Verdict::{Different, Equivalent, Undecided};
        let found = |asked: &[(Verdict, usize, bool)]| {
            let ratios: Vec<Ratio> =
                asked.iter().map(|(verdict, blocks, _)| ratio(*verdict, *blocks)).collect();
            let asked = asked.iter().zip(&ratios).map(|((_, _, is_worse), ratio)| Asked {
                line: "line".into(),
                ratio,
                is_worse: *is_worse,
            });
            let Regressions { shown, undecided } = Regressions::of(asked);
            (shown.len(), undecided.len())
        };
        for (asked, expected) in [
            (&[(Different, 12, true), (Equivalent, 12, false)][..], (1, 0)),
            (&[(Different, 12, true), (Undecided, 3, false)], (1, 1)),
            (&[(Different, 12, false)], (0, 0)),
            (&[(Equivalent, 12, false), (Undecided, 12, false)], (0, 0)),
            (&[(Equivalent, 12, false), (Undecided, 1, false)], (0, 1)),
            (&[(Undecided, 12, false), (Undecided, 12, false)], (0, 2)),
            (&[], (0, 1)),
        ] {
            assert_eq!(found(asked), expected, "{asked:?}");
        }
        // A cell that broke is worse, whatever its ratio lacks.
        assert_eq!(found(&[(Undecided, 0, true)]), (1, 0));
    }
}
