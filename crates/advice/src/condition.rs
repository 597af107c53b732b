//! Conditions on facts: `tls.tickets > 2`, `tls.group in p384 p521`, `tls.version = 1.3`, `probe.retry unknown`,
//! `upstream.resumed_share < 0.5 or unknown`.

use crate::fact::{Facts, Value};
use serde::Deserialize;

/// A condition on one fact.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Condition {
    /// The fact.
    pub(crate) fact: String,
    test: Test,
    /// Whether the condition also holds if the fact is unknown.
    or_unknown: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Less(f64),
    AtMost(f64),
    More(f64),
    AtLeast(f64),
    In(Vec<String>),
    NotIn(Vec<String>),
    Unknown,
}

impl Condition {
    /// Whether the condition holds. If its fact is unknown, it holds only with `or unknown`.
    pub(crate) fn holds(&self, facts: &Facts) -> bool {
        let Some(fact) = facts.get(&self.fact) else { return self.or_unknown };
        let number = match fact.value {
            Value::Number(number) => number,
            Value::Text(_) => f64::NAN,
        };
        let text = fact.value.to_string();
        match &self.test {
            Test::Less(bound) => number < *bound,
            Test::AtMost(bound) => number <= *bound,
            Test::More(bound) => number > *bound,
            Test::AtLeast(bound) => number >= *bound,
            Test::In(names) => names.contains(&text),
            Test::NotIn(names) => !names.contains(&text),
            Test::Unknown => false,
        }
    }

    /// Values at and around the limits of the condition; `None` is an unknown fact.
    #[cfg(test)]
    pub(crate) fn around(&self) -> Vec<Option<Value>> {
        const STEP: f64 = 1e-3;
        let known: Vec<Value> = match &self.test {
            Test::Less(bound) | Test::AtMost(bound) | Test::More(bound) | Test::AtLeast(bound) => {
                [bound - STEP, *bound, bound + STEP].map(Value::from).into()
            }
            Test::In(names) => {
                let numbers = names.iter().filter_map(|name| name.parse::<f64>().ok()).map(Value::from);
                numbers.chain(names.iter().map(|name| Value::from(name.as_str()))).collect()
            }
            Test::NotIn(_) => vec![Value::from(1.0), Value::from(2.0), Value::from("another")],
            Test::Unknown => Vec::new(),
        };
        known.into_iter().map(Some).chain([None]).collect()
    }
}

impl TryFrom<String> for Condition {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (of_known, or_unknown) = match text.strip_suffix(" or unknown") {
            Some(of_known) => (of_known, true),
            None => (text.as_str(), false),
        };
        let mut words = of_known.split_whitespace();
        let (fact, operator) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let rest: Vec<String> = words.map(str::to_owned).collect();
        let number = || match rest.as_slice() {
            [number] => number.parse().map_err(|_| format!("`{text}`: invalid number `{number}`")),
            _ => Err(format!("`{text}`: expected one number after `{operator}`")),
        };
        let names = || match rest.is_empty() {
            false => Ok(rest.clone()),
            true => Err(format!("`{text}`: expected names after `{operator}`")),
        };
        let test = match operator {
            "<" => Test::Less(number()?),
            "<=" => Test::AtMost(number()?),
            ">" => Test::More(number()?),
            ">=" => Test::AtLeast(number()?),
            "=" | "in" => Test::In(names()?),
            "!=" => Test::NotIn(names()?),
            "unknown" if rest.is_empty() => Test::Unknown,
            _ => return Err(format!("`{text}`: expected FACT and one of <, <=, >, >=, =, !=, in, unknown")),
        };
        let or_unknown = or_unknown || test == Test::Unknown;
        Ok(Self { fact: fact.to_owned(), test, or_unknown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> bool {
        let mut facts = Facts::default();
        facts.add("tls.tickets", 4.0, "probe");
        facts.add("tls.group", "p384", "probe");
        facts.add("tls.retry", true, "probe");
        Condition::try_from(text.to_owned()).expect("parses").holds(&facts)
    }

    #[test]
    fn conditions_on_numbers_names_and_what_is_unknown() {
        for text in [
            "tls.tickets > 2",
            "tls.tickets >= 4",
            "tls.tickets = 4",
            "tls.group in p384 p521",
            "tls.retry = 1",
            "tls.group != x25519",
            "other unknown",
            "other > 0 or unknown",
            "tls.tickets > 2 or unknown",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in [
            "tls.tickets < 4",
            "tls.group = x25519",
            "other > 0",
            "other != x",
            "tls.group > 0",
            "tls.tickets unknown",
            "tls.tickets > 4 or unknown",
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn an_invalid_condition_says_what_is_expected() {
        let wrong = |text: &str| Condition::try_from(text.to_owned()).expect_err("is invalid");
        assert_eq!(wrong("a > b"), "`a > b`: invalid number `b`");
        assert_eq!(wrong("a >"), "`a >`: expected one number after `>`");
        assert_eq!(wrong("a in"), "`a in`: expected names after `in`");
        assert!(wrong("a ~ 1").contains("expected FACT and one of <"));
    }
}
