//! Whether a run may stand beside others.

use crate::result::{LoadResult, Pacer};

/// `valid`, or `invalid: ` and the reasons.
pub(crate) fn of(result: &LoadResult, lost: &[String], resume: bool) -> String {
    let mut reasons = Vec::new();
    if !result.errors.is_empty() {
        let errors: Vec<String> =
            result.errors.iter().map(|(class, count)| format!("{count} {class}")).collect();
        reasons.push(format!("errors ({})", errors.join(", ")));
    }
    if result.requests == 0 {
        reasons.push("no request was answered rightly within the window".to_string());
    }
    if let Some(pacer) = &result.pacer {
        let allowed = Pacer::lag_bound_us(result.response.p50_us);
        if pacer.achieved_ratio < Pacer::LEAST_ACHIEVED {
            let percent = pacer.achieved_ratio * 100.0;
            reasons.push(format!(
                "pacer (sent {percent:.1} % of the planned arrivals; {} unsent)",
                result.unsent.count
            ));
        }
        if pacer.lag_p99_us > allowed {
            reasons.push(format!("pacer (lag p99 {:.0} us, allowed {allowed:.0} us)", pacer.lag_p99_us));
        }
    }
    if result.handshakes.hello_retry > 0 {
        reasons.push(format!("negotiation ({} HelloRetryRequests)", result.handshakes.hello_retry));
    }
    let resumed: u64 = result.handshakes.resumed.values().sum();
    if resumed > 0 && !resume {
        reasons.push(format!("negotiation ({resumed} resumptions that were not offered)"));
    }
    reasons.extend(lost.iter().cloned());
    if reasons.is_empty() { "valid".to_string() } else { format!("invalid: {}", reasons.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::sample;

    #[test]
    fn each_reason_is_named() {
        assert_eq!(of(&sample(), &[], false), "valid");
        let with = |change: fn(&mut LoadResult)| {
            let mut result = sample();
            change(&mut result);
            of(&result, &[], false)
        };
        assert_eq!(
            with(|r| r.errors = [("reset".to_string(), 2), ("status".to_string(), 1)].into()),
            "invalid: errors (2 reset, 1 status)"
        );
        assert!(with(|r| r.requests = 0).contains("no request"));
        assert!(with(|r| r.handshakes.hello_retry = 3).contains("3 HelloRetryRequests"));
        assert!(
            with(|r| r.handshakes.resumed = [("resume-1.3-psk".to_string(), 4)].into())
                .contains("4 resumptions")
        );
        assert!(of(&sample(), &["process 7 ended".into()], false).contains("process 7"));
    }

    #[test]
    fn an_open_loop_must_keep_its_schedule() {
        let with = |achieved_ratio, lag_p99_us, p50_us| {
            let mut result = sample();
            result.response.p50_us = Some(p50_us);
            let pacer = Pacer { planned: 1000, sent: 990, achieved_ratio, lag_p99_us, lag_max_us: 5000.0 };
            result.pacer = Some(pacer);
            of(&result, &[], false)
        };
        assert_eq!(with(0.99, 1000.0, 100.0), "valid");
        assert!(with(0.9899, 0.0, 100.0).starts_with("invalid: pacer (sent 99.0 %"));
        assert!(with(1.0, 1001.0, 100.0).starts_with("invalid: pacer (lag p99 1001 us, allowed 1000 us)"));
        assert_eq!(with(1.0, 1001.0, 30_000.0), "valid", "5 % of the median");
    }
}
