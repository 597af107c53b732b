//! Compilation of services and their servers, with the name that a server's certificate must have.

use super::listeners::{HTTP_1_1, HTTP_2};
use super::server_addresses::Finder;
use super::{
    Fault, Findings, beside, check_name, key_of_file, limits, listed, record_size, size, sticky, tcp,
    usable_curves,
};
use crate::config::document::{
    self, Balance, Config, Eject, HashOn, Health, Pool, ProxyProtocol, ServiceTls,
};
use crate::config::endpoints::ServersFrom;
use crate::config::snapshot::{Names, Server, Service, UpstreamTls};
use crate::hash::hash_of;
use std::collections::HashMap;
use std::sync::Arc;
use weir_preface::proxy;
use weir_tls::{Client, ClientSettings, Identity, Offer, PeerName, Roots};
use weir_transport::{Endpoint, Place};

/// The index of each service in the snapshot, by name.
pub(super) struct ServicePlaces<'a> {
    config: &'a Config,
    places: HashMap<&'a str, usize>,
}

impl<'a> ServicePlaces<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, places: config.services.keys().map(String::as_str).zip(0..).collect() }
    }

    /// Returns the index of the service `name`. Fails if there is no such service; `key` is the key that names it.
    pub(super) fn of(&self, name: &str, key: &str) -> Result<usize, Fault> {
        self.places.get(name).copied().ok_or_else(|| {
            let known = listed(self.config.services.keys());
            Fault::new(key, format!("unknown service `{name}`: expected one of {known}"))
        })
    }

    /// As [`Self::of`], for a service that gets HTTP requests. Also fails if its servers do not speak HTTP.
    pub(super) fn for_requests(&self, name: &str, key: &str) -> Result<usize, Fault> {
        let place = self.of(name, key)?;
        if self.config.services.get(name).is_some_and(tcp::is_for_streams) {
            let why = format!(
                "the servers of `{name}` do not speak HTTP: expected http, https or unix; a listener with `tcp` has no routes"
            );
            return Err(Fault::new(key, why));
        }
        Ok(place)
    }
}

/// Compiles all services, and resolves the names of their servers. Returns `None` if the DNS settings are at fault.
pub(super) fn compile(config: &Config, findings: &mut Findings) -> Option<(Vec<Service>, Names)> {
    let finder = findings.keep(Finder::new(config));
    let one = |(name, service): (&String, &document::Service)| {
        compile_one(name, service, &config.limits, finder.as_ref(), findings)
    };
    let services = config.services.iter().filter_map(one).collect();
    Some((services, finder?.finish()))
}

fn compile_one(
    name: &str,
    service: &document::Service,
    general: &document::Limits,
    finder: Option<&Finder>,
    findings: &mut Findings,
) -> Option<Service> {
    let key = format!("service.{name}");
    findings.keep(check_name(&key, name));
    let Some(first) = service.servers.first() else {
        findings.fault(Fault::new(format!("{key}.servers"), "empty: expected at least one URL"));
        return None;
    };
    let first = &first.url;
    check(service, &key, findings);
    beside::of_service(service, &key, findings);
    let tls = match first.tls() {
        true => {
            warn_insecure(service, &key, findings);
            let client = findings.keep(client(&service.tls, alpn(service), &format!("{key}.tls")));
            client.map(|client| Arc::new(UpstreamTls { client }))
        }
        false => None,
    };
    if !first.tls() && service.tls.is_set() {
        let why = format!("{first} is not https or tls, so there is no certificate to verify");
        findings.fault(Fault::new(format!("{key}.tls"), why));
    }
    let limits = findings.keep(limits::compile(general, &service.limits, &format!("{key}.limits")));
    let servers = servers(&service.servers, first, service, finder, &format!("{key}.servers"), findings);
    Some(Service {
        name: name.to_owned(),
        servers,
        balance: service.balance,
        hash: service.hash.clone().unwrap_or(HashOn::Client),
        // [`super::sticky`] sets the cookie later, since its secret may be a listener's ticket secret.
        sticky: None,
        eject: service.eject,
        health: service.health.clone(),
        max_waiting: service.max_waiting.unwrap_or(document::Service::MAX_WAITING),
        retry_percent: service.retry_percent,
        accept: service.accept.iter().map(|rule| rule.0).collect(),
        limits: limits?,
        tls,
        servers_from: ServersFrom::File,
    })
}

