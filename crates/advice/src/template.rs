//! Sentences with facts: `{tls.tickets}`, `{upstream.connections_per_request:2}` with two decimals, `{share.tls:%}`.

use crate::fact::{Facts, Value};
use serde::Deserialize;

/// A sentence with placeholders.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Fact { name: String, form: Form },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Plain,
    Decimals(usize),
    Percent,
}

impl Template {
    /// The facts in the placeholders.
    pub(crate) fn facts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Fact { name, .. } => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The sentence; `None` if a fact is unknown.
    pub(crate) fn fill(&self, facts: &Facts) -> Option<String> {
        let word = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::Fact { name, form } => Some(match (&facts.get(name)?.value, form) {
                (Value::Number(number), Form::Decimals(digits)) => format!("{number:.digits$}"),
                (Value::Number(number), Form::Percent) => format!("{:.0} %", number * 100.0),
                (value, _) => value.to_string(),
            }),
        };
        self.0.iter().map(word).collect()
    }
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (inside, after) =
                after.split_once('}').ok_or_else(|| format!("`{text}`: `{{` without its `}}`"))?;
            let (name, form) = inside.split_once(':').unwrap_or((inside, ""));
            let form = match (form, form.parse()) {
                ("", _) => Form::Plain,
                ("%", _) => Form::Percent,
                (_, Ok(digits)) => Form::Decimals(digits),
                _ => {
                    return Err(format!(
                        "`{text}`: invalid format `{form}`: expected a number of decimals or %"
                    ));
                }
            };
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Fact { name: name.to_owned(), form });
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_put_in_and_an_unknown_one_leaves_no_sentence() {
        let mut facts = Facts::default();
        facts.add("a.count", 3.0, "probe");
        facts.add("a.share", 0.256, "probe");
        facts.add("a.name", "x", "probe");
        let fill = |text: &str| Template::try_from(text.to_owned()).expect("parses").fill(&facts);
        assert_eq!(
            fill("{a.count} of {a.name}, {a.share:%}, {a.share:2}").as_deref(),
            Some("3 of x, 26 %, 0.26")
        );
        assert_eq!(fill("{b}"), None);
        assert!(
            Template::try_from("{a".to_owned()).is_err() && Template::try_from("{a:x}".to_owned()).is_err()
        );
    }
}
