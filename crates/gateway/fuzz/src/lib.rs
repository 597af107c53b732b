//! What must hold for any bytes. The fuzz target calls this, and so do the crate's tests, with the committed corpus and with
//! parts of it.

use std::net::IpAddr;
use weir_gateway::document::{Bind, ServiceTls};
use weir_gateway::{Checked, Config};
use weir_toml::ConfigError;
use weir_transport::Place;

/// A configuration: it is taken, or refused in words with a line that it has; and it means the same each time. Only one that
/// needs no file and no name server is checked as a whole. Whether it was taken.
pub fn configuration(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let config: Config = match toml::from_str(text) {
        Ok(config) => config,
        Err(error) => {
            is_told(&ConfigError::toml_at_key("weir.toml", text, &error), text);
            return false;
        }
    };
    assert!(toml::from_str::<Config>(text).is_ok_and(|again| again == config));
    if !is_alone(&config) {
        return true;
    }
    match Checked::new(config.clone()) {
        Ok(_) => true,
        Err(findings) => {
            assert!(findings.faults().next().is_some());
            assert!(findings.iter().all(|finding| !finding.key.is_empty() && !finding.message.is_empty()));
            assert_eq!(Checked::new(config).err(), Some(findings));
            false
        }
    }
}

fn is_told(error: &ConfigError, text: &str) {
    assert!(!error.message.is_empty());
    let lines = text.split('\n').count();
    assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "line {:?} of {lines}", error.line);
}

/// Whether nothing but the text says what it means.
fn is_alone(config: &Config) -> bool {
    let is_address = |host: &str| host.parse::<IpAddr>().is_ok();
    let mut servers = config.services.values().flat_map(|service| &service.servers);
    let mut binds = config.listeners.values().flat_map(|listener| &listener.bind);
    config.certificates.is_empty()
        && config.error_pages.is_empty()
        && config.listeners.values().all(|listener| listener.tls.is_none())
        && config.services.values().all(|service| service.tls == ServiceTls::default())
        && servers.all(|server| match &server.url {
            Place::Url(endpoint) => !endpoint.tls && is_address(&endpoint.host),
            Place::Unix(_) => true,
        })
        && binds.all(|bind| match bind {
            Bind::Tcp { host, .. } => is_address(host),
            Bind::Unix(_) => true,
        })
}
