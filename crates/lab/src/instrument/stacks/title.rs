//! The title of a scenario for people: `full handshake, TLS 1.3, ECDSA P-256`. Files, options and claims use its ID.

use super::key::{HANDSHAKE, Key, PRIMITIVE};
use super::scenario::usual_tickets;
use crate::experiment::Level;
use crate::planning::cell::Levels;
use weir_load::plural;

/// The distinguishing properties of a scenario in words, without defaults.
pub(super) fn of(scenario: &Levels) -> String {
    let parts = scenario.in_order().filter_map(|(key, level)| part(scenario, key, level));
    parts.collect::<Vec<_>>().join(", ")
}

/// `None` for defaults.
fn part(scenario: &Levels, key: &Key, level: &Level) -> Option<String> {
    let word = level.as_str();
    let is_usual = match key.name {
        "do" | "operation" | "version" | "certificate" => false,
        "tickets" => word == usual_tickets(scenario.word("version"), scenario.word("resumption")).to_string(),
        "warmup" | "window_ms" => true,
        _ => key.is_default(level),
    };
    if is_usual {
        return None;
    }
    Some(match key.name {
        "do" => match (word, scenario.word("resumption")) {
            // The operation is its title.
            (PRIMITIVE, _) => return None,
            (HANDSHAKE, "none") => "full handshake".into(),
            (HANDSHAKE, "id") => "resumption by session ID".into(),
            (HANDSHAKE, "ticket") => "resumption by ticket".into(),
            (HANDSHAKE, "psk") => "resumption by PSK".into(),
            _ => word.to_owned(),
        },
        // Part of `do`.
        "resumption" => return None,
        "operation" => operation(word),
        "version" => format!("TLS {word}"),
        "certificate" | "suite" => algorithm(word),
        "group" => format!("{} key exchange", algorithm(word)),
        "tickets" if word == "0" => "no tickets".into(),
        "tickets" | "threads" | "sessions" => plural(level.number()? as u64, key.name.trim_end_matches('s')),
        "config" => format!("{word} configuration"),
        "locks" => "locks timed".into(),
        name @ ("record" | "write") => format!("{name}s of {word} bytes"),
        "bytes" => format!("{word} bytes"),
        "mask" => format!("without {}", word.trim_start_matches("no-").to_uppercase()),
        "compiler" => format!("compiled by {word}"),
        "allocator" => format!("{word} allocator"),
        name => format!("{name} {word}"),
    })
}

/// `ECDSA P-256 sign`, `X25519 key exchange`.
fn operation(word: &str) -> String {
    match word.rsplit_once('-') {
        Some((what, how @ ("sign" | "verify" | "seal" | "open"))) => format!("{} {how}", algorithm(what)),
        Some((what, side @ ("client" | "server"))) => format!("{} key exchange, {side}", algorithm(what)),
        _ => format!("{} key exchange", algorithm(word)),
    }
}

/// The name of an algorithm in its specification.
fn algorithm(word: &str) -> String {
    match word {
        "rsa-2048" => "RSA-2048",
        "ecdsa-p256" => "ECDSA P-256",
        "ecdsa-p384" => "ECDSA P-384",
        "p256" => "P-256",
        "x25519" => "X25519",
        "x25519mlkem768" => "X25519MLKEM768",
        "aes128-gcm" => "AES-128-GCM",
        "aes256-gcm" => "AES-256-GCM",
        "chacha20-poly1305" => "ChaCha20-Poly1305",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::stacks::scenario::scenarios;
    use crate::instrument::stacks::tests::experiments;
    use std::collections::BTreeMap;

    fn title(levels: &str) -> String {
        let levels = levels.split(' ').filter_map(|pair| pair.split_once('='));
        of(&levels.map(|(key, level)| (key.to_owned(), Level::new(level))).collect())
    }

    #[test]
    fn titles_are_plain_words() {
        for (levels, expected) in [
            (
                "do=handshake version=1.3 resumption=none certificate=ecdsa-p256 group=x25519 suite=aes128-gcm \
                 tickets=2 config=warm threads=1 warmup=100 window_ms=200 mask=none",
                "full handshake, TLS 1.3, ECDSA P-256",
            ),
            (
                "do=handshake version=1.2 resumption=id certificate=rsa-2048 group=p256 tickets=0 threads=4",
                "resumption by session ID, TLS 1.2, RSA-2048, P-256 key exchange, 4 threads",
            ),
            (
                "do=handshake version=1.3 resumption=psk certificate=ecdsa-p256 tickets=1 locks=time",
                "resumption by PSK, TLS 1.3, ECDSA P-256, 1 ticket, locks timed",
            ),
            (
                "do=handshake version=1.3 resumption=none certificate=rsa-2048 tickets=0 mask=no-avx512",
                "full handshake, TLS 1.3, RSA-2048, no tickets, without AVX512",
            ),
            (
                "do=transfer version=1.3 certificate=ecdsa-p256 suite=aes256-gcm record=4096 bytes=1048576",
                "transfer, TLS 1.3, ECDSA P-256, AES-256-GCM, records of 4096 bytes",
            ),
            ("do=primitive operation=ecdsa-p256-sign", "ECDSA P-256 sign"),
            ("do=primitive operation=x25519mlkem768-server", "X25519MLKEM768 key exchange, server"),
            ("do=primitive operation=p256", "P-256 key exchange"),
            (
                "do=memory version=1.3 certificate=ecdsa-p256 sessions=1000",
                "memory, TLS 1.3, ECDSA P-256, 1000 sessions",
            ),
        ] {
            assert_eq!(title(levels), expected);
        }
    }

    /// Two rows with the same title would be indistinguishable.
    #[test]
    fn each_scenario_of_the_experiments_has_a_title_of_its_own() {
        for experiment in experiments(false) {
            let mut titles: BTreeMap<String, String> = BTreeMap::new();
            for scenario in scenarios(&experiment) {
                let before = titles.insert(of(&scenario), scenario.id());
                assert_eq!(before, None, "{} and {}", of(&scenario), scenario.id());
            }
        }
    }
}
