//! Whether a run may be used: what was seen against what was asked for.

use super::key::{self, HANDSHAKE, MEMORY, TRANSFER};
use super::output::{Facts, Memory, Negotiated, Seen, Side};
use super::values::{Described, Ran};
use crate::cell::Levels;

/// The first thing that is wrong with what a runner said, if anything is.
pub(super) fn first_wrong(scenario: &Levels, ran: &Ran) -> Option<String> {
    ran.failure.clone().or_else(|| check(scenario, ran).err())
}

fn check(scenario: &Levels, Ran { described, seen, .. }: &Ran) -> Result<(), String> {
    if let Some(error) = seen.errors.first() {
        return Err(format!("runner: {error}"));
    }
    must(seen.is_done, || "runner: it ended without `done`".into())?;
    let facts = seen.facts.as_ref().ok_or("runner: no `facts`")?;
    if let Some(described) = described {
        check_versions(described, facts)?;
    }
    check_facts(scenario, facts)?;
    match scenario.word("do") {
        HANDSHAKE => check_handshakes(scenario, seen),
        TRANSFER => check_transfer(scenario, seen),
        MEMORY => check_memory(scenario, seen),
        _ => check_units(seen, Side::Operation),
    }
}

fn must(is_right: bool, why_not: impl FnOnce() -> String) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(why_not()) }
}

fn check_versions(engine: &Described, facts: &Facts) -> Result<(), String> {
    // Debian moves the last number: a description may leave it out.
    let begins = format!("{}.", engine.version);
    let is_it = |word: &str| word == engine.version || word.starts_with(&begins);
    let is_version = facts.tls.split_whitespace().any(is_it);
    must(is_version, || format!("facts: tls `{}`: engine.toml says {}", facts.tls, engine.version))?;
    let is_crypto = is_crypto(&facts.crypto, &engine.crypto);
    must(is_crypto, || format!("facts: crypto `{}`: engine.toml says {}", facts.crypto, engine.crypto))
}

/// Whether each part of what is described, such as `ring 0.17.14`, is found; of a version the last numbers may be left out.
fn is_crypto(found: &str, described: &str) -> bool {
    let is_found = |part: &str| {
        let rest = |found: &str| found.strip_prefix(part).map(|rest| rest.chars().next());
        found.split(", ").any(|found| matches!(rest(found), Some(None | Some('.' | ' '))))
    };
    described.split(", ").all(is_found)
}

fn check_facts(scenario: &Levels, facts: &Facts) -> Result<(), String> {
    must(facts.build == "release", || format!("facts: a {} build", facts.build))?;
    for (what, told) in [("allocator", &facts.allocator), ("compiler", &facts.compiler)] {
        let asked = scenario.word(what);
        let is_it = matches!(asked, "" | "default") || told.split([' ', ',']).any(|word| word == asked);
        must(is_it, || format!("facts: {what} `{told}`: asked for was {asked}"))?;
    }
    let masked = key::mask(scenario.word("mask")).map_or(&[][..], |mask| mask.features);
    let is_used = |feature: &&&str| facts.features.iter().any(|found| found == **feature);
    match masked.iter().find(is_used) {
        Some(feature) => Err(format!("facts: {feature} is used although it was masked")),
        None => Ok(()),
    }
}

/// The kind of handshake, and all that was negotiated, on both ends.
fn check_handshakes(scenario: &Levels, seen: &Seen) -> Result<(), String> {
    for side in [Side::Client, Side::Server] {
        check_units(seen, side)?;
        let of_side = || seen.negotiated.iter().filter(|one| one.side == side);
        of_side().try_for_each(|one| check_outcome(scenario, one))?;
        let counted: u64 = of_side().map(|one| one.count).sum();
        let units = seen.units(side);
        must(units == counted, || {
            format!("{}: {units} handshakes timed, {counted} accounted for", name(side))
        })?;
    }
    let [client, server] = [Side::Client, Side::Server].map(|side| seen.units(side));
    must(client == server, || format!("the client made {client} handshakes, the server {server}"))
}

fn check_outcome(scenario: &Levels, found: &Negotiated) -> Result<(), String> {
    let resumption = scenario.word("resumption");
    let kind = if resumption == "none" { "full" } else { "resumed" };
    let signature = match scenario.word("certificate") {
        "rsa-2048" => "rsa_pss_rsae_sha256",
        "ecdsa-p384" => "ecdsa_secp384r1_sha384",
        _ => "ecdsa_secp256r1_sha256",
    };
    // What a library does not tell cannot be wrong; a resumption has neither signature nor, by ticket or id, a group.
    let group = found.group.as_deref().filter(|_| !matches!(resumption, "id" | "ticket"));
    let signed = found.signature.as_deref().filter(|_| kind == "full");
    for (what, told, asked) in [
        ("kind", Some(found.kind.as_str()), kind),
        ("version", Some(&found.version), scenario.word("version")),
        ("suite", Some(&found.suite), scenario.word("suite")),
        ("group", group, scenario.word("group")),
        ("signature", signed, signature),
    ] {
        if let Some(other) = told.filter(|word| *word != asked) {
            let (end, count) = (name(found.side), found.count);
            return Err(format!("{end}: {count} handshakes with {what} `{other}`: asked for was {asked}"));
        }
    }
    Ok(())
}

fn check_transfer(scenario: &Levels, seen: &Seen) -> Result<(), String> {
    let bytes = scenario.number("bytes").unwrap_or(0);
    for side in [Side::Server, Side::Client] {
        check_units(seen, side)?;
        let (moved, should) = (seen.moved.get(&side).copied().unwrap_or(0), seen.units(side) * bytes);
        must(moved == should, || format!("{}: {moved} bytes moved of {should}", name(side)))?;
    }
    Ok(())
}

fn check_memory(scenario: &Levels, seen: &Seen) -> Result<(), String> {
    let Memory { sessions, before_kib, after_kib } = seen.memory.ok_or("runner: no `memory`")?;
    let asked = scenario.number("sessions").unwrap_or(0);
    must(sessions == asked, || format!("{sessions} sessions were held: asked for were {asked}"))?;
    must(after_kib > before_kib, || "memory did not grow".into())
}

fn check_units(seen: &Seen, side: Side) -> Result<(), String> {
    must(seen.units(side) > 0, || format!("{}: nothing was measured", name(side)))?;
    match seen.threads.iter().find(|thread| thread.units == 0) {
        Some(idle) => Err(format!("thread {} measured nothing", idle.thread)),
        None => Ok(()),
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
