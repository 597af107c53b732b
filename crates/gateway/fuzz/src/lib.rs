//! Invariants for any input. The fuzz target calls [`configuration`], and so do the crate's tests, with the committed
//! corpus, whole and cut off.

use std::ffi::OsString;
use std::net::IpAddr;
use weir_gateway::document::{Bind, ServiceTls};
use weir_gateway::{Checked, Config, Findings, parse};
use weir_transport::Place;

/// The line between a configuration file and one that it includes.
const INCLUDED: &str = "# included\n";

/// Checks a configuration: parsing it twice gives the same result, and each finding has a message and a line of its
/// file. Compiles the configuration only if that needs neither files nor name resolution. Returns whether it is valid.
pub fn configuration(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let files: Vec<_> = ["weir.toml", "conf.d/more.toml"].into_iter().zip(text.splitn(2, INCLUDED)).collect();
    let config = match parse(&files, &variable) {
        Ok(config) => config,
        Err(findings) => {
            are_told(&findings, &files);
            assert_eq!(parse(&files, &variable), Err(findings));
            return false;
        }
    };
    assert_eq!(parse(&files, &variable).as_ref(), Ok(&config));
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

/// An environment with a plain value, a value that contains TOML, an empty value, and a value that is not UTF-8.
fn variable(name: &str) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt as _;
    match name {
        "HOST" => Some("127.0.0.1".into()),
        "TOML" => Some("\"\nworkers = 0 # ${HOST}".into()),
        "EMPTY" => Some(OsString::new()),
        "BYTES" => Some(OsString::from_vec(vec![0xff])),
        _ => None,
    }
}

/// Checks that each finding has a message, and a line that exists in its file.
fn are_told(findings: &Findings, files: &[(&str, &str)]) {
    assert!(findings.faults().next().is_some());
    for finding in findings.iter() {
        assert!(!finding.message.is_empty());
        let location = finding.location.as_ref().expect("a place");
        let (_, text) = files.iter().find(|(name, _)| *name == location.file).expect("a file of these");
        let lines = text.split('\n').count();
        assert!(
            location.line.is_some_and(|line| (1..=lines).contains(&line)),
            "{finding:?} of {lines} lines"
        );
    }
}

/// Whether the configuration can be compiled without reading files and resolving names.
fn is_alone(config: &Config) -> bool {
    let is_address = |host: &str| host.parse::<IpAddr>().is_ok();
    let mut servers = config.services.values().flat_map(|service| &service.servers);
    let mut binds = config.listeners.values().flat_map(|listener| &listener.bind);
    config.certificates.is_empty()
        && config.error_pages.is_empty()
        && config.listeners.values().all(|listener| listener.tls.is_none())
        && config.services.values().all(|service| service.tls == ServiceTls::default())
        && servers.all(|server| match &server.url {
            Place::Url(endpoint) | Place::Stream(endpoint) => !endpoint.tls && is_address(&endpoint.host),
            Place::Unix(_) => true,
        })
        && binds.all(|bind| match bind {
            Bind::Tcp { host, .. } => is_address(host),
            Bind::Unix(_) => true,
        })
}
