//! The rules, as data.

use crate::condition::Condition;
use crate::gain::Saving;
use crate::product::Product;
use crate::template::Template;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The built-in rules.
const FILES: [(&str, &str); 6] = [
    ("connections.toml", include_str!("../rules/connections.toml")),
    ("handshakes.toml", include_str!("../rules/handshakes.toml")),
    ("certificates.toml", include_str!("../rules/certificates.toml")),
    ("data.toml", include_str!("../rules/data.toml")),
    ("process.toml", include_str!("../rules/process.toml")),
    ("configuration.toml", include_str!("../rules/configuration.toml")),
];

/// A set of rules.
#[derive(Clone, Debug)]
pub struct Rules(pub(crate) Vec<Rule>);

/// An invalid file of rules.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {detail}")]
pub struct RulesError {
    /// Its name.
    pub file: String,
    /// The fault.
    pub detail: String,
}

/// One rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// The name, also the anchor in docs/ADVICE.md.
    pub(crate) id: String,
    /// The conditions, all of which must hold.
    pub(crate) when: Vec<Condition>,
    /// The observation, with a number.
    pub(crate) saw: Template,
    /// Further facts that support it, if they are known.
    #[serde(default)]
    pub(crate) cites: Vec<String>,
    /// Why it matters, in a clause or two.
    pub(crate) why: String,
    /// The change, by product; `generic` for the others.
    pub(crate) change: BTreeMap<Product, String>,
    /// What the change moves to, and what it leaves, such as `OpenSSL 3.0` or `more workers`. A rule that may hold at
    /// the same time must not advise the opposite.
    #[serde(default)]
    pub(crate) towards: Vec<String>,
    #[serde(default)]
    pub(crate) away: Vec<String>,
    /// The saving, by the profile's categories.
    #[serde(default)]
    pub(crate) gain: Vec<Saving>,
    /// Another gain, such as a round trip.
    #[serde(default)]
    pub(crate) also: Option<Template>,
    /// What the change gives up.
    #[serde(default)]
    pub(crate) gives_up: Option<String>,
    /// The rank if the gain is unknown or not only CPU time: the share of CPU time that the change would typically be
    /// worth.
    pub(crate) typical: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    rule: Vec<Rule>,
}

impl Rules {
    /// The built-in rules.
    ///
    /// # Panics
    /// If a file is invalid; a test parses all of them.
    pub fn built_in() -> Self {
        Self::parse(FILES).expect("the built-in rules parse")
    }

    /// Parses files of rules, given by name and content.
    ///
    /// # Errors
    /// The first invalid file.
    pub fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, RulesError> {
        let mut rules = Vec::new();
        for (file, text) in files {
            let parsed: RulesFile = toml::from_str(text)
                .map_err(|error| RulesError { file: file.into(), detail: error.to_string() })?;
            rules.extend(parsed.rule);
        }
        Ok(Self(rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_rule_is_documented() {
        let Rules(rules) = Rules::built_in();
        let page = include_str!("../../../docs/ADVICE.md");
        for rule in &rules {
            assert!(page.contains(&format!("| `{}` |", rule.id)), "docs/ADVICE.md: {} is missing", rule.id);
        }
    }

    #[test]
    fn each_rule_has_a_name_a_number_and_words_for_any_product() {
        let Rules(rules) = Rules::built_in();
        let ids: BTreeSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!(ids.len(), rules.len(), "{ids:?}");
        for rule in &rules {
            assert!(rule.change.contains_key(&Product::Generic), "{}: no change for other products", rule.id);
            assert!(rule.saw.facts().next().is_some(), "{}: no number", rule.id);
            assert!(!rule.when.is_empty() && (0.0..=1.0).contains(&rule.typical), "{}", rule.id);
        }
    }
}
