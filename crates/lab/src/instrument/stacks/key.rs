//! The keys of a scenario: the parameters of a TLS stack's work and of the machine below it.

use crate::experiment::Level;

// The tasks of a runner.
pub(super) const HANDSHAKE: &str = "handshake";
pub(super) const TRANSFER: &str = "transfer";
pub(super) const MEMORY: &str = "memory";
pub(super) const PRIMITIVE: &str = "primitive";
pub(super) const TASKS: [&str; 4] = [HANDSHAKE, TRANSFER, MEMORY, PRIMITIVE];

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) allowed: Allowed,
    /// The tasks it applies to.
    pub(crate) tasks: &'static [&'static str],
    /// The default; `None`: required, or optional for the task.
    pub(crate) default: Option<&'static str>,
    /// Whether it is passed to the runner; else the lab applies it.
    pub(crate) is_for_runner: bool,
}

/// The values of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Allowed {
    Words(&'static [&'static str]),
    Number { least: u64, most: u64 },
}

const SESSIONS: &[&str] = &[HANDSHAKE, TRANSFER, MEMORY];

/// Every key, in the order of a cell's name.
pub(crate) const KEYS: &[Key] = &[
    key("do", &TASKS, &TASKS),
    key("operation", &OPERATIONS, &[PRIMITIVE]),
    key("version", &["1.2", "1.3"], SESSIONS),
    Key { default: Some("none"), ..key("resumption", &["none", "id", "ticket", "psk"], &[HANDSHAKE]) },
    Key {
        default: Some("ecdsa-p256"),
        ..key("certificate", &["rsa-2048", "ecdsa-p256", "ecdsa-p384"], SESSIONS)
    },
    Key { default: Some("x25519"), ..key("group", &["x25519", "p256", "x25519mlkem768"], SESSIONS) },
    Key {
        default: Some("aes128-gcm"),
        ..key("suite", &["aes128-gcm", "aes256-gcm", "chacha20-poly1305"], SESSIONS)
    },
    // The default depends on the kind of handshake: see `usual_tickets`.
    number("tickets", 0, 4, &[HANDSHAKE]),
    Key { default: Some("warm"), ..key("config", &["warm", "cold"], &[HANDSHAKE]) },
    // Limited to some resumptions by the engine: see `Description::lacks`.
    key("locks", &["time"], &[HANDSHAKE]),
    Key { default: Some("16384"), ..number("record", 512, 16_384, &[TRANSFER, PRIMITIVE]) },
    Key { default: Some("65536"), ..number("write", 1, 16 << 20, &[TRANSFER]) },
    Key { default: Some("1048576"), ..number("bytes", 1, 1 << 30, &[TRANSFER]) },
    number("sessions", 2, 100_000, &[MEMORY]),
    Key { default: Some("1"), ..number("threads", 1, 1024, &[HANDSHAKE, TRANSFER, PRIMITIVE]) },
    Key { default: Some("100"), ..number("warmup", 0, 10_000_000, &[HANDSHAKE, TRANSFER, PRIMITIVE]) },
    number("window_ms", 1, 600_000, &[HANDSHAKE, TRANSFER, PRIMITIVE]),
    machine("mask", &["none", "no-ifma", "no-vaes", "no-avx512"]),
    machine("compiler", &["default", "gcc", "clang"]),
    machine("allocator", &["default", "system", "mimalloc", "jemalloc"]),
];

const OPERATIONS: [&str; 16] = [
    "rsa-2048-sign",
    "rsa-2048-verify",
    "ecdsa-p256-sign",
    "ecdsa-p256-verify",
    "ecdsa-p384-sign",
    "ecdsa-p384-verify",
    "x25519",
    "p256",
    "x25519mlkem768-client",
    "x25519mlkem768-server",
    "aes128-gcm-seal",
    "aes128-gcm-open",
    "aes256-gcm-seal",
    "aes256-gcm-open",
    "chacha20-poly1305-seal",
    "chacha20-poly1305-open",
];

const fn key(name: &'static str, words: &'static [&'static str], tasks: &'static [&'static str]) -> Key {
    Key { name, allowed: Allowed::Words(words), tasks, default: None, is_for_runner: true }
}

const fn number(name: &'static str, least: u64, most: u64, tasks: &'static [&'static str]) -> Key {
    Key { name, allowed: Allowed::Number { least, most }, tasks, default: None, is_for_runner: true }
}

/// A key that the lab applies; the first word is the default.
const fn machine(name: &'static str, words: &'static [&'static str]) -> Key {
    Key { default: Some(words[0]), is_for_runner: false, ..key(name, words, &TASKS) }
}

/// The key of this name.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The names of keys.
pub(super) fn names<'a>(keys: impl IntoIterator<Item = &'a Key>) -> String {
    keys.into_iter().map(|key| key.name).collect::<Vec<_>>().join(", ")
}

impl Key {
    /// Whether a level is the default.
    pub(super) fn is_default(&self, level: &Level) -> bool {
        self.default == Some(level.as_str())
    }

    /// Checks that a level is one of its values. Errors: the allowed values.
    pub(crate) fn check(&self, level: &Level) -> Result<(), String> {
        let (is_right, allowed) = match self.allowed {
            Allowed::Words(words) => {
                (words.contains(&level.as_str()), format!("one of {}", words.join(", ")))
            }
            Allowed::Number { least, most } => {
                let number = level.as_str().parse::<u64>();
                (number.is_ok_and(|number| (least..=most).contains(&number)), format!("{least} to {most}"))
            }
        };
        if is_right { Ok(()) } else { Err(format!("invalid value `{level}`: expected {allowed}")) }
    }
}

/// Processor features hidden from a library.
pub(super) struct Mask {
    /// The environment variable for OpenSSL and its relatives: bits of CPUID leaf 7, EBX below and ECX above.
    pub(super) variable: &'static str,
    /// The features that must be unused, by the names that runners report.
    pub(super) features: &'static [&'static str],
}

/// The mask of this name; `None` if it masks nothing.
pub(super) fn mask(name: &str) -> Option<Mask> {
    let (variable, features): (_, &[&str]) = match name {
        "no-ifma" => ("OPENSSL_ia32cap=:~0x200000", &["avx512ifma"]),
        // VAES and VPCLMULQDQ, which libraries use together.
        "no-vaes" => ("OPENSSL_ia32cap=:~0x60000000000", &["vaes", "vpclmulqdq"]),
        // F, DQ, IFMA, CD, BW, VL, and the two above, whose wide form needs them.
        "no-avx512" => ("OPENSSL_ia32cap=:~0x600d0230000", &["avx512f", "avx512ifma", "vaes", "vpclmulqdq"]),
        _ => return None,
    };
    Some(Mask { variable, features })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_place_and_its_default_is_allowed() {
        for (index, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..index].iter().all(|other| other.name != key.name), "{}", key.name);
            if let Some(default) = key.default {
                assert_eq!(key.check(&Level::new(default)), Ok(()), "{}", key.name);
            }
        }
    }

    #[test]
    fn invalid_values_are_rejected_with_the_allowed_ones() {
        let check = |key, value: &str| find(key).expect("a key").check(&Level::new(value));
        assert_eq!(check("version", "1.3"), Ok(()));
        assert_eq!(check("version", "1.1"), Err("invalid value `1.1`: expected one of 1.2, 1.3".into()));
        assert_eq!(check("tickets", "5"), Err("invalid value `5`: expected 0 to 4".into()));
        assert_eq!(check("threads", "-1"), Err("invalid value `-1`: expected 1 to 1024".into()));
        assert!(find("colour").is_none());
    }
}
