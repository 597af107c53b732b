//! Cookies that keep clients on their servers.

use super::Fault;
use crate::config::document::Config;
use crate::config::snapshot::{Listener, Service, Sticky};
use weir_tls::TicketSecrets;

/// Sets the cookies of services. Their values are derived from a secret, so that a client can neither recognize a
/// server nor forge a value. The secret is the one of tickets, so machines that share it send a client to the same
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
            None => {
                secrets.insert(shared(listeners).or_else(TicketSecrets::of_process).ok_or_else(|| {
                    Fault::new(
                        format!("service.{}.sticky", service.name),
                        "the system has no source of randomness",
                    )
                })?)
            }
        };
        let values = service.servers.iter().map(|server| {
            let place = server.place.to_string();
            secrets.derive(&[b"weir sticky cookie\0", service.name.as_bytes(), b"\0", place.as_bytes()])
        });
        service.sticky = Some(Sticky { name: name.as_bytes().into(), values: values.collect() });
    }
    Ok(())
}

/// The secrets of the first listener with a file of ticket secrets.
fn shared(listeners: &[Listener]) -> Option<TicketSecrets> {
    let mut servers = listeners.iter().filter_map(|listener| listener.tls.as_ref());
    servers.find(|server| server.ticket_file().is_some())?.ticket_secrets()
}
