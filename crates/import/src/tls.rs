//! OpenSSL's names of suites, groups and versions, translated to Weir's.

use crate::model::Table;
use weir_tls::{Group, Suite, Version};

/// The suites that a list selects.
#[derive(Debug, PartialEq, Eq)]
enum Suites {
    /// All of Weir's suites, listed or selected by a keyword such as `HIGH`.
    All,
    /// These suites of Weir.
    Some(Vec<Suite>),
    /// None of Weir's suites.
    None,
}

/// Weir's suites of a version.
fn all(version: Version) -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(move |suite| suite.version() == version)
}

/// Parses an OpenSSL list. OpenSSL uses the IANA names for TLS 1.3 suites; for TLS 1.2 suites, Weir uses OpenSSL's
/// names in lower case.
fn suites(list: &str, version: Version) -> Suites {
    let words = list.split([':', ',', ' ']);
    let named = words.filter(|word| !(word.is_empty() || word.starts_with(['!', '-', '@', '+'])));
    let is_keyword = |word: &str| !(word.starts_with("TLS_") || word.contains('-'));
    if version == Version::Tls12 && named.clone().any(is_keyword) {
        return Suites::All;
    }
    let found: Vec<Suite> = named
        .filter_map(|word| word.parse().ok())
        .filter(|suite: &Suite| suite.version() == version)
        .collect();
    match found.len() {
        0 => Suites::None,
        count if count >= all(version).count() => Suites::All,
        _ => Suites::Some(found),
    }
}

/// Parses an OpenSSL list of groups; also returns the groups that Weir does not support.
pub(crate) fn groups(list: &str) -> (Vec<&'static str>, Vec<&str>) {
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for word in
        list.split(':').map(|word| word.trim_start_matches(['?', '*'])).filter(|word| !word.is_empty())
    {
        match word.parse::<Group>().map(Group::name) {
            Ok(group) if !found.contains(&group) => found.push(group),
            Ok(_) => {}
            Err(_) => unknown.push(word),
        }
    }
    (found, unknown)
}

/// Parses OpenSSL's name of a version; `None`: Weir does not support it.
pub(crate) fn version(name: &str) -> Option<Version> {
    name.strip_prefix("TLSv")?.parse().ok()
}

/// A configuration's versions and suites; empty: not configured.
#[derive(Debug, Default)]
pub(crate) struct Offer<'a> {
    pub versions: Vec<Version>,
    /// OpenSSL's list for TLS 1.2.
    pub ciphers: &'a str,
    /// OpenSSL's list for TLS 1.3.
    pub ciphersuites: &'a str,
}

impl Offer<'_> {
    /// Writes `versions` and `suites`. Fails if Weir supports none of the suites.
    pub(crate) fn write(&self, table: &mut Table) -> Result<(), String> {
        let has = |version| self.versions.is_empty() || self.versions.contains(&version);
        if Version::ALL.into_iter().any(|version| !has(version)) {
            table.texts("versions", self.versions.iter().map(|version| version.name()));
        }
        let (mut chosen, mut is_chosen) = (Vec::new(), false);
        for (version, list) in [(Version::Tls13, self.ciphersuites), (Version::Tls12, self.ciphers)] {
            if !has(version) {
                continue;
            }
            match if list.is_empty() { Suites::All } else { suites(list, version) } {
                Suites::All => chosen.extend(all(version)),
                Suites::Some(some) => {
                    is_chosen = true;
                    chosen.extend(some);
                }
                Suites::None => {
                    return Err(
                        "Weir has none of these suites, only those with ECDHE and AES-GCM or ChaCha20; see tls.suites"
                            .to_owned(),
                    );
                }
            }
        }
        if is_chosen {
            table.texts("suites", chosen.into_iter().map(Suite::name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_openssl() {
        assert_eq!(suites("HIGH:!aNULL:!MD5", Version::Tls12), Suites::All);
        assert_eq!(
            suites("ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256:!RC4", Version::Tls12),
            Suites::Some(vec![Suite::EcdheRsaAes128GcmSha256])
        );
        assert_eq!(suites("AES128-SHA", Version::Tls12), Suites::None);
        // The suite of TLS 1.2 without forward secrecy, not the one of TLS 1.3.
        assert_eq!(suites("AES128-GCM-SHA256", Version::Tls12), Suites::None);
        assert_eq!(
            suites("TLS_AES_128_GCM_SHA256", Version::Tls13),
            Suites::Some(vec![Suite::Aes128GcmSha256])
        );
        assert_eq!(groups("X25519:prime256v1:secp521r1:P-256"), (vec!["x25519", "p256"], vec!["secp521r1"]));
    }
}
