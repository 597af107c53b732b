//! Invalid flags, and the units of flag values.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

/// An invalid flag value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flag}: {problem}: expected {expected}")]
pub struct Usage {
    flag: Cow<'static, str>,
    problem: String,
    expected: String,
}

impl Usage {
    /// `flag` may include a position in a file.
    pub(crate) fn new(flag: impl Into<Cow<'static, str>>, value: &str, expected: &str) -> Self {
        let problem =
            if value.is_empty() { "missing value".into() } else { format!("invalid value `{value}`") };
        Self::problem(flag, problem, expected)
    }

    pub(crate) fn problem(flag: impl Into<Cow<'static, str>>, problem: String, expected: &str) -> Self {
        Self { flag: flag.into(), problem, expected: expected.to_string() }
    }
}

/// Parses a time such as `500ms`, `5s`, `1.5s`, `2m`, `1h`.
///
/// # Errors
/// When the number or the unit is missing.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a number and a unit (us, ms, s, m or h), such as 500ms or 2m".to_string();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

/// A parser of whole numbers; `expected` is for the message.
pub(crate) fn whole<N: FromStr>(expected: &'static str) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| text.parse().map_err(|_| format!("expected {expected}"))
}

/// Parses a percentage.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected 0 to 100 percent, such as 30 or 0.1".to_string())
}

/// Parses a size such as `1000`, `64KiB` or `1MB`; `None` if it is not one.
pub fn size(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_as_people_write_them() {
        for (text, ms) in [("500ms", 500), ("5s", 5000), ("1.5s", 1500), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "5", "s", "-1s", "5 s", "1d", "1e400s", "nans", "infs"] {
            assert!(time(text).unwrap_err().contains("500ms"), "{text}");
        }
        let sizes = [("0", 0), ("1000", 1000), ("64KiB", 65_536), ("1MB", 1_000_000), ("2GiB", 2 << 30)];
        for (text, bytes) in sizes {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "x", "1k", "MB", "-1", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
