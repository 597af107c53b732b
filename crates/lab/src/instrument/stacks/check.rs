//! Whether a run may be used: what was seen against what was asked for.

use super::key::{self, HANDSHAKE, MEMORY, TRANSFER};
use super::output::{Facts, Negotiated, Seen, Side};
use super::values::{Described, Ran};
use crate::cell::Levels;

/// The first thing that is wrong with what a runner said, if anything is.
pub(super) fn first_wrong(scenario: &Levels, ran: &Ran) -> Option<String> {
    let Ran { failure, described, seen, .. } = ran;
    if failure.is_some() {
        return failure.clone();
    }
    if let Some(error) = seen.errors.first() {
        return Some(format!("runner: {error}"));
    }
    if !seen.is_done {
        return Some("runner: it ended without `done`".into());
    }
    let Some(facts) = &seen.facts else { return Some("runner: no `facts`".into()) };
    wrong_facts(scenario, described.as_ref(), facts).or_else(|| match scenario.word("do") {
        HANDSHAKE => wrong_handshakes(scenario, seen),
        TRANSFER => wrong_transfer(scenario, seen),
        MEMORY => wrong_memory(scenario, seen),
        _ => without_units(seen, Side::Operation),
    })
}

fn wrong_facts(scenario: &Levels, described: Option<&Described>, facts: &Facts) -> Option<String> {
    if let Some(wrong) = described.and_then(|described| wrong_versions(described, facts)) {
        return Some(wrong);
    }
    if facts.build != "release" {
        return Some(format!("facts: a {} build", facts.build));
    }
    for (what, told) in [("allocator", &facts.allocator), ("compiler", &facts.compiler)] {
        let asked = scenario.word(what);
        if !matches!(asked, "" | "default") && !told.split([' ', ',']).any(|word| word == asked) {
            return Some(format!("facts: {what} `{told}`: asked for was {asked}"));
        }
    }
    let still_there = |feature: &&&str| facts.features.iter().any(|found| found == **feature);
    let used = key::mask(scenario.word("mask"))?.features.iter().find(still_there)?;
    Some(format!("facts: {used} is used although it was masked"))
}

fn wrong_versions(engine: &Described, facts: &Facts) -> Option<String> {
    // Debian moves the last number: a description may leave it out.
    let begins = format!("{}.", engine.version);
    let is_it = |word: &str| word == engine.version || word.starts_with(&begins);
    let has_version = facts.tls.split_whitespace().any(is_it);
    if !has_version {
        return Some(format!("facts: tls `{}`: engine.toml says {}", facts.tls, engine.version));
    }
    (!is_crypto(&facts.crypto, &engine.crypto))
        .then(|| format!("facts: crypto `{}`: engine.toml says {}", facts.crypto, engine.crypto))
}

/// Whether each part of what is described, such as `ring 0.17.14`, is found; of a version the last numbers may be left out.
fn is_crypto(found: &str, described: &str) -> bool {
    let is_found = |part: &str| {
        let rest = |found: &str| found.strip_prefix(part).map(|rest| rest.chars().next());
        found.split(", ").any(|found| matches!(rest(found), Some(None | Some('.' | ' '))))
    };
    described.split(", ").all(is_found)
}

/// The kind of handshake, and all that was negotiated, on both ends.
fn wrong_handshakes(scenario: &Levels, seen: &Seen) -> Option<String> {
    let kind = if scenario.word("resumption") == "none" { "full" } else { "resumed" };
    let sides = [Side::Client, Side::Server];
    let wrong = |side: Side| {
        without_units(seen, side).or_else(|| {
            let of_side = || seen.negotiated.iter().filter(|one| one.side == side);
            let counted: u64 = of_side().map(|one| one.count).sum();
            let units = seen.times.get(&side).map_or(0, |times| times.units);
            let other = of_side().find_map(|one| wrong_outcome(scenario, kind, one));
            other.or_else(|| {
                (counted != units)
                    .then(|| format!("{}: {units} handshakes timed, {counted} accounted for", name(side)))
            })
        })
    };
    sides.into_iter().find_map(wrong).or_else(|| {
        let [client, server] = sides.map(|side| seen.times.get(&side).map_or(0, |times| times.units));
        (client != server).then(|| format!("the client made {client} handshakes, the server {server}"))
    })
}

