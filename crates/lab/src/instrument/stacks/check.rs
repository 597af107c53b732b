//! The validity of a run: its observed outcome against its scenario.

use super::key::{self, HANDSHAKE, MEMORY, TRANSFER};
use super::output::{Facts, Memory, Negotiated, Seen, Side};
use super::values::{Described, Ran};
use crate::planning::cell::Levels;

/// The first fault of a run.
pub(super) fn first_wrong(scenario: &Levels, ran: &Ran) -> Option<String> {
    ran.failure.clone().or_else(|| check(scenario, ran).err())
}

fn check(scenario: &Levels, Ran { described, seen, .. }: &Ran) -> Result<(), String> {
    if let Some(error) = seen.errors.first() {
        return Err(format!("runner: {error}"));
    }
    must(seen.is_done, || "runner: it exited without `done`".into())?;
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
    // A description may omit the last number, which Debian's updates change.
    let begins = format!("{}.", engine.version);
    let is_it = |word: &str| word == engine.version || word.starts_with(&begins);
    let is_version = facts.tls.split_whitespace().any(is_it);
    must(is_version, || {
        format!("facts: tls `{}`: expected {}, as in engine.toml", facts.tls, engine.version)
    })?;
    let is_crypto = is_crypto(&facts.crypto, &engine.crypto);
    must(is_crypto, || {
        format!("facts: crypto `{}`: expected {}, as in engine.toml", facts.crypto, engine.crypto)
    })
}

/// Whether each described part, such as `ring 0.17.14`, is found; a version may omit its last numbers.
fn is_crypto(found: &str, described: &str) -> bool {
    let is_found = |part: &str| {
        let rest = |found: &str| found.strip_prefix(part).map(|rest| rest.chars().next());
        found.split(", ").any(|found| matches!(rest(found), Some(None | Some('.' | ' '))))
    };
    described.split(", ").all(is_found)
}

fn check_facts(scenario: &Levels, facts: &Facts) -> Result<(), String> {
    must(facts.build == "release", || format!("facts: a {} build", facts.build))?;
    for (what, reported) in [("allocator", &facts.allocator), ("compiler", &facts.compiler)] {
        let asked = scenario.word(what);
        let is_it = matches!(asked, "" | "default") || reported.split([' ', ',']).any(|word| word == asked);
        must(is_it, || format!("facts: {what} `{reported}`: expected {asked}"))?;
    }
    let masked = key::mask(scenario.word("mask")).map_or(&[][..], |mask| mask.features);
    let is_used = |feature: &&&str| facts.features.iter().any(|found| found == **feature);
    match masked.iter().find(is_used) {
        Some(feature) => Err(format!("facts: {feature} is in use despite the mask")),
        None => Ok(()),
    }
}

/// Checks the kind of handshake and the negotiated parameters on both sides.
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
    must(client == server, || format!("the client completed {client} handshakes, the server {server}"))
}

fn check_outcome(scenario: &Levels, found: &Negotiated) -> Result<(), String> {
    let resumption = scenario.word("resumption");
    let kind = if resumption == "none" { "full" } else { "resumed" };
    let signature = match scenario.word("certificate") {
        "rsa-2048" => "rsa_pss_rsae_sha256",
        "ecdsa-p384" => "ecdsa_secp384r1_sha384",
        _ => "ecdsa_secp256r1_sha256",
    };
    // A parameter that the library does not expose is not checked. A resumption has no signature, in TLS 1.2 no group.
    let group = found.group.as_deref().filter(|_| !matches!(resumption, "id" | "ticket"));
    let signed = found.signature.as_deref().filter(|_| kind == "full");
    for (what, reported, asked) in [
        ("kind", Some(found.kind.as_str()), kind),
        ("version", Some(&found.version), scenario.word("version")),
        ("suite", Some(&found.suite), scenario.word("suite")),
        ("group", group, scenario.word("group")),
        ("signature", signed, signature),
    ] {
        if let Some(other) = reported.filter(|word| *word != asked) {
            let (side, count) = (name(found.side), found.count);
            return Err(format!("{side}: {count} handshakes with {what} `{other}`: expected {asked}"));
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
    must(sessions == asked, || format!("{sessions} sessions held: expected {asked}"))?;
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
    fn crypto_matches_its_description_up_to_the_last_number_given() {
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