/// The servers of the list at `key`, except those at fault. All servers must have the scheme of `first`.
pub(super) fn servers(
    list: &[document::Server],
    first: &Place,
    service: &document::Service,
    finder: Option<&Finder>,
    key: &str,
    findings: &mut Findings,
) -> Vec<Server> {
    let is_unix = |place: &Place| matches!(place, Place::Unix(_));
    let first = list
        .iter()
        .map(|server| &server.url)
        .find(|place| is_unix(first) && !is_unix(place))
        .unwrap_or(first);
    let mut servers = Vec::with_capacity(list.len());
    for (index, written) in list.iter().enumerate() {
        let (key, place) = (format!("{key}.{index}"), &written.url);
        findings.keep(size(format!("{key}.weight"), written.weight.into(), document::Server::WEIGHT));
        if !has_scheme_of(first, place) {
            let why = format!("`{place}`: expected the scheme of the first server, {first}");
            findings.fault(Fault::new(key, why));
        } else if let Some(finder) = finder {
            servers.extend(findings.keep(server(written, service, finder, &key)));
        }
    }
    servers
}

/// Whether a server has the protocol of `first`; a Unix socket fits any cleartext protocol.
fn has_scheme_of(first: &Place, place: &Place) -> bool {
    let is_other =
        matches!((first, place), (Place::Url(_), Place::Stream(_)) | (Place::Stream(_), Place::Url(_)));
    place.tls() == first.tls() && !is_other
}

fn warn_insecure(service: &document::Service, key: &str, findings: &mut Findings) {
    if !service.tls.insecure {
        return;
    }
    let servers: Vec<_> = service.servers.iter().map(|server| server.url.to_string()).collect();
    let servers = servers.join(", ");
    findings.warn(
        format!("{key}.tls.insecure"),
        format!(
            "the certificate of {servers} is not verified; a man in the middle can read and change everything"
        ),
        "name their CA with `ca`",
    );
}

fn check(service: &document::Service, key: &str, findings: &mut Findings) {
    if service.hash.is_some() && service.balance != Balance::Hash {
        findings.fault(Fault::new(format!("{key}.hash"), "needs `balance = \"hash\"`"));
    }
    if let Some(most) = service.max_connections {
        findings.keep(size(format!("{key}.max_connections"), most as u64, document::Service::CONNECTIONS));
    }
    let percent = u64::from(service.retry_percent);
    findings.keep(size(format!("{key}.retry_percent"), percent, document::Service::RETRY_PERCENT));
    findings.keep(size(format!("{key}.pool.max_streams"), service.pool.max_streams().into(), Pool::STREAMS));
    if service.http2 && service.proxy_protocol.is_some() {
        let why =
            "conflicts with `proxy_protocol`: its header is about one client, and clients share a connection";
        findings.fault(Fault::new(format!("{key}.http2"), why));
    }
    findings.keep(check_eject(&service.eject, &format!("{key}.eject")));
    if let Some(health) = &service.health {
        findings.keep(check_health(health, service.http2, &format!("{key}.health")));
    }
    if let Some(name) = &service.sticky {
        findings.keep(sticky::check_cookie(name, format!("{key}.sticky")));
    }
}

fn check_eject(eject: &Eject, key: &str) -> Result<(), Fault> {
    if let Some(percent) = eject.percent {
        size(format!("{key}.percent"), percent.into(), Eject::PERCENT)?;
    }
    if eject.min_requests == Some(0) {
        return Err(Fault::new(format!("{key}.min_requests"), "invalid value `0`: expected at least 1"));
    }
    Ok(())
}

