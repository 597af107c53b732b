//! Redirects: their targets, and the redirects of whole listeners.

use super::{Fault, Findings};
use crate::config::document::{self, Bind, Config, Listener, Secured};
use crate::config::snapshot::Redirect;
use crate::route::PathPattern;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Compiles a redirect, with this status or the default one. Fails if the target or the status is invalid.
pub(super) fn redirect(to: &str, status: Option<u16>, key: &str) -> Result<Redirect, Fault> {
    let status = status.unwrap_or(document::Redirect::STATUS);
    if !document::Redirect::STATUSES.contains(&status) {
        let why = format!("invalid value `{status}`: expected 301, 302, 303, 307 or 308");
        return Err(Fault::new(format!("{key}.status"), why));
    }
    let written = to.into();
    let to = to.parse().map_err(|why| Fault::new(format!("{key}.to"), why))?;
    Ok(Redirect { status, to, written })
}

/// The listeners that redirect all requests, by name.
pub(super) fn of_listeners(config: &Config, findings: &mut Findings) -> Vec<(Arc<str>, Redirect)> {
    let redirecting = config.listeners.iter().filter_map(|(name, of)| Some((name, of, of.redirect?)));
    let one = |(name, listener, Secured { port, status, .. }): (&String, &Listener, Secured)| {
        let key = format!("listener.{name}.redirect");
        if has_tls(listener) {
            let why = "this listener has TLS already: expected it on a cleartext listener; remove it here";
            return Err(Fault::new(key, why));
        }
        let port = match port {
            Some(port) => port.get(),
            None => secure_port(config, &key)?,
        };
        let port = if port == HTTPS { String::new() } else { format!(":{port}") };
        Ok((name.as_str().into(), redirect(&format!("https://{{host}}{port}{{target}}"), status, &key)?))
    };
    redirecting.filter_map(|listener| findings.keep(one(listener))).collect()
}

/// Returns the port of the listeners with TLS if they have only one, else 443. Fails if they have several other than
/// 443.
fn secure_port(config: &Config, key: &str) -> Result<u16, Fault> {
    let binds =
        config.listeners.values().filter(|listener| has_tls(listener)).flat_map(|listener| &listener.bind);
    let port = |bind: &Bind| match bind {
        // The kernel replaces port 0 with a free port, and a Unix socket has no port.
        Bind::Tcp { port: 0, .. } | Bind::Unix(_) => None,
        Bind::Tcp { port, .. } => Some(*port),
    };
    let ports: BTreeSet<u16> = binds.filter_map(port).collect();
    match ports.first() {
        Some(only) if ports.len() == 1 => Ok(*only),
        Some(_) if !ports.contains(&HTTPS) => {
            let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
            let why = format!(
                "listeners with TLS have the ports {}: expected one to redirect clients to; write {{ to = \"https\", port = {} }}",
                ports.join(", "),
                ports[0],
            );
            Err(Fault::new(key, why))
        }
        Some(_) | None => Ok(HTTPS),
    }
}

/// Whether clients use HTTP over TLS on this listener.
pub(super) fn has_tls(listener: &Listener) -> bool {
    listener.tcp.is_none() && (listener.tls.is_some() || !listener.passthrough.is_empty())
}

/// Whether all paths of a route are ACME challenges, which a CA requests in cleartext (RFC 8555 section 8.3).
pub(super) fn is_for_challenges(route: &document::Route) -> bool {
    let is_one = |path: &PathPattern| path.is_below(&[b".well-known", b"acme-challenge"]);
    !route.path.is_empty() && route.path.iter().all(is_one)
}

/// Checks that the route names no listener that redirects all requests, since no request from there would reach the
/// route. Routes for ACME challenges are exempt.
pub(super) fn check_listeners(config: &Config, route: &document::Route, key: &str, findings: &mut Findings) {
    if is_for_challenges(route) {
        return;
    }
    for (at, name) in route.listener.iter().enumerate() {
        if config.listeners.get(name).is_some_and(|listener| listener.redirect.is_some()) {
            let why = format!(
                "`{name}` redirects all requests before any route, except for challenges of ACME (path = \
                 \"/.well-known/acme-challenge/*\"): expected another listener; remove the route, or the listener's `redirect`"
            );
            findings.fault(Fault::new(format!("{key}.listener.{at}"), why));
        }
    }
}

const HTTPS: u16 = 443;
