//! Claims on shares of CPU time, which profiles decide.

use super::{ClaimVerdict, Evidence, Finding, finding};
use crate::experiment::{Claim, Predicate};
use crate::planning::plan::Plan;
use crate::store::profiles::CellProfile;
use weir_profile::Profile;
use weir_stats::proportion;

/// Checks the claims on shares.
pub(crate) fn check(findings: &mut [Finding], plan: &Plan, profiles: &[CellProfile]) {
    let claims = plan.experiment.claims.iter().zip(findings);
    for (claim, found) in claims.filter(|(claim, _)| !claim.share_of.is_empty()) {
        let meant = profiles.iter().filter(|one| !one.cell.is_again() && one.cell.has(&claim.cell));
        *found = finding(claim, meant.filter_map(|one| evidence(claim, one)).collect());
    }
}

fn evidence(claim: &Claim, one: &CellProfile) -> Option<Evidence> {
    let ((_, profile), expect) = (one.sampled.as_ref()?, claim.expect?);
    let (share, (low, high)) = share(claim, profile);
    Some(Evidence {
        cell: one.cell.to_string(),
        against: None,
        value: Some(share),
        low: Some(low),
        high: Some(high),
        blocks: 1,
        verdict: verdict(expect, low, high),
        note: None,
        remark: None,
    })
}

/// The share of a claim's categories and its interval, in percent.
fn share(claim: &Claim, profile: &Profile) -> (f64, (f64, f64)) {
    let own = claim.share_of.iter().map(|category| profile.own(*category).samples);
    let samples: u64 = own.sum();
    let (low, high) = proportion::wilson(samples, profile.samples);
    (100.0 * samples as f64 / profile.samples as f64, (100.0 * low, 100.0 * high))
}

fn verdict(expect: Predicate, low: f64, high: f64) -> ClaimVerdict {
    match expect.of_interval(low, high) {
        Some(true) => ClaimVerdict::Confirmed,
        Some(false) => ClaimVerdict::Contradicted,
        None => ClaimVerdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_profile::{Category, Rules, Stacks};

    #[test]
    fn the_samples_of_several_categories_are_one_share() {
        let stacks = Stacks::from_folded("main;x25519_scalar_mult 60\nmain;BN_add 20\nmain;memcpy 20\n");
        let profile = Profile::new(&stacks.expect("parses"), &Rules::built_in());
        let mut claim: Claim = toml::from_str(
            "id = 'a'\nsource = 'S4'\nsays = 'b'\nexpect = '> 70'\nshare_of = ['key-exchange']",
        )
        .expect("parses");
        assert_eq!(share(&claim, &profile).0, 60.0);
        claim.share_of.push(Category::ExchangeOrSignature);
        let (value, (low, high)) = share(&claim, &profile);
        assert_eq!(value, 80.0);
        assert!(70.0 < low && high < 90.0, "{low} {high}");
        assert_eq!(verdict(claim.expect.expect("is given"), low, high), ClaimVerdict::Confirmed);
    }
}
