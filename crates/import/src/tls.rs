//! OpenSSL's names of suites, groups and versions, in Weir's spelling.

use crate::model::Table;

/// OpenSSL's name and Weir's; TLS 1.3 suites last.
const SUITES: [(&str, &str); 9] = [
    ("ECDHE-ECDSA-AES128-GCM-SHA256", "ecdhe-ecdsa-aes128-gcm-sha256"),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", "ecdhe-ecdsa-aes256-gcm-sha384"),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", "ecdhe-ecdsa-chacha20-poly1305"),
    ("ECDHE-RSA-AES128-GCM-SHA256", "ecdhe-rsa-aes128-gcm-sha256"),
    ("ECDHE-RSA-AES256-GCM-SHA384", "ecdhe-rsa-aes256-gcm-sha384"),
    ("ECDHE-RSA-CHACHA20-POLY1305", "ecdhe-rsa-chacha20-poly1305"),
    ("TLS_AES_128_GCM_SHA256", "aes128-gcm-sha256"),
    ("TLS_AES_256_GCM_SHA384", "aes256-gcm-sha384"),
    ("TLS_CHACHA20_POLY1305_SHA256", "chacha20-poly1305-sha256"),
];

/// The number of TLS 1.2 suites in [`SUITES`].
const OLD: usize = 6;

/// The suites that a list selects.
#[derive(Debug, PartialEq, Eq)]
enum Suites {
    /// All suites of Weir, listed or by a keyword such as `HIGH`.
    All,
    /// These suites of Weir.
    Some(Vec<&'static str>),
    /// No suite of Weir.
    None,
}

/// Parses an OpenSSL list for TLS 1.2 (`is_old`) or 1.3.
fn suites(list: &str, is_old: bool) -> Suites {
    let known = if is_old { &SUITES[..OLD] } else { &SUITES[OLD..] };
    let words: Vec<_> = list.split([':', ',', ' ']).filter(|word| !word.is_empty()).collect();
    let is_plain = |word: &&str| word.starts_with("TLS_") || word.contains('-');
    let named: Vec<_> = words.iter().filter(|word| !word.starts_with(['!', '-', '@', '+'])).collect();
    let keyword = |word: &&&str| is_old && !is_plain(word);
    if named.iter().any(keyword) {
        return Suites::All;
    }
    let found: Vec<_> = named
        .iter()
        .filter_map(|word| known.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)))
        .map(|(_, name)| *name)
        .collect();
    match found.len() {
        0 => Suites::None,
        count if count >= known.len() => Suites::All,
        _ => Suites::Some(found),
    }
}

/// All of Weir's suites for TLS 1.2 (`is_old`) or 1.3.
fn all(is_old: bool) -> Vec<&'static str> {
    let known = if is_old { &SUITES[..OLD] } else { &SUITES[OLD..] };
    known.iter().map(|(_, name)| *name).collect()
}

/// Parses an OpenSSL list of groups; also returns the groups that Weir does not support.
pub(crate) fn groups(list: &str) -> (Vec<&'static str>, Vec<&str>) {
    const GROUPS: [(&str, &str); 9] = [
        ("x25519", "x25519"),
        ("prime256v1", "p256"),
        ("secp256r1", "p256"),
        ("p-256", "p256"),
        ("secp384r1", "p384"),
        ("p-384", "p384"),
        ("x25519mlkem768", "x25519mlkem768"),
        ("p256", "p256"),
        ("p384", "p384"),
    ];
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for word in
        list.split(':').map(|word| word.trim_start_matches(['?', '*'])).filter(|word| !word.is_empty())
    {
        match GROUPS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
            Some((_, group)) if !found.contains(group) => found.push(group),
            Some(_) => {}
            None => unknown.push(word),
        }
    }
    (found, unknown)
}

/// `1.2` for `TLSv1.2`, `1.3` for `TLSv1.3`.
pub(crate) fn version(name: &str) -> Option<&'static str> {
    match name {
        "TLSv1.2" => Some("1.2"),
        "TLSv1.3" => Some("1.3"),
        _ => None,
    }
}

/// A configuration's versions and suites; empty: not configured.
#[derive(Debug, Default)]
pub(crate) struct Offer<'a> {
    /// In Weir's spelling.
    pub versions: Vec<&'static str>,
    /// OpenSSL's list for TLS 1.2.
    pub ciphers: &'a str,
    /// OpenSSL's list for TLS 1.3.
    pub ciphersuites: &'a str,
}

impl Offer<'_> {
    /// Writes `versions` and `suites`. Errors: Weir supports none of the suites.
    pub(crate) fn write(&self, table: &mut Table) -> Result<(), String> {
        let has = |version: &str| self.versions.is_empty() || self.versions.contains(&version);
        if has("1.2") != has("1.3") {
            table.texts("versions", self.versions.iter().copied());
        }
        let (mut chosen, mut is_chosen) = (Vec::new(), false);
        for (version, list, is_old) in [("1.3", self.ciphersuites, false), ("1.2", self.ciphers, true)] {
            if !has(version) {
                continue;
            }
            match if list.is_empty() { Suites::All } else { suites(list, is_old) } {
                Suites::All => chosen.extend(all(is_old)),
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
            table.texts("suites", chosen);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_openssl() {
        assert_eq!(suites("HIGH:!aNULL:!MD5", true), Suites::All);
        assert_eq!(
            suites("ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256:!RC4", true),
            Suites::Some(vec!["ecdhe-rsa-aes128-gcm-sha256"])
        );
        assert_eq!(suites("AES128-SHA", true), Suites::None);
        assert_eq!(suites("TLS_AES_128_GCM_SHA256", false), Suites::Some(vec!["aes128-gcm-sha256"]));
        assert_eq!(groups("X25519:prime256v1:secp521r1:P-256"), (vec!["x25519", "p256"], vec!["secp521r1"]));
    }
}
