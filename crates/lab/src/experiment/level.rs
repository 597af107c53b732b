//! A level: one value of a factor, identified by its text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use weir_tls::Group;

/// One value of a factor, identified by its text: `30`, `x25519`, `0,1`. All spellings of a group have one text.
///
/// Numbers are ordered by value, and are numbers in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Level(String);

impl Level {
    /// The level of a text.
    pub fn new(text: impl fmt::Display) -> Self {
        Self::named(text.to_string())
    }

    /// The level of a value in an experiment file; a list becomes its items, separated by commas.
    pub fn of(value: &toml::Value) -> Self {
        match value {
            toml::Value::String(text) => Self::named(text.clone()),
            toml::Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| Self::of(item).0).collect();
                Self(items.join(","))
            }
            other => Self(other.to_string()),
        }
    }

    fn named(text: String) -> Self {
        match Group::spelling(&text) {
            same if same == text => Self(text),
            other => Self(other.to_owned()),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The level as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        self.0.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The level as part of a file name.
    pub(crate) fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.,%".contains(c) { c } else { '_' };
        self.0.chars().map(plain).collect()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_text = || self.0.cmp(&other.0);
        match (self.number(), other.number()) {
            (Some(left), Some(right)) => left.total_cmp(&right).then_with(by_text),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => by_text(),
        }
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0.parse::<i64>(), self.0.parse::<bool>()) {
            // Not `007` or `+7`, which would not survive a round trip.
            (Ok(number), _) if number.to_string() == self.0 => serializer.serialize_i64(number),
            (_, Ok(flag)) => serializer.serialize_bool(flag),
            _ => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        toml::Value::deserialize(deserializer).map(|value| Self::of(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(text: &str) -> Level {
        let table: toml::Table = toml::from_str(&format!("value = {text}")).expect("is TOML");
        Level::of(&table["value"])
    }

    #[test]
    fn values_of_each_kind_survive_a_round_trip() {
        for (text, name, json) in [
            ("30", "30", "30"),
            ("0.5", "0.5", "\"0.5\""),
            ("true", "true", "true"),
            ("'x25519'", "x25519", "\"x25519\""),
            ("'p-256'", "p256", "\"p256\""),
            ("['P-384', 'x25519']", "p384,x25519", "\"p384,x25519\""),
            ("'007'", "007", "\"007\""),
            ("[0, 1]", "0,1", "\"0,1\""),
            ("['a: b', 'c']", "a: b,c", "\"a: b,c\""),
        ] {
            let level = level(text);
            assert_eq!(level.as_str(), name);
            let stored = serde_json::to_string(&level).expect("is written");
            assert_eq!(stored, json);
            assert_eq!(serde_json::from_str::<Level>(&stored).expect("is read"), level);
        }
    }

    #[test]
    fn numbers_are_ordered_by_value_and_come_first() {
        let mut levels = ["100", "b", "20", "0.5", "a"].map(Level::new);
        levels.sort();
        assert_eq!(levels.map(|level| level.0), ["0.5", "20", "100", "a", "b"]);
    }
}