fn wrong_outcome(scenario: &Levels, kind: &str, found: &Negotiated) -> Option<String> {
    let signature = match scenario.word("certificate") {
        "rsa-2048" => "rsa_pss_rsae_sha256",
        "ecdsa-p384" => "ecdsa_secp384r1_sha384",
        _ => "ecdsa_secp256r1_sha256",
    };
    // What a library does not tell cannot be wrong; a resumption has neither signature nor, by ticket or id, a group.
    let is_without_exchange = matches!(scenario.word("resumption"), "id" | "ticket");
    let group = found.group.as_deref().filter(|_| !is_without_exchange);
    let signed = found.signature.as_deref().filter(|_| kind == "full");
    let facts = [
        ("kind", Some(found.kind.as_str()), kind),
        ("version", Some(&found.version), scenario.word("version")),
        ("suite", Some(&found.suite), scenario.word("suite")),
        ("group", group, scenario.word("group")),
        ("signature", signed, signature),
    ];
    facts.into_iter().find_map(|(what, found_it, asked)| {
        let other = found_it.filter(|word| *word != asked)?;
        Some(format!(
            "{}: {} handshakes with {what} `{other}`: asked for was {asked}",
            name(found.side),
            found.count
        ))
    })
}

fn wrong_transfer(scenario: &Levels, seen: &Seen) -> Option<String> {
    let bytes = scenario.number("bytes").unwrap_or(0);
    [Side::Server, Side::Client].into_iter().find_map(|side| {
        without_units(seen, side).or_else(|| {
            let moved = seen.moved.get(&side).copied().unwrap_or(0);
            let should = seen.times.get(&side).map_or(0, |times| times.units) * bytes;
            (moved != should).then(|| format!("{}: {moved} bytes moved of {should}", name(side)))
        })
    })
}

fn wrong_memory(scenario: &Levels, seen: &Seen) -> Option<String> {
    let Some(memory) = seen.memory else { return Some("runner: no `memory`".into()) };
    let asked = scenario.number("sessions").unwrap_or(0);
    if memory.sessions != asked {
        return Some(format!("{} sessions were held: asked for were {asked}", memory.sessions));
    }
    (memory.after_kib <= memory.before_kib).then(|| "memory did not grow".into())
}

fn without_units(seen: &Seen, side: Side) -> Option<String> {
    let is_empty = seen.times.get(&side).is_none_or(|times| times.units == 0);
    let idle = || seen.threads.iter().find(|thread| thread.units == 0);
    match is_empty {
        true => Some(format!("{}: nothing was measured", name(side))),
        false => idle().map(|thread| format!("thread {} measured nothing", thread.thread)),
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
        Side::Operation => "operation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crypto_is_what_is_described_up_to_the_last_number_given() {
        for (found, described, is_it) in [
            ("ring 0.17.14", "ring 0.17.14", true),
            ("ring 0.17.14", "ring 0.17.1", false),
            ("openssl 3.0.19", "openssl 3.0", true),
            ("openssl 3.5.5", "openssl", true),
            ("aws-lc-rs 1.19.0, AWS-LC 5.12.0", "aws-lc-rs 1.19.0, AWS-LC 5.12.0", true),
            ("aws-lc-rs 1.19.0, AWS-LC 5.13.0", "aws-lc-rs 1.19.0, AWS-LC 5.12.0", false),
            ("aws-lc-rs 1.19.0", "aws-lc 1.19.0", false),
        ] {
            assert_eq!(is_crypto(found, described), is_it, "{found} as {described}");
        }
    }
}
