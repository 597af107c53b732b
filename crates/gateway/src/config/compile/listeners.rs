//! Compilation of listeners, with their passthrough names and TLS state.

use super::certificates::Certificates;
use super::routes::{HOST, host_name};
use super::services::ServicePlaces;
use super::{
    Fault, Findings, beside, check_name, key_of_file, limits, record_size, size, tcp, usable_curves, validity,
};
use crate::config::document::{
    self, Bind, ClientCertificates, Config, ExpiredLists, ListenerTls, SuiteOrder,
};
use crate::config::snapshot::{Listener, ListenerId, Passthrough, Role};
use std::net::IpAddr;
use std::sync::Arc;
use weir_tls::{Certificate, ClientAuth, Offer, Server, ServerSettings};
use weir_transport::{Endpoint, Place};

pub(super) fn compile(
    config: &Config,
    services: &ServicePlaces<'_>,
    certificates: &Certificates<'_>,
    findings: &mut Findings,
) -> Vec<Listener> {
    if config.listeners.is_empty() {
        findings.fault(Fault::new(
            "listener",
            "missing: expected at least one, such as [listener.web] with bind = \"0.0.0.0:80\"",
        ));
    }
    let mut listeners = Vec::new();
    for (name, listener) in &config.listeners {
        let key = format!("listener.{name}");
        findings.keep(check_name(&key, name));
        check(listener, &key, findings);
        beside::of_listener(listener, &key, findings);
        let mut presented = Vec::new();
        let tls = match &listener.tls {
            Some(tls) => {
                presented = findings.keep(certificates.of(listener, &key)).unwrap_or_default();
                let own = certificates.at(&presented).filter(|own| !own.is_empty());
                let server = server(config, own, alpn(listener), tls, &format!("{key}.tls"));
                findings.keep(server).flatten()
            }
            None => None,
        };
        let presented: Arc<[usize]> = presented.into();
        if let Some(server) = &tls {
            validity::warn_of_lists(server, &format!("{key}.tls.client_crl"), findings);
        }
        let limits = limits::compile(&config.limits, &listener.limits, &format!("{key}.limits"));
        let limits = findings.keep(limits);
        let passthrough = Arc::new(passthrough(config, services, listener, &key, findings));
        let tcp = listener.tcp.as_ref();
        let tcp =
            tcp.and_then(|tcp| findings.keep(tcp::compile(config, services, tcp, &format!("{key}.tcp"))));
        let Some(limits) = limits else { continue };
        for (index, bind) in listener.bind.iter().enumerate() {
            let key = format!("{key}.bind.{index}");
            let place = match bind {
                Bind::Tcp { host, port } => {
                    let tls = tls.is_some() || !passthrough.is_empty();
                    let endpoint = Endpoint { tls, host: host.clone(), port: *port };
                    if tcp.is_some() { Place::Stream(endpoint) } else { Place::Url(endpoint) }
                }
                Bind::Unix(path) => Place::Unix(path.clone()),
            };
            listeners.push(Listener {
                id: ListenerId(listeners.len() as u32),
                name: name.as_str().into(),
                key,
                place,
                mode: listener.mode.unwrap_or_default().0,
                role: Role::Gateway,
                trusted: listener.trusted_proxies.as_slice().into(),
                proxy_field: listener.proxy_field.unwrap_or_default(),
                announced_by: listener.proxy_protocol.as_slice().into(),
                allow: listener.allow.as_slice().into(),
                deny: listener.deny.as_slice().into(),
                half_close: listener.half_close,
                underscores: listener.underscores_in_headers,
                http2: listener.http2,
                http2_priorities: listener.http2_priorities,
                accept: listener.accept.iter().map(|rule| rule.0).collect(),
                limits,
                passthrough: Arc::clone(&passthrough),
                tcp,
                certificates: Arc::clone(&presented),
                tls: tls.clone(),
            });
        }
    }
    let loaded = certificates.loaded.as_deref().unwrap_or_default();
    validity::warn_of_certificates(loaded, findings);
    validity::warn_of_responses(loaded, findings);
    listeners
}

fn check(listener: &document::Listener, key: &str, findings: &mut Findings) {
    if listener.bind.is_empty() {
        findings.fault(Fault::new(format!("{key}.bind"), "empty: expected at least one address"));
    }
    if listener.mode.is_some() && !listener.bind.iter().any(|bind| matches!(bind, Bind::Unix(_))) {
        findings.fault(Fault::new(format!("{key}.mode"), "no Unix socket in `bind` has permissions"));
    }
    if listener.proxy_field.is_some() && listener.trusted_proxies.is_empty() {
        findings.fault(Fault::new(format!("{key}.proxy_field"), "needs `trusted_proxies`"));
    }
    if listener.tls.as_ref().is_some_and(|tls| tls.key_log.is_some()) {
        findings.warn(
            format!("{key}.tls.key_log"),
            "the secrets of all sessions are written to a file; a reader of the file can decrypt the traffic",
            "remove it when you are done debugging",
        );
    }
}

