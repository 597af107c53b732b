//! Findings that hold at the same time agree: no change moves to what another one leaves.

use super::*;
use crate::condition::Condition;
use crate::template::Template;
use std::collections::BTreeSet;

/// The products whose versions a change may ask for.
const VERSIONED: [&str; 6] = ["OpenSSL", "Node.js", "JDK", "Go", "nginx", "HAProxy"];

/// A version, or a minimum version.
#[derive(Clone, Debug, PartialEq)]
struct Versions {
    name: &'static str,
    from: Vec<u32>,
    or_later: bool,
}

/// The versions that a text asks for. `before nginx 1.29.7` asks for none.
fn versions(words: &str) -> Vec<Versions> {
    let mut found = Vec::new();
    for name in VERSIONED {
        for (at, _) in words.match_indices(name) {
            let Some(rest) = words[at + name.len()..].strip_prefix(' ') else { continue };
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let from: Vec<u32> = rest[..end].split('.').filter_map(|number| number.parse().ok()).collect();
            if !from.is_empty() && !words[..at].ends_with("before ") {
                found.push(Versions { name, from, or_later: rest[end..].starts_with(" or later") });
            }
        }
    }
    found
}

impl Versions {
    /// Whether a request for these versions also allows `other`: 3.0.2 is a version of 3.0.
    fn allows(&self, other: &Self) -> bool {
        let is_in = self.from.starts_with(&other.from) || self.or_later && self.from <= other.from;
        self.name == other.name && is_in
    }
}

/// Something that the change of `one` moves to and the change of `other` leaves.
fn contradiction(one: &Finding, other: &Finding) -> Option<String> {
    if let Some(both) = one.towards.iter().find(|word| other.away.contains(word)) {
        return Some(both.clone());
    }
    let asked = versions(&one.change);
    let left = other.away.iter().flat_map(|words| versions(words));
    // A minimum version leaves all earlier versions.
    let floors = versions(&other.change).into_iter().filter(|version| version.or_later);
    let is_below = |floor: &Versions| {
        asked.iter().find(|version| version.name == floor.name && version.from < floor.from).cloned()
    };
    let allowed = left.filter(|left| asked.iter().any(|version| version.allows(left)));
    allowed.chain(floors.filter_map(|floor| is_below(&floor))).next().map(|version| format!("{version:?}"))
}

/// Facts under which both rules hold, from values at or around the limits of their conditions; `None` if the rules
/// exclude each other.
fn together(one: &Rule, other: &Rule) -> Option<Facts> {
    let conditions: Vec<&Condition> = one.when.iter().chain(&other.when).collect();
    let names: BTreeSet<&str> = conditions.iter().map(|condition| condition.fact.as_str()).collect();
    let mut facts = Facts::default();
    for name in &names {
        let of: Vec<&Condition> = conditions.iter().copied().filter(|one| one.fact == *name).collect();
        let holds = |value: &Option<Value>| {
            let mut alone = Facts::default();
            alone.add_known(name, value.clone(), "test");
            of.iter().all(|condition| condition.holds(&alone))
        };
        let value = of.iter().flat_map(|condition| condition.around()).find(holds)?;
        facts.add_known(name, value, "test");
    }
    let sentences = [one, other].into_iter().flat_map(|rule| [Some(&rule.saw), rule.also.as_ref()]);
    for name in sentences.flatten().flat_map(Template::facts).filter(|name| !names.contains(name)) {
        facts.add(name, 1.0, "test");
    }
    Some(facts)
}

#[test]
fn findings_that_hold_together_do_not_contradict_each_other() {
    let rules = Rules::built_in();
    let mut wrong = BTreeSet::new();
    for (at, one) in rules.0.iter().enumerate() {
        assert!(together(one, one).is_some(), "{} never holds", one.id);
        for other in &rules.0[at..] {
            let Some(facts) = together(one, other) else { continue };
            for product in Product::ALL {
                let found = findings(&rules, &facts, product, None);
                for rule in [one, other] {
                    assert!(found.iter().any(|finding| finding.id == rule.id), "{}: {facts:?}", rule.id);
                }
                for (moves, leaves) in
                    found.iter().flat_map(|one| found.iter().map(move |other| (one, other)))
                {
                    let what = contradiction(moves, leaves);
                    wrong.extend(
                        what.map(|what| format!("{} to {what}, which {} leaves", moves.id, leaves.id)),
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A finding with this change.
fn finding_of(change: &str, towards: &[&str], away: &[&str]) -> Finding {
    let [towards, away] = [towards, away].map(|words| words.iter().map(|word| (*word).to_owned()).collect());
    Finding {
        id: String::new(),
        saw: String::new(),
        why: String::new(),
        change: change.to_owned(),
        towards,
        away,
        gain: None,
        also: None,
        gives_up: None,
        evidence: Vec::new(),
    }
}

/// Regression test: a process on OpenSSL 3.0 got advice to use "OpenSSL 3.0 or later", and then advice to leave 3.0. A
/// Node.js process without TLS 1.3 got "Node.js 12 or later" and then "Node.js 24 or later".
#[test]
fn a_contradiction_is_seen() {
    let leaves =
        finding_of("a build on OpenSSL 3.5 or AWS-LC", &[], &["OpenSSL 3.0", "OpenSSL 3.1", "Node.js 20"]);
    let newer = finding_of("Node.js 24 or later", &[], &[]);
    let more = finding_of("a worker for each core", &["more workers"], &[]);
    let fewer = finding_of("a worker for each core", &[], &["more workers"]);
    for (change, other, is_one) in [
        ("a library with AVX-512 (OpenSSL 3.0 or later)", &leaves, true),
        ("OpenSSL 1.1.1 or later", &leaves, true),
        ("a build on OpenSSL 3.0.2", &leaves, true),
        ("OpenSSL 3.5 or later", &leaves, false),
        ("AWS-LC, and before OpenSSL 3.0 a patch", &leaves, false),
        ("Node.js 12 or later", &leaves, true),
        ("Node.js 12 or later", &newer, true),
        ("Node.js 22", &newer, true),
        ("Node.js 24 or later", &newer, false),
        ("JDK 13 or later", &newer, false),
    ] {
        let found = contradiction(&finding_of(change, &[], &[]), other);
        assert_eq!(found.is_some(), is_one, "{change} and {}: {found:?}", other.change);
    }
    assert_eq!(contradiction(&more, &fewer).as_deref(), Some("more workers"));
    assert_eq!(contradiction(&fewer, &more), None);
}
