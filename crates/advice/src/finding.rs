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
    /// The observation.
    pub saw: String,
    /// Why it matters.
    pub why: String,
    /// The change, in the product's terms.
    pub change: String,
    /// What the change moves to, which other rules may advise to leave.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub towards: Vec<String>,
    /// What the change leaves, which other rules may advise to use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<String>,
    /// The predicted saving as a share of CPU time; `None` without a profile.
    pub gain: Option<Gain>,
    /// Other gains.
    pub also: Option<String>,
    /// What the change gives up.
    pub gives_up: Option<String>,
    /// The facts that support it.
    pub evidence: Vec<Evidence>,
}

/// A fact that supports a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Its name.
    pub fact: String,
    /// Its value.
    pub value: Value,
    /// Its source.
    pub source: String,
}

/// A change that saves less CPU time at best, and has no other gain, is not worthwhile.
const WORTHWHILE: f64 = 0.01;

/// The findings, largest gain first.
pub fn findings(rules: &Rules, facts: &Facts, product: Product, profile: Option<&Profile>) -> Vec<Finding> {
    let found = |rule: &Rule| Some((rank(rule, facts, profile), finding(rule, facts, product, profile)?));
    let mut all: Vec<(f64, Finding)> = rules.0.iter().filter_map(found).collect();
    all.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    all.into_iter().map(|(_, finding)| finding).collect()
}

fn rank(rule: &Rule, facts: &Facts, profile: Option<&Profile>) -> f64 {
    match profile {
        Some(profile) if !rule.gain.is_empty() => {
            // The value of a round trip does not depend on the CPU.
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
