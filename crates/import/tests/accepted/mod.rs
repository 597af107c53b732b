//! The gateway's own check of a configuration.

use std::sync::OnceLock;
use weir_gateway::Checked;
use weir_gateway::document::{Certificate, Config, ListenerTls};
use weir_tls::issue::{Authority, Files, KeyKind};

/// Checks a configuration by the gateway's rules, with one worker, existing files and servers that need no resolver.
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
    let files = files();
    if config.certificates.is_empty() {
        let Files { certificates: chain, key, .. } = files.clone();
        config.certificates.push(Certificate { name: None, chain, key, ocsp: None });
    }
    for certificate in &mut config.certificates {
        (certificate.chain, certificate.key, certificate.ocsp) =
            (files.certificates.clone(), files.key.clone(), None);
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

/// One certificate for all tests: issuing one takes longer than a check.
fn files() -> &'static Files {
    static FILES: OnceLock<(tempfile::TempDir, Files)> = OnceLock::new();
    let (_, files) = FILES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let issued = Authority::new().unwrap().issue(&["localhost"], KeyKind::EcdsaP256).unwrap();
        let files = issued.write_to(folder.path()).unwrap();
        (folder, files)
    });
    files
}
