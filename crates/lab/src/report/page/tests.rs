//! The report's contents for an experiment.

use crate::experiment::Experiment;
use crate::instrument::gateway::Seen;
use crate::store::run::Run;
use crate::tests::verdicts::{judged, shown};
use weir_load::result::Limit;
use weir_report::model::Comparison;

/// Regression test: the column "p, adjusted" showed the raw p of comparisons that are in no family.
#[test]
fn only_an_adjusted_p_is_shown_as_one() {
    let limit = |run: &mut Run<Seen>, _| {
        if run.run.cell.name == "fast" {
            run.seen.limit = Some(Limit::Load);
        }
    };
    let (plan, summary) = judged(|_| {}, limit);
    assert!(summary.comparisons.iter().all(|one| one.ratio.p_value.is_some()));
    let families = shown((plan, summary)).families;
    let all: Vec<&Comparison> = families.iter().flat_map(|family| &family.comparisons).collect();
    // Only the CPU at the equal rate is unaffected by the limited rate.
    let shown: Vec<&&Comparison> = all.iter().filter(|one| one.ratio.p_adjusted.is_some()).collect();
    assert_eq!((shown.len(), shown[0].is_aa, all.len()), (1, false, 8));
}

/// The equal rate may be any if the experiment sets it.
#[test]
fn a_rate_is_calibrated_unless_the_experiment_gives_it() {
    let given = |rate: Option<i64>| {
        let set = |experiment: &mut Experiment| {
            rate.into_iter().for_each(|rate| experiment.set_constant("rate", rate.into()));
        };
        let groups = shown(judged(set, |_, _| {})).groups;
        groups.iter().filter(|group| !group.is_saturated).all(|group| group.is_calibrated)
    };
    assert!(given(None) && !given(Some(20_000)));
}