fn check_health(health: &Health, http2: bool, key: &str) -> Result<(), Fault> {
    for (name, count) in [("rise", health.rise), ("fall", health.fall)] {
        if count == 0 {
            return Err(Fault::new(format!("{key}.{name}"), "invalid value `0`: expected at least 1"));
        }
    }
    if let Some(path) = &health.path
        && !(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        let why = format!("invalid value `{path}`: expected a path such as /health");
        return Err(Fault::new(format!("{key}.path"), why));
    }
    if let Some(name) = &health.grpc {
        let key = format!("{key}.grpc");
        if !http2 {
            return Err(Fault::new(key, "needs `http2 = true` of the service: gRPC is HTTP/2"));
        }
        if name.len() > Health::MOST_NAME || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            let why = format!(
                "invalid value `{name}`: expected the name of a gRPC service, such as `shop.v1.Cart`, in at most {} bytes; \
                 \"\" is the whole server",
                Health::MOST_NAME
            );
            return Err(Fault::new(key, why));
        }
    }
    match &health.host {
        Some(host) if !host.bytes().all(|byte| byte.is_ascii_graphic()) || host.is_empty() => {
            let why = format!("invalid value `{host}`: expected a host");
            Err(Fault::new(format!("{key}.host"), why))
        }
        _ => Ok(()),
    }
}

fn server(
    written: &document::Server,
    service: &document::Service,
    finder: &Finder,
    key: &str,
) -> Result<Server, Fault> {
    let place = &written.url;
    let name = match place {
        Place::Url(Endpoint { port: 0, .. }) | Place::Stream(Endpoint { port: 0, .. }) => {
            return Err(Fault::new(key, format!("{place}: invalid port 0")));
        }
        Place::Url(Endpoint { tls: true, host, .. }) | Place::Stream(Endpoint { tls: true, host, .. }) => {
            let name = service.tls.name.as_ref().unwrap_or(host);
            let wrong = |error| Fault::new(key, format!("{place}: {error}"));
            Some(name.parse::<PeerName>().map_err(wrong)?)
        }
        Place::Url(_) | Place::Stream(_) | Place::Unix(_) => None,
    };
    let address = finder.address(place).map_err(|why| Fault::new(key, why))?;
    Ok(Server {
        place: place.clone(),
        address,
        authority: place.authority(),
        name,
        weight: written.weight,
        backup: written.backup,
        pool: service.pool,
        max_connections: service.max_connections,
        announces: service.proxy_protocol.map(|version| match version {
            ProxyProtocol::V1 => proxy::Version::V1,
            ProxyProtocol::V2 => proxy::Version::V2,
        }),
        http2: service.http2,
        id: hash_of(place.to_string().as_bytes()),
    })
}

/// The protocols that a service offers its TLS servers by ALPN.
fn alpn(service: &document::Service) -> Vec<Vec<u8>> {
    match (tcp::is_for_streams(service), service.http2) {
        (true, _) => Vec::new(),
        (false, true) => vec![HTTP_2.to_vec()],
        (false, false) => vec![HTTP_1_1.to_vec()],
    }
}

fn client(tls: &ServiceTls, alpn: Vec<Vec<u8>>, key: &str) -> Result<Client, Fault> {
    let roots = match (&tls.ca, tls.insecure) {
        (Some(_), true) => {
            return Err(Fault::new(format!("{key}.insecure"), "conflicts with `ca`: expected one of both"));
        }
        (Some(file), false) => Roots::File(file.clone()),
        (None, true) => Roots::DangerouslyNone,
        (None, false) => Roots::Native,
    };
    let identity = match (&tls.certificate, &tls.key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(Identity::files(certificate, key)),
        (Some(_), None) => return Err(Fault::new(format!("{key}.certificate"), "needs `key`")),
        (None, Some(_)) => return Err(Fault::new(format!("{key}.key"), "needs `certificate`")),
    };
    let curves = usable_curves(tls.curves, key)?;
    let Offer { versions, suites, groups } =
        Offer { versions: tls.versions.clone(), suites: tls.suites.clone(), groups: tls.groups.clone() }
            .complete();
    let defaults = ClientSettings::default();
    let settings = ClientSettings {
        roots,
        identity,
        versions,
        suites,
        groups,
        curves,
        alpn,
        record_size: record_size(key, tls.record_size, defaults.record_size)?,
        ..defaults
    };
    Client::new(&settings).map_err(|error| {
        let error = error.to_string();
        let files = [("ca", &tls.ca), ("certificate", &tls.certificate), ("key", &tls.key)];
        let files = files.map(|(name, file)| (format!("{key}.{name}"), file.as_ref()));
        Fault::new(key_of_file(files.into_iter(), &error).unwrap_or_else(|| key.to_owned()), error)
    })
}
