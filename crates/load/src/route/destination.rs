//! The destination of connections, resolved once before the run.

use crate::error::LoadError;
use crate::options::{Options, Route};
use crate::route::source;
use crate::route::trial::{Unreachable, Why};
use crate::target::Resolve;
use crate::usage::Usage;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use weir_transport::Address;

/// Candidate addresses of the server, most preferred first; at least one. The sources have been
/// checked against them.
pub(crate) fn resolve(options: &Options) -> Result<Vec<Address>, LoadError> {
    let route = &options.route;
    if let Some(path) = &route.unix {
        check_unix(path, route)?;
        return Ok(vec![Address::Unix(path.clone())]);
    }
    let endpoint = &options.endpoint;
    let (host, port) = match &route.connect_to {
        Some((host, port)) => (host.as_str(), *port),
        None => (endpoint.host.as_str(), endpoint.port),
    };
    let overridden = overrides(&route.resolve, host, port)?;
    let addresses = if overridden.is_empty() {
        let unresolved = |why: String| Unreachable {
            url: endpoint.to_string(),
            address: None,
            why: Why::Unresolved { host: host.to_string(), why },
        };
        let found: Vec<SocketAddr> =
            (host, port).to_socket_addrs().map_err(|error| unresolved(error.to_string()))?.collect();
        if found.is_empty() {
            return Err(unresolved("it has no address".to_string()).into());
        }
        found
    } else {
        overridden
    };
    Ok(source::check(&route.sources, addresses.into_iter().map(Address::Tcp).collect())?)
}

/// The addresses from `--resolve`. An entry for any other host or port is an error: it would silently do nothing.
fn overrides(entries: &[Resolve], host: &str, port: u16) -> Result<Vec<SocketAddr>, Usage> {
    let mut addresses = Vec::new();
    for entry in entries {
        let (entry_host, entry_port) = (&entry.host, entry.port);
        if !entry_host.eq_ignore_ascii_case(host) || entry_port != port {
            let value = format!("{entry_host}:{entry_port}:{}", entry.address);
            let expected = format!("the host and port of the connection, {host}:{port}");
            return Err(Usage::new("--resolve", &value, &expected));
        }
        addresses.push(SocketAddr::new(entry.address, port));
    }
    Ok(addresses)
}

fn check_unix(path: &Path, route: &Route) -> Result<(), Usage> {
    let shown = path.display().to_string();
    for (flag, given) in [
        ("--resolve", !route.resolve.is_empty()),
        ("--connect-to", route.connect_to.is_some()),
        ("--source", !route.sources.is_empty()),
    ] {
        if given {
            let expected = format!("no {flag}: a Unix domain socket has no host or port");
            return Err(Usage::new("--unix-socket", &shown, &expected));
        }
    }
    // `sun_path` with its terminating NUL (unix(7)).
    if path.as_os_str().len() > 107 {
        return Err(Usage::new("--unix-socket", &shown, "a path of at most 107 bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(url: &str, change: impl FnOnce(&mut Route)) -> Result<String, String> {
        let mut options = Options::new(url.parse().unwrap());
        change(&mut options.route);
        let addresses = resolve(&options).map_err(|error| error.to_string())?;
        Ok(addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    fn entries(texts: &[&str]) -> Vec<Resolve> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn where_connections_go() {
        type Change = fn(&mut Route);
        let table: [(&str, Change, &str); 8] = [
            ("http://127.0.0.1:81", |_| {}, "127.0.0.1:81"),
            ("https://[::1]", |_| {}, "[::1]:443"),
            (
                "http://a.invalid",
                |route| route.resolve = entries(&["A.invalid:80:127.0.0.2"]),
                "127.0.0.2:80",
            ),
            (
                "http://a.invalid",
                |route| route.resolve = entries(&["a.invalid:80:::1", "a.invalid:80:127.0.0.1"]),
                "[::1]:80 127.0.0.1:80",
            ),
            (
                "http://a.invalid",
                |route| {
                    route.resolve = entries(&["a.invalid:80:::1", "a.invalid:80:127.0.0.1"]);
                    route.sources = vec!["127.0.0.3".parse().unwrap()];
                },
                "127.0.0.1:80",
            ),
            ("http://a.invalid", |route| route.connect_to = Some(("::1".into(), 90)), "[::1]:90"),
            (
                "http://a.invalid",
                |route| {
                    route.connect_to = Some(("b.invalid".into(), 90));
                    route.resolve = entries(&["b.invalid:90:127.0.0.7"]);
                },
                "127.0.0.7:90",
            ),
            ("http://a.invalid", |route| route.unix = Some("/run/a.sock".into()), "unix:/run/a.sock"),
        ];
        for (url, change, shown) in table {
            assert_eq!(resolved(url, change).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn invalid_routes_are_rejected() {
        type Change = fn(&mut Route);
        let table: [(Change, &str); 7] = [
            (|_| {}, "http://a.invalid: cannot resolve host `a.invalid`: "),
            (|_| {}, "--resolve"),
            (|route| route.connect_to = Some(("b.invalid".into(), 90)), "cannot resolve host `b.invalid`"),
            (
                |route| route.resolve = entries(&["a.invalid:81:127.0.0.1"]),
                "--resolve: invalid value `a.invalid:81:127.0.0.1`: expected \
                 the host and port of the connection, a.invalid:80",
            ),
            (
                |route| {
                    route.unix = Some("/run/a.sock".into());
                    route.sources = vec!["127.0.0.1".parse().unwrap()];
                },
                "--unix-socket: invalid value `/run/a.sock`: expected no --source",
            ),
            (
                |route| {
                    route.unix = Some("/run/a.sock".into());
                    route.connect_to = Some(("b".into(), 90));
                },
                "no --connect-to",
            ),
            (|route| route.unix = Some("x".repeat(108).into()), "a path of at most 107 bytes"),
        ];
        for (change, message) in table {
            let error = resolved("http://a.invalid", change).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
