//! Findings: the rules that hold, ranked.

use crate::fact::{Facts, Value};
use crate::gain::Gain;
use crate::product::Product;
use crate::rule::{Rule, Rules};
use serde::Serialize;
use weir_profile::Profile;

/// A rule that holds, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule.
    pub id: String,
    /// What was seen.
    pub saw: String,
    /// Why it matters.
    pub why: String,
    /// What to change, in the words of the product.
    pub change: String,
    /// What the change moves to, where another rule may leave it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub towards: Vec<String>,
    /// What the change leaves, where another rule may ask for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<String>,
    /// The share of CPU time that the change saves by the profile's split; `None` without a profile.
    pub gain: Option<Gain>,
    /// What else it gains.
    pub also: Option<String>,
    /// What it gives up.
    pub gives_up: Option<String>,
    /// The facts it rests on.
    pub evidence: Vec<Evidence>,
}

/// A fact that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Its name.
    pub fact: String,
    /// Its value.
    pub value: Value,
    /// Its source.
    pub source: String,
}

/// A change that saves less at best, and gains nothing else, is not worth making.
const WORTHWHILE: f64 = 0.01;

/// The findings, those with the largest gain first.
pub fn findings(rules: &Rules, facts: &Facts, product: Product, profile: Option<&Profile>) -> Vec<Finding> {
    let found = |rule: &Rule| Some((rank(rule, facts, profile), finding(rule, facts, product, profile)?));
    let mut all: Vec<(f64, Finding)> = rules.0.iter().filter_map(found).collect();
    all.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    all.into_iter().map(|(_, finding)| finding).collect()
}

fn rank(rule: &Rule, facts: &Facts, profile: Option<&Profile>) -> f64 {
    match profile {
        Some(profile) if !rule.gain.is_empty() => {
            // A round trip is worth as much whatever the CPU does.
            let least = if rule.also.is_some() { rule.typical } else { 0.0 };
            Gain::of(&rule.gain, facts, profile).middle().max(least)
        }
        _ => rule.typical,
    }
}

fn finding(rule: &Rule, facts: &Facts, product: Product, profile: Option<&Profile>) -> Option<Finding> {
    if !rule.when.iter().all(|condition| condition.holds(facts)) {
        return None;
    }
    let named = rule.saw.facts().chain(rule.when.iter().map(|condition| condition.fact.as_str()));
    let named = named.chain(rule.cites.iter().map(String::as_str));
    let mut evidence: Vec<Evidence> = Vec::new();
    for name in named {
        let Some(fact) = facts.get(name) else { continue };
        if evidence.iter().all(|one| one.fact != name) {
            let (value, source) = (fact.value.clone(), fact.source.clone());
            evidence.push(Evidence { fact: name.to_owned(), value, source });
        }
    }
    let gain = profile.filter(|_| !rule.gain.is_empty()).map(|profile| Gain::of(&rule.gain, facts, profile));
    if rule.also.is_none() && gain.is_some_and(|gain| gain.high < WORTHWHILE) {
        return None;
    }
    Some(Finding {
        id: rule.id.clone(),
        saw: rule.saw.fill(facts)?,
        why: rule.why.clone(),
        change: rule.change.get(&product).or_else(|| rule.change.get(&Product::Generic))?.clone(),
        towards: rule.towards.clone(),
        away: rule.away.clone(),
        gain,
        also: rule.also.as_ref().and_then(|also| also.fill(facts)),
        gives_up: rule.gives_up.clone(),
        evidence,
    })
}

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod tests;