fn passthrough(
    config: &Config,
    services: &ServicePlaces<'_>,
    listener: &document::Listener,
    key: &str,
    findings: &mut Findings,
) -> Passthrough {
    let mut compiled = Passthrough::default();
    for (index, written) in listener.passthrough.iter().enumerate() {
        let key = format!("{key}.passthrough.{index}");
        let service = findings.keep(services.of(&written.service, &format!("{key}.service")));
        let servers = config.services.get(&written.service).map(|service| &service.servers[..]);
        if servers.and_then(<[_]>::first).is_some_and(|server| server.url.tls()) {
            let why = format!(
                "the servers of `{}` have TLS, and get that of the client already: expected http or tcp",
                written.service
            );
            findings.fault(Fault::new(format!("{key}.service"), why));
        }
        for (at, name) in written.name.iter().enumerate() {
            let host = match name.as_str() {
                "*" => Some(None),
                name => findings.keep(passed_name(name, &format!("{key}.name.{at}"))).map(Some),
            };
            if let Some((host, service)) = host.zip(service) {
                compiled.insert(host.as_deref(), service);
            }
        }
        if written.name.is_empty() {
            findings.fault(Fault::new(format!("{key}.name"), "empty: expected at least one name"));
        }
    }
    compiled
}

/// Normalises a name to compare with a client's SNI. Fails if SNI cannot contain it.
fn passed_name(name: &str, key: &str) -> Result<String, Fault> {
    if name.starts_with('[') || name.parse::<IpAddr>().is_ok() {
        let why = format!(
            "invalid name `{name}`: no client asks for an address (RFC 6066 section 3): expected a name, or `*`"
        );
        return Err(Fault::new(key, why));
    }
    host_name(name).ok_or_else(|| Fault::new(key, format!("invalid name `{name}`: {HOST}, or `*`")))
}

/// The protocols that a listener with TLS offers to its clients by ALPN.
fn alpn(listener: &document::Listener) -> Vec<Vec<u8>> {
    if listener.tcp.is_some() {
        return Vec::new();
    }
    let http2 = listener.http2.then_some(HTTP_2);
    http2.into_iter().chain([HTTP_1_1, HTTP_1_0]).map(<[u8]>::to_vec).collect()
}

/// The TLS state of a listener. `certificates` is `None` if a certificate is at fault: the function then only checks
/// the settings, and returns `Ok(None)` if they are valid.
fn server(
    config: &Config,
    certificates: Option<Vec<Certificate>>,
    alpn: Vec<Vec<u8>>,
    tls: &ListenerTls,
    key: &str,
) -> Result<Option<Server>, Fault> {
    if config.certificates.is_empty() {
        let expected = "a listener with TLS needs a certificate: expected [[certificate]] with chain and key";
        return Err(Fault::new(key, expected));
    }
    if let Some(tickets) = tls.tickets {
        size(format!("{key}.tickets"), tickets.into(), ListenerTls::TICKETS)?;
    }
    let curves = usable_curves(tls.curves, key)?;
    let Offer { versions, suites, groups } =
        Offer { versions: tls.versions.clone(), suites: tls.suites.clone(), groups: tls.groups.clone() }
            .complete();
    if let Some(sessions) = tls.sessions {
        size(format!("{key}.sessions"), sessions as u64, ListenerTls::SESSIONS)?;
    }
    if tls.client_crl_expired.is_some() && tls.client_crl.is_empty() {
        return Err(Fault::new(format!("{key}.client_crl_expired"), "needs `client_crl`"));
    }
    let client_auth = match (&tls.client_ca, tls.client_certificates) {
        (Some(roots), required) => Some(ClientAuth {
            roots: roots.clone(),
            crls: tls.client_crl.clone(),
            expired_crls: tls.client_crl_expired == Some(ExpiredLists::Use),
            required: required.unwrap_or_default() == ClientCertificates::Required,
        }),
        (None, None) if tls.client_crl.is_empty() => None,
        (None, _) => return Err(Fault::new(key, "`client_certificates` and `client_crl` need `client_ca`")),
    };
    let defaults = ServerSettings::default();
    let settings = ServerSettings {
        versions,
        suites,
        clients_order: tls.suite_order == SuiteOrder::Client,
        groups,
        curves,
        alpn,
        tickets: tls.tickets.unwrap_or(defaults.tickets),
        ticket_lifetime: tls.ticket_lifetime.unwrap_or(defaults.ticket_lifetime),
        ticket_secrets: tls.ticket_secrets.clone(),
        sessions: tls.sessions.unwrap_or(defaults.sessions),
        strict_names: tls.strict_names,
        client_auth,
        record_size: record_size(key, tls.record_size, defaults.record_size)?,
        key_log: tls.key_log.clone(),
        ..defaults
    };
    let Some(certificates) = certificates else { return Ok(None) };
    Server::with_certificates(&settings, certificates).map(Some).map_err(|error| {
        let error = error.to_string();
        let certificates = config.certificates.iter().enumerate().flat_map(|(index, certificate)| {
            [(format!("certificate.{index}.chain"), Some(&certificate.chain))]
        });
        let crls = tls.client_crl.iter().enumerate();
        let own = crls.map(|(index, file)| (format!("{key}.client_crl.{index}"), Some(file)));
        let own = own.chain([
            (format!("{key}.client_ca"), tls.client_ca.as_ref()),
            (format!("{key}.ticket_secrets"), tls.ticket_secrets.as_ref()),
            (format!("{key}.key_log"), tls.key_log.as_ref()),
        ]);
        Fault::new(key_of_file(certificates.chain(own), &error).unwrap_or_else(|| key.to_owned()), error)
    })
}

/// The ALPN protocol of HTTP/2 over TLS (RFC 9113 section 3.2).
pub(super) const HTTP_2: &[u8] = b"h2";
/// The ALPN protocol of HTTP/1.1 (RFC 7301 section 6).
pub(super) const HTTP_1_1: &[u8] = b"http/1.1";
/// The ALPN protocol of HTTP/1.0. Some clients offer only this protocol.
const HTTP_1_0: &[u8] = b"http/1.0";
