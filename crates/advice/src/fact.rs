//! Facts about a service.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The value of a fact.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number; 1 or 0 for true or false.
    Number(f64),
    /// A name.
    Text(String),
}

/// A value and its source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// The value.
    pub value: Value,
    /// The source: `probe`, `profile, 4711 samples`, `nginx.conf:12`.
    pub source: String,
}

/// Facts by name, such as `tls.group`. `docs/ADVICE.md` lists them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts(BTreeMap<String, Fact>);

impl Facts {
    /// Adds a fact, unless it has a value already: gather the most reliable source first.
    pub fn add(&mut self, name: &str, value: impl Into<Value>, source: &str) {
        let fact = Fact { value: value.into(), source: source.to_owned() };
        self.0.entry(name.to_owned()).or_insert(fact);
    }

    /// Adds a fact if its value is known.
    pub fn add_known(&mut self, name: &str, value: Option<impl Into<Value>>, source: &str) {
        if let Some(value) = value {
            self.add(name, value, source);
        }
    }

    /// A fact.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.0.get(name)
    }

    /// A fact's value, if it is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)?.value {
            Value::Number(number) => Some(number),
            Value::Text(_) => None,
        }
    }

    /// A fact's value, if it is a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match &self.get(name)?.value {
            Value::Number(_) => None,
            Value::Text(text) => Some(text),
        }
    }

    /// All facts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.0.iter().map(|(name, fact)| (name.as_str(), fact))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(is_true: bool) -> Self {
        Self::Number(f64::from(u8::from(is_true)))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Further digits are noise.
            Self::Number(number) => match number.abs() {
                _ if number.fract() == 0.0 => number.fmt(formatter),
                100.0.. => write!(formatter, "{number:.0}"),
                1.0.. => write!(formatter, "{number:.2}"),
                _ => write!(formatter, "{number:.4}"),
            },
            Self::Text(text) => formatter.pad(text),
        }
    }
}
