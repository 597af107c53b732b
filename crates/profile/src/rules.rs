//! Rules: patterns of symbols and modules, and the category of a frame that matches.

use crate::category::Category;
use crate::stacks::{Frame, Stacks};
use crate::symbol::unprefixed;
use serde::Deserialize;
use wildmatch::WildMatch;

/// The built-in rules, first match wins: libraries before runtimes, specific names before general ones.
const FILES: [(&str, &str); 15] = [
    ("kernel.toml", include_str!("../categories/kernel.toml")),
    ("memory.toml", include_str!("../categories/memory.toml")),
    ("python.toml", include_str!("../categories/python.toml")),
    ("rustls.toml", include_str!("../categories/rustls.toml")),
    ("primitives.toml", include_str!("../categories/primitives.toml")),
    ("go.toml", include_str!("../categories/go.toml")),
    ("java.toml", include_str!("../categories/java.toml")),
    ("boringssl.toml", include_str!("../categories/boringssl.toml")),
    ("openssl.toml", include_str!("../categories/openssl.toml")),
    ("wolfssl.toml", include_str!("../categories/wolfssl.toml")),
    ("s2n.toml", include_str!("../categories/s2n.toml")),
    ("node.toml", include_str!("../categories/node.toml")),
    ("http.toml", include_str!("../categories/http.toml")),
    ("loops.toml", include_str!("../categories/loops.toml")),
    ("unresolved.toml", include_str!("../categories/unresolved.toml")),
];

/// A set of rules.
#[derive(Clone, Debug)]
pub struct Rules(Vec<Rule>);

/// An invalid file of rules.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {detail}")]
pub struct RulesError {
    /// Its name.
    pub file: String,
    /// What is wrong with it.
    pub detail: String,
}

/// The category of a frame, by one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) category: Category,
    /// It says nothing about the functions that the frame calls.
    pub(crate) is_leaf: bool,
    /// The primitives below the frame belong to it.
    pub(crate) is_whole: bool,
}

#[derive(Clone, Debug)]
struct Rule {
    /// `None`: the frame's callers decide.
    matched: Option<Match>,
    modules: Vec<WildMatch>,
    symbols: Vec<WildMatch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    rule: Vec<RuleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    /// None: the frame's callers decide.
    category: Option<Category>,
    /// `*` is any text, `?` any character.
    symbols: Vec<String>,
    /// Any module if empty.
    #[serde(default)]
    modules: Vec<String>,
    /// Matches only as the innermost frame: an event loop calls everything.
    #[serde(default)]
    leaf: bool,
    /// Takes over from any primitive below it: a generator of random numbers encrypts, and encrypts no record.
    #[serde(default)]
    whole: bool,
}

impl Rules {
    /// The built-in rules.
    ///
    /// # Panics
    /// A test parses all of them.
    pub fn built_in() -> Self {
        Self::parse(FILES).expect("the built-in rules parse")
    }

    /// Parses files of rules, given by name and content, in order of precedence.
    ///
    /// # Errors
    /// The first invalid file.
    pub fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, RulesError> {
        let mut rules = Vec::new();
        for (file, text) in files {
            let parsed: RulesFile = toml::from_str(text)
                .map_err(|error| RulesError { file: file.into(), detail: error.to_string() })?;
            rules.extend(parsed.rule.into_iter().map(Rule::from));
        }
        Ok(Self(rules))
    }

    /// The match of each of these frames, if any.
    pub(crate) fn matches(&self, stacks: &Stacks) -> Vec<Option<Match>> {
        stacks.frames().iter().map(|frame| self.find(frame)).collect()
    }

    fn find(&self, frame: &Frame) -> Option<Match> {
        self.0.iter().find(|rule| rule.is_for(frame)).and_then(|rule| rule.matched)
    }
}

impl From<RuleText> for Rule {
    fn from(RuleText { category, symbols, modules, leaf, whole }: RuleText) -> Self {
        let patterns = |all: Vec<String>| all.iter().map(|pattern| WildMatch::new(pattern)).collect();
        Self {
            matched: category.map(|category| Match { category, is_leaf: leaf, is_whole: whole }),
            modules: patterns(modules),
            symbols: patterns(symbols),
        }
    }
}

impl Rule {
    fn is_for(&self, Frame { symbol, module }: &Frame) -> bool {
        let is_module = self.modules.is_empty() || self.modules.iter().any(|pattern| pattern.matches(module));
        let symbol = unprefixed(symbol);
        is_module && self.symbols.iter().any(|pattern| pattern.matches(symbol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_rules_parse_and_none_is_empty() {
        let rules = Rules::built_in();
        assert!(rules.0.iter().all(|rule| !rule.symbols.is_empty()));
    }

    #[test]
    fn an_invalid_rule_is_rejected_with_its_file_and_key() {
        let wrong = |text: &str| Rules::parse([("own.toml", text)]).expect_err("is invalid").to_string();
        let unknown = wrong("[[rule]]\ncategory = \"keys\"\nsymbols = []\n");
        assert!(unknown.starts_with("own.toml: ") && unknown.contains("key-exchange"), "{unknown}");
        let key = wrong("[[rule]]\ncategory = \"tls\"\nsymbols = []\nfunctions = []\n");
        assert!(key.contains("functions"), "{key}");
    }
}
