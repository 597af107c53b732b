//! The TLS client of a run, from its options.

use crate::options::{HttpVersion, HttpVersions, Options};
use weir_tls::{Client, ClientSettings, Group, Identity, PeerName, Roots, SettingsError, Suite, Version};

/// The client of one version's connections, and the server name to verify; `None` in cleartext.
pub(crate) fn client(
    options: &Options,
    version: HttpVersion,
) -> Result<Option<(Client, PeerName)>, SettingsError> {
    if !options.endpoint.tls {
        return Ok(None);
    }
    let name = options.tls.sni.as_deref().filter(|name| *name != NO_SNI);
    let host = name.unwrap_or(&options.endpoint.host);
    let name = host.parse().map_err(SettingsError::UnknownName)?;
    Ok(Some((Client::new(&settings(options, version))?, name)))
}

/// The value of `--sni` that sends no SNI.
const NO_SNI: &str = "none";

/// The parameters offered: lists not given default to everything compatible with those given.
pub(crate) fn settings(options: &Options, version: HttpVersion) -> ClientSettings {
    let tls = &options.tls;
    let share = options.connections.div_ceil(options.workers.max(1) as u32) as usize;
    let mut settings = ClientSettings {
        resumption: options.policy.resume > 0.0,
        // As many as a worker primes, and those that arrive before others are used.
        sessions_per_name: (2 * share).max(64),
        signatures: tls.signatures.clone(),
        alpn: alpn(options, version).into_iter().map(String::into_bytes).collect(),
        key_log: tls.key_log.clone(),
        sni: tls.sni.as_deref() != Some(NO_SNI),
        tickets: !tls.ids_only,
        identity: tls.cert.as_ref().zip(tls.key.as_ref()).map(|(chain, key)| Identity::files(chain, key)),
        groups: Group::CLASSICAL.to_vec(),
        ..ClientSettings::default()
    };
    settings.roots = match (&tls.ca, tls.insecure) {
        (_, true) => Roots::DangerouslyNone,
        (Some(file), false) => Roots::File(file.clone()),
        (None, false) => Roots::Native,
    };
    if let Some(versions) = &tls.versions {
        settings.versions.clone_from(versions);
    } else if !tls.suites.is_empty() {
        settings.versions = versions_of(&tls.suites);
    }
    settings.suites.retain(|suite| settings.versions.contains(&suite.version()));
    settings.groups.retain(|group| settings.versions.iter().any(|version| group.fits(*version)));
    if !tls.suites.is_empty() {
        settings.suites = tls.suites.clone();
    }
    if !tls.groups.is_empty() {
        settings.groups = tls.groups.clone();
    }
    settings
}

/// The application protocols that connections with this version offer. HTTP/2 over TLS needs ALPN (RFC 9113, section
/// 3.2); of servers with both versions, HTTP/1.1 beside it is asked for by name.
pub(crate) fn alpn(options: &Options, version: HttpVersion) -> Vec<String> {
    match options.http {
        HttpVersions::One(HttpVersion::Http1) => options.tls.alpn.clone(),
        HttpVersions::One(HttpVersion::Http2) | HttpVersions::Both(_) => vec![version.alpn().to_string()],
    }
}

fn versions_of(suites: &[Suite]) -> Vec<Version> {
    Version::ALL
        .into_iter()
        .filter(|version| suites.iter().any(|suite| suite.version() == *version))
        .collect()
}
