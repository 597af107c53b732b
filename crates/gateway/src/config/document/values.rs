//! Parsers of durations, sizes and other values in text form. `value_schemas.rs` has their patterns for the JSON
//! Schema.

use serde::{Deserialize, Deserializer, de::Error};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// Parses an optional value in text form.
pub(super) fn text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(deserializer)?.parse().map(Some).map_err(D::Error::custom)
}

/// Parses a list of values in text form; a single value needs no brackets.
pub(super) fn texts<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let texts = OneOrMany::deserialize(deserializer)?.0;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

/// As [`texts`], for a key whose empty list differs from a missing key.
pub(super) fn some_texts<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    texts(deserializer).map(Some)
}

/// Parses a duration greater than 0, such as `250ms`, `10s`, `5min`, `12h` or `7d`.
pub(super) fn duration<'de, D, R>(deserializer: D) -> Result<R, D::Error>
where
    D: Deserializer<'de>,
    R: From<Duration>,
{
    let text = match toml::Value::deserialize(deserializer)? {
        toml::Value::String(text) => text,
        other => other.to_string(),
    };
    // A bare number is read as text, too, so that the error can suggest a unit.
    parse_duration(&text).map(R::from).ok_or_else(|| {
        let meant = with_unit(&text).map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
        D::Error::custom(format!(
            "invalid duration `{text}`: expected more than 0 with a unit, such as \"250ms\", \"10s\", \"5min\", \"12h\" or \"7d\"{meant}"
        ))
    })
}

/// The intended duration of a text without a unit, or with another word for the unit.
fn with_unit(text: &str) -> Option<String> {
    let (number, unit) = number_and_unit(text)?;
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "ms" | "msec" | "millis" | "milliseconds" => "ms",
        "m" | "min" | "mins" | "minute" | "minutes" => "min",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        _ => return None,
    };
    let meant = format!("{number}{unit}");
    parse_duration(&meant).map(|_| meant)
}

/// Parses a size: a number of bytes, or a text such as `16KiB`, `1MiB` or `2GiB`.
pub(super) fn size<'de, D, R>(deserializer: D) -> Result<R, D::Error>
where
    D: Deserializer<'de>,
    R: From<u64>,
{
    let value = toml::Value::deserialize(deserializer)?;
    let bytes = match &value {
        toml::Value::Integer(bytes) => u64::try_from(*bytes).ok(),
        toml::Value::String(text) => parse_size(text),
        _ => None,
    };
    bytes.map(R::from).ok_or_else(|| {
        D::Error::custom(format!("invalid size {value}: expected bytes, such as 65536 or \"64KiB\""))
    })
}

/// One text, or a list of them.
struct OneOrMany(Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |found: &toml::Value| {
            D::Error::custom(format!("expected a quoted string or a list of them, found {found}"))
        };
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(Self(vec![text])),
            toml::Value::Array(items) => {
                let text = |item: &toml::Value| item.as_str().map(str::to_owned).ok_or_else(|| wrong(item));
                Ok(Self(items.iter().map(text).collect::<Result<_, _>>()?))
            }
            other => Err(wrong(&other)),
        }
    }
}

/// Units of durations in milliseconds, smallest first.
pub(super) const UNITS_OF_TIME: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Units of sizes in bytes, smallest first.
pub(super) const UNITS_OF_SIZE: [(&str, u64); 6] =
    [("B", 1), ("", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// Formats a duration of whole milliseconds as a user writes it: in the largest unit that leaves no fraction.
pub(crate) fn duration_text(duration: Duration) -> String {
    in_largest(duration.as_millis() as u64, &UNITS_OF_TIME)
}

/// Formats a size as a user writes it, in the largest unit that leaves no fraction. A number of bytes has no unit.
pub(crate) fn size_text(bytes: u64) -> String {
    in_largest(bytes, &UNITS_OF_SIZE)
}

fn in_largest(value: u64, units: &[(&str, u64)]) -> String {
    let fitting = units.iter().rev().find(|(_, unit)| value >= *unit && value.is_multiple_of(*unit));
    fitting.map_or_else(|| value.to_string(), |(name, unit)| format!("{}{name}", value / unit))
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let (_, milliseconds) = UNITS_OF_TIME.iter().find(|(known, _)| *known == unit)?;
    // At most a year, so that timers can represent the duration.
    let seconds = number * (*milliseconds as f64 / 1000.0);
    (seconds > 0.0 && seconds <= 365.0 * 86_400.0).then(|| Duration::from_secs_f64(seconds))
}

fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let (_, bytes) = UNITS_OF_SIZE.iter().find(|(known, _)| *known == unit)?;
    let size = number * *bytes as f64;
    (size <= u64::MAX as f64 / 2.0).then_some(size as u64)
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, ms) in [
            ("250ms", 250),
            ("10s", 10_000),
            ("0.5s", 500),
            ("5min", 300_000),
            ("12h", 43_200_000),
            ("1 d", 86_400_000),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "10", "s", "-1s", "0s", "1e3s", "10 seconds", "1.2.3s", "400d", "ms10", "1m"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn values_are_written_as_they_are_read() {
        for text in ["100ms", "75s", "2min", "84h", "1d"] {
            assert_eq!(duration_text(parse_duration(text).unwrap()), text);
        }
        assert_eq!(duration_text(Duration::from_secs(3600)), "1h");
        for text in ["0", "500", "64KiB", "16MiB", "1GiB", "1TiB"] {
            assert_eq!(size_text(parse_size(text).unwrap()), text);
        }
    }

    #[test]
    fn a_duration_in_other_words_is_understood() {
        for (text, meant) in [
            ("30", Some("30s")),
            ("0.5", Some("0.5s")),
            ("10 seconds", Some("10s")),
            ("5m", Some("5min")),
            ("30S", Some("30s")),
            ("100msec", Some("100ms")),
            ("1 hour", Some("1h")),
            ("0", None),
            ("-1", None),
            ("1m30s", None),
            ("10 parsecs", None),
            ("true", None),
        ] {
            assert_eq!(with_unit(text).as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn sizes_have_binary_units() {
        for (text, bytes) in
            [("0", 0), ("1500", 1500), ("64KiB", 65_536), ("1.5 MiB", 1_572_864), ("2GiB", 2 << 30)]
        {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in ["", "-1", "64K", "64kb", "KiB", "1e3", "99999999999TiB"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
