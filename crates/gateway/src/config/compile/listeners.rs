//! Listeners and their TLS.

use super::{Fault, check_name};
use crate::config::document::{Certificate, ClientCertificates, Config, ListenerTls};
use crate::config::snapshot::{Listener, Role};
use weir_tls::{ClientAuth, Identity, Offer, Server, ServerSettings};
use weir_transport::Endpoint;

pub(super) fn compile(config: &Config) -> Result<Vec<Listener>, Fault> {
    if config.listeners.is_empty() {
        return Err(Fault::new(
            "listener",
            "missing: expected at least one, such as [listener.web] with bind = \"0.0.0.0:80\"",
        ));
    }
    let mut listeners = Vec::new();
    for (name, listener) in &config.listeners {
        let key = format!("listener.{name}");
        check_name(&key, name)?;
        if listener.bind.is_empty() {
            return Err(Fault::new(format!("{key}.bind"), "empty: expected at least one address"));
        }
        let tls = match &listener.tls {
            Some(tls) => Some(server(config, tls, &format!("{key}.tls"))?),
            None => None,
        };
        for (index, bind) in listener.bind.iter().enumerate() {
            let key = format!("{key}.bind.{index}");
            let endpoint = Endpoint { tls: tls.is_some(), host: bind.host.clone(), port: bind.port };
            listeners.push(Listener {
                name: name.as_str().into(),
                key,
                endpoint,
                role: Role::Gateway,
                trusted: listener.trusted_proxies.as_slice().into(),
                tls: tls.clone(),
            });
        }
    }
    Ok(listeners)
}

fn server(config: &Config, tls: &ListenerTls, key: &str) -> Result<Server, Fault> {
    let identity = |certificate: &Certificate| Identity::files(&certificate.chain, &certificate.key);
    let identities: Vec<_> = config.certificates.iter().map(identity).collect();
    let Some(first) = identities.first() else {
        let expected = "a listener with TLS needs a certificate: expected [[certificate]] with chain and key";
        return Err(Fault::new(key, expected));
    };
    if let Some(tickets @ 9..) = tls.tickets {
        return Err(Fault::new(
            format!("{key}.tickets"),
            format!("invalid value `{tickets}`: expected 0 to 8"),
        ));
    }
    let Offer { versions, suites, groups } =
        Offer { versions: tls.versions.clone(), suites: tls.suites.clone(), groups: tls.groups.clone() }
            .complete();
    let client_auth = match (&tls.client_ca, tls.client_certificates) {
        (Some(roots), required) => Some(ClientAuth {
            roots: roots.clone(),
            crls: tls.client_crl.clone(),
            required: required.unwrap_or_default() == ClientCertificates::Required,
        }),
        (None, None) if tls.client_crl.is_empty() => None,
        (None, _) => return Err(Fault::new(key, "`client_certificates` and `client_crl` need `client_ca`")),
    };
    let defaults = ServerSettings::new(first.clone());
    Server::new(&ServerSettings {
        versions,
        suites,
        groups,
        alpn: vec![HTTP_1_1.to_vec(), HTTP_1_0.to_vec()],
        tickets: tls.tickets.unwrap_or(defaults.tickets),
        identities,
        strict_names: tls.strict_names,
        client_auth,
        key_log: tls.key_log.clone(),
        ..defaults
    })
    .map_err(|error| Fault::new(key, error))
}

/// RFC 7301 section 6.
pub(super) const HTTP_1_1: &[u8] = b"http/1.1";
/// Clients that speak it may offer nothing else.
const HTTP_1_0: &[u8] = b"http/1.0";
