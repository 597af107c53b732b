//! Checks an imported configuration as the gateway does.

use std::sync::{Mutex, OnceLock, PoisonError};
use weir_gateway::Checked;
use weir_gateway::document::{Certificate, Config, ListenerTls};
use weir_tls::issue::{Authority, Files, KeyKind};

/// Checks a configuration by the gateway's rules, with one worker, existing files, a name for each certificate, and
/// servers that need no resolver.
///
/// # Panics
/// If the gateway rejects it.
pub(crate) fn check(toml: &str) {
    names_no_variable(&toml.parse().unwrap_or_else(|error| panic!("{error}\n{toml}")));
    let mut config: Config = toml::from_str(toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    if config.listeners.is_empty() {
        // The importer has reported that there is nothing to serve.
        return;
    }
    let files = files(0);
    if config.certificates.is_empty() {
        let Files { certificates: chain, key, .. } = files.clone();
        config.certificates.push(Certificate { name: None, chain, key, ocsp: None });
    }
    for (index, certificate) in config.certificates.iter_mut().enumerate() {
        let files = self::files(index);
        (certificate.chain, certificate.key, certificate.ocsp) = (files.certificates, files.key, None);
    }
    for listener in config.listeners.values_mut() {
        if let Some(ListenerTls { client_ca, client_crl, .. }) = &mut listener.tls {
            *client_ca = client_ca.take().map(|_| files.ca.clone());
            client_crl.clear();
        }
    }
    for service in config.services.values_mut() {
        let tls = &mut service.tls;
        tls.ca = tls.ca.take().map(|_| files.ca.clone());
        tls.certificate = tls.certificate.take().map(|_| files.certificates.clone());
        tls.key = tls.key.take().map(|_| files.key.clone());
        for server in &mut service.servers {
            let url = server.url.to_string();
            if let Some((scheme, _)) = url.split_once("://") {
                server.url = format!("{scheme}://127.0.0.1:1").parse().unwrap();
            }
        }
    }
    for page in config.error_pages.values_mut() {
        page.clone_from(&files.certificates);
    }
    config.workers = Some(1);
    if let Err(fault) = Checked::new(config) {
        panic!("{fault}\n{toml}");
    }
}

/// Values escape `${` as `$${`; otherwise the gateway would read an environment variable.
fn names_no_variable(value: &toml::Table) {
    let mut pending: Vec<_> = value.values().collect();
    while let Some(value) = pending.pop() {
        match value {
            toml::Value::String(text) => assert!(!text.replace("$${", " ").contains("${"), "{text}"),
            toml::Value::Array(items) => pending.extend(items),
            toml::Value::Table(table) => pending.extend(table.values()),
            _ => {}
        }
    }
}

/// The files of the certificate with this number and a unique name. All tests share them, since issuing a certificate
/// takes longer than a check.
fn files(number: usize) -> Files {
    static ISSUED: OnceLock<Mutex<(tempfile::TempDir, Vec<Files>)>> = OnceLock::new();
    // A static is never dropped, so its folder stays: in the target directory, not the system's.
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let issued = ISSUED.get_or_init(|| Mutex::new((folder(), Vec::new())));
    let (folder, known) = &mut *issued.lock().unwrap_or_else(PoisonError::into_inner);
    while known.len() <= number {
        let name = format!("n{}.test", known.len());
        let own = folder.path().join(&name);
        std::fs::create_dir(&own).unwrap();
        let issued = Authority::new().unwrap().issue(&[&name], KeyKind::EcdsaP256).unwrap();
        known.push(issued.write_to(&own).unwrap());
    }
    known[number].clone()
}
