//! The response of a healthy server to a check with `path`: any with a status in `health.status`, whose default is in
//! `config/document/health.rs`. `grpc.rs` judges the responses to checks with `grpc`.

use super::Outcome;
use crate::config::document::Health;

impl Outcome {
    /// The outcome of a check whose final response has this status.
    pub(super) fn of_status(health: &Health, status: u16) -> Self {
        match health.status.iter().any(|statuses| statuses.range().contains(&status)) {
            true => Self::Passed,
            false => Self::Failed(format!("status {status}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_in_any_of_the_ranges_passes() {
        let status = ["200-299", "404"].map(|range| range.parse().unwrap()).to_vec();
        let health = Health { status, ..Health::default() };
        for (status, passes) in
            [(199, false), (200, true), (299, true), (300, false), (403, false), (404, true), (405, false)]
        {
            let outcome = Outcome::of_status(&health, status);
            assert_eq!(matches!(outcome, Outcome::Passed), passes, "{status}: {outcome:?}");
        }
    }
}
