//! Whether the system was in a steady state during the window.

use crate::result::Second;

/// Tolerated change between the window's first and last third, and along the line fitted through its seconds.
/// Noisy neighbours move single seconds by more; a drift shows in both figures.
const DRIFT: f64 = 0.10;

/// Minimum whole seconds for a judgement.
const LEAST_SECONDS: usize = 6;

/// A warning about a drifting rate (closed loop only; an open loop sets it) or median response time.
pub(crate) fn warning(seconds: &[Second], window_s: f64, closed: bool) -> Option<String> {
    let whole: Vec<&Second> = seconds.iter().filter(|second| second.at_s + 1.0 <= window_s + 0.001).collect();
    if whole.len() < LEAST_SECONDS {
        return None;
    }
    let rates: Vec<f64> = whole.iter().map(|second| second.requests as f64).collect();
    let medians: Vec<f64> = whole.iter().filter_map(|second| second.p50_us).collect();
    let drifted = |what: &str, drift: f64| {
        let by =
            if drift.is_finite() { format!("by {:+.0} %", drift * 100.0) } else { "from nothing".into() };
        format!(
            "not stationary: {what} changed {by} from the first to the last third of the window: \
             warm up longer, or measure longer"
        )
    };
    if closed && let Some(drift) = drift(&rates) {
        return Some(drifted("the rate", drift));
    }
    if medians.len() == whole.len()
        && let Some(drift) = drift(&medians)
    {
        return Some(drifted("the median response time", drift));
    }
    None
}

/// The relative change from the first third to the last, if the overall trend agrees.
fn drift(values: &[f64]) -> Option<f64> {
    let third = values.len() / 3;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, last) = (mean(&values[..third]), mean(&values[values.len() - third..]));
    let change = last / first - 1.0;
    let along = slope(values) * values.len() as f64 / mean(values);
    let agrees = change.abs() > DRIFT && along.abs() > DRIFT && change.signum() == along.signum();
    agrees.then_some(change)
}

/// Theil-Sen estimator: the median slope of all pairs, robust against outliers.
fn slope(values: &[f64]) -> f64 {
    // A few hundred values suffice for a long run, and limit the number of pairs.
    let stride = values.len().div_ceil(300);
    let points: Vec<(f64, f64)> =
        values.iter().enumerate().step_by(stride).map(|(at, value)| (at as f64, *value)).collect();
    let mut slopes = Vec::new();
    for (index, (x, y)) in points.iter().enumerate() {
        slopes.extend(points[index + 1..].iter().map(|(x2, y2)| (y2 - y) / (x2 - x)));
    }
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(rates: &[u64], closed: bool) -> Option<String> {
        let second = |(at, rate): (usize, &u64)| Second {
            at_s: at as f64,
            requests: *rate,
            p50_us: Some(100.0),
            ..Second::default()
        };
        let seconds: Vec<Second> = rates.iter().enumerate().map(second).collect();
        warning(&seconds, rates.len() as f64, closed)
    }

    #[test]
    fn a_drift_is_reported_and_noise_is_not() {
        let rising: Vec<u64> = (0..12).map(|second| 1000 + 30 * second).collect();
        let text = warned(&rising, true).unwrap();
        assert!(text.contains("the rate changed by +23 %"), "{text}");
        assert_eq!(warned(&rising, false), None, "an open loop sets its rate");
        let noisy = [1000, 1090, 930, 1010, 1050, 940, 1080, 960, 1020, 990, 1060, 970];
        assert_eq!(warned(&noisy, true), None);
        let one_odd = [1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 200];
        assert_eq!(warned(&one_odd, true), None, "one second is no drift");
        assert_eq!(warned(&[1000, 2000, 3000], true), None, "three seconds are too few");
    }

    #[test]
    fn a_drifting_response_time_is_reported_in_an_open_loop() {
        let second = |at: u64| Second {
            at_s: at as f64,
            requests: 100,
            p50_us: Some(100.0 + 20.0 * at as f64),
            ..Second::default()
        };
        let seconds: Vec<Second> = (0..9).map(second).collect();
        assert!(warning(&seconds, 9.0, false).unwrap().contains("median response time"));
    }
}
