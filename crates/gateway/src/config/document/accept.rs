//! The rules of HTTP whose violations the gateway can repair, by name.

use std::str::FromStr;
use weir_http1::Rule;

/// A rule whose violations a listener can repair in requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRule(pub Rule);

/// A rule whose violations a service can repair in responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerRule(pub Rule);

impl FromStr for RequestRule {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if let Some(rule) = find(&Rule::OF_RESPONSES, name) {
            let name = rule.name();
            let expected = names(&Rule::OF_REQUESTS);
            return Err(format!(
                "invalid rule `{name}`: it applies to responses only; in requests it would allow request smuggling: expected {expected}"
            ));
        }
        find(&Rule::OF_REQUESTS, name).map(Self).ok_or_else(|| unknown(&Rule::OF_REQUESTS, name))
    }
}

impl FromStr for AnswerRule {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        find(&Rule::OF_RESPONSES, name).map(Self).ok_or_else(|| unknown(&Rule::OF_RESPONSES, name))
    }
}

fn find(rules: &[Rule], name: &str) -> Option<Rule> {
    rules.iter().copied().find(|rule| rule.name() == name)
}

fn unknown(rules: &[Rule], name: &str) -> String {
    format!("invalid rule `{name}`: expected {}", names(rules))
}

fn names(rules: &[Rule]) -> String {
    let names: Vec<_> = rules.iter().map(|rule| format!("`{}`", rule.name())).collect();
    names.join(", ")
}
