//! Cookies that keep clients on their servers.

use super::Fault;
use crate::config::document::Config;
use crate::config::snapshot::{Listener, Server, Service, Sticky};
use weir_http::is_token;
use weir_tls::TicketSecrets;

/// Sets the cookies of services. Their values are derived from a secret, so that a client can neither recognize a
/// server nor forge a value. The secret is that of TLS tickets, so machines that share it send a client to the same
/// server.
pub(super) fn compile(
    config: &Config,
    listeners: &[Listener],
    services: &mut [Service],
) -> Result<(), Fault> {
    let mut secrets = None;
    for service in services {
        let Some(name) = config.services.get(&service.name).and_then(|written| written.sticky.as_ref())
        else {
            continue;
        };
        let secrets = match &secrets {
            Some(secrets) => secrets,
            None => secrets.insert(self::secrets(listeners, &service.name)?),
        };
        let values = values(secrets, &service.name, &service.servers);
        service.sticky = Some(Sticky { name: name.as_bytes().into(), values });
    }
    Ok(())
}

/// Checks the name of a cookie. Fails if the name is not a token.
pub(super) fn check_cookie(name: &str, key: String) -> Result<(), Fault> {
    if is_token(name.as_bytes()) {
        return Ok(());
    }
    Err(Fault::new(key, format!("invalid value `{name}`: expected the name of a cookie")))
}

/// Returns the cookie with values for another list of servers of its service. Fails if the system has no source of
/// randomness.
pub(super) fn for_servers(
    sticky: &Sticky,
    listeners: &[Listener],
    service: &str,
    servers: &[Server],
) -> Result<Sticky, Fault> {
    let secrets = secrets(listeners, service)?;
    Ok(Sticky { name: sticky.name.clone(), values: values(&secrets, service, servers) })
}

fn values(secrets: &TicketSecrets, service: &str, servers: &[Server]) -> Vec<Vec<u64>> {
    let value = |server: &Server| {
        let place = server.place.to_string();
        secrets.derive(&[b"weir sticky cookie\0", service.as_bytes(), b"\0", place.as_bytes()])
    };
    servers.iter().map(value).collect()
}

/// Returns the secrets for cookies: those of a file of ticket secrets, or else those of this process. Fails if the
/// system has no source of randomness.
fn secrets(listeners: &[Listener], service: &str) -> Result<TicketSecrets, Fault> {
    shared(listeners).or_else(TicketSecrets::of_process).ok_or_else(|| {
        Fault::new(format!("service.{service}.sticky"), "the system has no source of randomness")
    })
}

/// The secrets of the first listener with a file of ticket secrets.
fn shared(listeners: &[Listener]) -> Option<TicketSecrets> {
    let mut servers = listeners.iter().filter_map(|listener| listener.tls.as_ref());
    servers.find(|server| server.ticket_file().is_some())?.ticket_secrets()
}
