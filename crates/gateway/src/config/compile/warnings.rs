//! Warnings about settings that are valid, but rarely intended.

use crate::config::Network;
use crate::config::document::Config;
use crate::config::finding::Findings;
use std::collections::HashSet;

/// Adds warnings about certificates that no client gets, paths that look like regular expressions, and trusted networks
/// that contain the whole internet.
pub(super) fn warn(config: &Config, findings: &mut Findings) {
    if config.listeners.values().all(|listener| listener.tls.is_none()) {
        for index in 0..config.certificates.len() {
            findings.warn(
                format!("certificate.{index}"),
                "no listener has TLS, so no client gets this certificate",
                "add `tls = {}` to a listener, or remove the certificate",
            );
        }
    }
    of_certificates(config, findings);
    of_paths(config, findings);
    for (name, listener) in &config.listeners {
        for (key, networks, who) in [
            ("trusted_proxies", &listener.trusted_proxies, "proxies"),
            ("proxy_protocol", &listener.proxy_protocol, "load balancers"),
        ] {
            if let Some(family) = Network::internet_in(networks) {
                findings.warn(
                    format!("listener.{name}.{key}"),
                    format!("these networks are the whole {family} internet, so any client can choose its own address"),
                    format!("name the networks of your {who} alone"),
                );
            }
        }
    }
}

/// Warns about certificates that no listener with TLS presents, if all those listeners name theirs.
fn of_certificates(config: &Config, findings: &mut Findings) {
    let with_tls = || config.listeners.values().filter(|listener| listener.tls.is_some());
    let lists: Option<Vec<_>> = with_tls().map(|listener| listener.certificates.as_ref()).collect();
    let Some(lists) = lists.filter(|lists| !lists.is_empty()) else { return };
    let presented: HashSet<&String> = lists.into_iter().flatten().collect();
    for (index, certificate) in config.certificates.iter().enumerate() {
        if !certificate.name.as_ref().is_some_and(|name| presented.contains(name)) {
            findings.warn(
                format!("certificate.{index}"),
                "it is in `certificates` of no listener with TLS, so no client gets this certificate",
                "add its name there, or remove the certificate",
            );
        }
    }
}

/// Warns about paths that look like regular expressions, but are literal.
fn of_paths(config: &Config, findings: &mut Findings) {
    for (route, written) in config.routes.iter().enumerate() {
        for (at, path) in written.path.iter().map(ToString::to_string).enumerate() {
            let (meaning, meant) = match (path.strip_suffix(".*"), path.strip_suffix('$')) {
                (Some(before), _) if before.ends_with('/') => {
                    (format!("all paths that begin with `{before}.`"), format!("{before}*"))
                }
                (_, Some(before)) => {
                    (format!("a path that ends with `$`, as in `{path}`"), before.to_owned())
                }
                (_, _) => continue,
            };
            findings.warn(
                format!("route.{route}.path.{at}"),
                format!("`{path}` is no regular expression: it stands for {meaning}"),
                format!("write `{meant}` if that is meant"),
            );
        }
    }
}
