//! Listeners and services of protocols other than HTTP.

use super::Fault;
use super::services::ServicePlaces;
use crate::config::document::{self, Config};
use crate::config::snapshot::Tcp;
use weir_transport::Place;

/// Returns the service of a listener's connections. Fails if no service has this name, or its servers speak HTTP.
pub(super) fn compile(
    config: &Config,
    services: &ServicePlaces<'_>,
    written: &document::Tcp,
    key: &str,
) -> Result<Tcp, Fault> {
    let key = format!("{key}.service");
    let service = services.of(&written.service, &key)?;
    let servers = config.services.get(&written.service).map_or(&[][..], |service| &service.servers);
    if let Some(server) = servers.iter().find(|server| matches!(server.url, Place::Url(_))) {
        let why = format!(
            "the servers of `{}` speak HTTP, as {}: expected tcp://HOST:PORT, tls://HOST:PORT or unix:PATH",
            written.service, server.url
        );
        return Err(Fault::new(key, why));
    }
    Ok(Tcp { service, idle: written.idle.unwrap_or(config.timeouts.tunnel) })
}

/// Whether the scheme of a service's servers is that of a protocol other than HTTP.
pub(super) fn is_for_streams(service: &document::Service) -> bool {
    service.servers.iter().any(|server| matches!(server.url, Place::Stream(_)))
}

#[cfg(test)]
mod tests {
    use crate::config::{Findings, compile};
    use std::time::Duration;

    /// The snapshot of a configuration, or the first fault.
    fn of(text: &str) -> Result<crate::config::Snapshot, String> {
        let mut findings = Findings::default();
        let compiled = compile(&toml::from_str(text).unwrap(), &mut findings);
        let fault = findings.faults().next().map(|fault| format!("{}: {}", fault.key, fault.message));
        compiled.ok_or_else(|| fault.unwrap_or_default())
    }

    fn with(listener: &str, service: &str, rest: &str) -> String {
        format!("[listener.db]\nbind = '127.0.0.1:0'\n{listener}\n[service.db]\n{service}\n{rest}")
    }

    const TCP: &str = "tcp = { service = 'db' }";
    const SERVERS: &str = "servers = 'tcp://127.0.0.1:5432'";

    #[test]
    fn a_listener_of_bytes_has_a_service_and_an_idle_timeout() {
        for (servers, idle, expected) in [
            (SERVERS, "", 3600),
            ("servers = 'tls://127.0.0.1:5432'", "[timeouts]\ntunnel = '5s'", 5),
            ("servers = ['unix:/tmp/a', 'tcp://127.0.0.1:1']", "", 3600),
        ] {
            let snapshot = of(&with(TCP, servers, idle)).unwrap();
            let listener = &snapshot.listeners[0];
            assert_eq!(listener.place.to_string(), "tcp://127.0.0.1:0");
            assert_eq!(listener.tcp.map(|tcp| tcp.idle), Some(Duration::from_secs(expected)), "{servers}");
        }
        let snapshot = of(&with("tcp = { service = 'db', idle = '1s' }", SERVERS, "")).unwrap();
        assert_eq!(snapshot.listeners[0].tcp.map(|tcp| tcp.idle), Some(Duration::from_secs(1)));
    }

    #[test]
    fn what_is_about_http_is_refused() {
        for (listener, service, rest, fault) in [
            ("tcp.service = 'd'", SERVERS, "", "listener.db.tcp.service: unknown service `d`"),
            (
                TCP,
                "servers = 'http://127.0.0.1:1'",
                "",
                "listener.db.tcp.service: the servers of `db` speak HTTP",
            ),
            (
                TCP,
                "servers = ['tcp://127.0.0.1:1', 'http://127.0.0.1:1']",
                "",
                "service.db.servers.1: `http://127.0.0.1:1`: expected the scheme of the first server, tcp://127.0.0.1:1",
            ),
            (
                TCP,
                "servers = ['unix:/tmp/a', 'tcp://127.0.0.1:1', 'http://127.0.0.1:1']",
                "",
                "service.db.servers.2: `http://127.0.0.1:1`: expected the scheme",
            ),
            (
                TCP,
                "servers = 'tcp://127.0.0.1:0'",
                "",
                "service.db.servers.0: tcp://127.0.0.1:0: invalid port 0",
            ),
            (
                "tcp.service = 'db'\nredirect = 'https'",
                SERVERS,
                "",
                "listener.db.redirect: conflicts with `tcp`",
            ),
            ("tcp.service = 'db'\nhttp2 = false", SERVERS, "", "listener.db.http2: no effect beside `tcp`"),
            (
                TCP,
                "servers = 'tcp://127.0.0.1:1'\nhttp2 = true",
                "",
                "service.db.http2: no effect with `tcp` or `tls` servers",
            ),
            (
                TCP,
                "servers = 'tcp://127.0.0.1:1'\nhealth.path = '/'",
                "",
                "service.db.health.path: no effect with `tcp` or `tls` servers",
            ),
            (
                "",
                SERVERS,
                "[[route]]\nservice = 'db'",
                "route.0.service: the servers of `db` do not speak HTTP",
            ),
            (
                "",
                SERVERS,
                "[[route]]\nservice = [{ name = 'db' }]",
                "route.0.service.0.name: the servers of `db` do not speak HTTP",
            ),
            (
                "passthrough = [{ name = '*', service = 'db' }]",
                "servers = 'tls://127.0.0.1:1'",
                "",
                "listener.db.passthrough.0.service: the servers of `db` have TLS",
            ),
        ] {
            let found = of(&with(listener, service, rest)).expect_err(fault);
            assert!(found.starts_with(fault), "{found}");
        }
    }
}
