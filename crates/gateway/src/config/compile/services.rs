//! Services and their servers.

use super::listeners::HTTP_1_1;
use super::{Fault, check_name};
use crate::config::document::{self, Config, ServiceTls};
use crate::config::snapshot::{Server, Service, UpstreamTls};
use std::net::SocketAddr;
use std::sync::Arc;
use weir_tls::{Client, ClientSettings, Identity, Offer, PeerName, Roots};
use weir_transport::Endpoint;

pub(super) fn compile(config: &Config) -> Result<Vec<Service>, Fault> {
    config.services.iter().map(|(name, service)| compile_one(name, service)).collect()
}

fn compile_one(name: &str, service: &document::Service) -> Result<Service, Fault> {
    let key = format!("service.{name}");
    check_name(&key, name)?;
    let Some(first) = service.servers.first() else {
        return Err(Fault::new(format!("{key}.servers"), "empty: expected at least one URL"));
    };
    let tls = match first.tls {
        true => Some(Arc::new(UpstreamTls { client: client(&service.tls, &format!("{key}.tls"))? })),
        false => None,
    };
    if !first.tls && service.tls.is_set() {
        let why = format!("{first} is not https, so there is no certificate to verify");
        return Err(Fault::new(format!("{key}.tls"), why));
    }
    let mut servers = Vec::new();
    for (index, endpoint) in service.servers.iter().enumerate() {
        let key = format!("{key}.servers.{index}");
        if endpoint.tls != first.tls {
            let why = format!("`{endpoint}`: expected the scheme of the first server, {first}");
            return Err(Fault::new(key, why));
        }
        servers.push(server(endpoint, service.tls.name.as_ref(), &key)?);
    }
    Ok(Service { name: name.to_owned(), servers, tls })
}

fn server(endpoint: &Endpoint, name: Option<&String>, key: &str) -> Result<Server, Fault> {
    if endpoint.port == 0 {
        return Err(Fault::new(key, format!("{endpoint}: invalid port 0")));
    }
    let name = match endpoint.tls {
        true => {
            let name = name.unwrap_or(&endpoint.host);
            let wrong = |error| Fault::new(key, format!("{endpoint}: {error}"));
            Some(name.parse::<PeerName>().map_err(wrong)?)
        }
        false => None,
    };
    let address = endpoint.resolve().map_err(|error| Fault::new(key, error))?;
    Ok(Server { endpoint: endpoint.clone(), address, authority: endpoint.authority(), name })
}

fn client(tls: &ServiceTls, key: &str) -> Result<Client, Fault> {
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
    let Offer { versions, suites, groups } =
        Offer { versions: tls.versions.clone(), suites: tls.suites.clone(), groups: tls.groups.clone() }
            .complete();
    let settings = ClientSettings {
        roots,
        identity,
        versions,
        suites,
        groups,
        alpn: vec![HTTP_1_1.to_vec()],
        ..ClientSettings::default()
    };
    Client::new(&settings).map_err(|error| Fault::new(key, error))
}

/// The server at its new address, if it is no longer at the one in use. The order of the addresses says nothing: name
/// servers turn it around.
pub(crate) fn resolve_again(server: &Server, found: &[SocketAddr]) -> Option<Server> {
    let first = found.first().filter(|_| !found.contains(&server.address))?;
    Some(Server { address: *first, ..server.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stays_as_long_as_it_is_among_the_answers() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let server = server(&"http://192.0.2.1".parse().unwrap(), None, "").unwrap();
        assert_eq!(resolve_again(&server, &[at("192.0.2.2:80"), at("192.0.2.1:80")]), None);
        assert_eq!(resolve_again(&server, &[]), None);
        let now = resolve_again(&server, &[at("192.0.2.3:80"), at("192.0.2.2:80")]).unwrap();
        assert_eq!((now.address, now.authority.as_str()), (at("192.0.2.3:80"), "192.0.2.1"));
    }
}
