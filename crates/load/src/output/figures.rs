//! Human-readable figures: three digits and a unit.

use crate::result::Latency;

pub use weir_stats::{count, plural};

/// A time, in a suitable unit.
pub fn time(us: f64) -> String {
    scaled(us, &["us", "ms", "s"])
}

/// Bytes, in powers of 1000.
pub fn size(bytes: f64) -> String {
    if bytes < 999.5 { format!("{bytes:.0} B") } else { scaled(bytes / 1e3, &["kB", "MB", "GB", "TB"]) }
}

/// A rate per second; whole from 100.
pub fn rate(per_second: f64) -> String {
    match per_second {
        // A rate of 5 is printed as 5, not 5.00.
        whole if whole.fract() == 0.0 => format!("{}/s", count(whole as u64)),
        small if small < 99.95 => format!("{}/s", digits(small)),
        large => format!("{}/s", count(large.round() as u64)),
    }
}

/// A percentage that never rounds to 0 % or 100 % unless exact.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        whole if whole.fract() == 0.0 => format!("{whole:.0} %"),
        high if high > 99.0 && high < 100.0 => format!("{:.2} %", high.min(99.99)),
        low if low > 0.0 && low < 1.0 => format!("{:.3} %", low.max(0.001)),
        percent => format!("{} %", digits(percent)),
    }
}

/// A value of a distribution, or its lower bound.
pub fn bounded(latency: &Latency, us: f64) -> String {
    if is_lower_bound(latency, us) { at_least(us) } else { time(us) }
}

/// A lower bound, as narrow as a column of the table.
pub(crate) fn at_least(us: f64) -> String {
    format!(">={}", time(us))
}

/// Whether a percentile or the maximum is among the censored samples, and so only a
/// lower bound.
pub fn is_lower_bound(latency: &Latency, us: f64) -> bool {
    latency.censored > 0 && latency.censored_from_us.is_none_or(|from| us >= from)
}

/// In the first unit with at most three digits before the point; each is a thousand times the previous.
fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // What rounds up to 1000 becomes 1.00 of the next unit.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{} {}", digits(value), units[unit])
}

/// Three digits, no fraction from 100.
pub(crate) fn digits(value: f64) -> String {
    let places = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_three_digits_on_either_side_of_a_unit() {
        let times = [0.0, 0.05, 9.994, 9.996, 63.25, 99.96, 999.4, 999.6, 1234.5, 999_600.0, 2e6, 3.6e9];
        assert_eq!(
            times.map(time),
            [
                "0.00 us", "0.05 us", "9.99 us", "10.0 us", "63.2 us", "100 us", "999 us", "1.00 ms",
                "1.23 ms", "1.00 s", "2.00 s", "3600 s"
            ]
        );
        assert_eq!(
            [0.0, 543.0, 999.6, 57.5e6, 2e15].map(size),
            ["0 B", "543 B", "1.00 kB", "57.5 MB", "2000 TB"]
        );
    }

    #[test]
    fn rates_are_grouped() {
        let rates = [0.5, 5.0, 12.34, 99.97, 25_031.4];
        assert_eq!(rates.map(rate), ["0.50/s", "5/s", "12.3/s", "100/s", "25 031/s"]);
    }

    #[test]
    fn a_share_that_is_not_all_never_reads_as_all() {
        let shares = [0.0, 0.000_001, 0.0001, 0.3, 0.123_45, 0.9985, 0.999_999, 1.0];
        assert_eq!(
            shares.map(percent),
            ["0 %", "0.001 %", "0.010 %", "30 %", "12.3 %", "99.85 %", "99.99 %", "100 %"]
        );
    }

    #[test]
    fn what_stands_among_censored_samples_is_a_lower_bound() {
        let latency = Latency { censored: 3, censored_from_us: Some(2e6), ..Latency::default() };
        assert_eq!([1e6, 2e6, 3e6].map(|us| bounded(&latency, us)), ["1.00 s", ">=2.00 s", ">=3.00 s"]);
        assert_eq!(bounded(&Latency::default(), 3e6), "3.00 s");
    }
}
