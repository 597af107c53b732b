//! Reachability of routes: warnings about routes that no request can reach, and about requests in cleartext that
//! another listener serves with TLS.

use super::Findings;
use super::redirects::{has_tls, is_for_challenges};
use super::routes::host_name;
use crate::config::Network;
use crate::config::document::{Bind, Config, Listener, Route};
use crate::route::PathPattern;
use std::collections::HashMap;

/// Adds a warning for each route that no request can take, for each cleartext listener that serves a route to a service
/// which another listener serves with TLS, and for each redirect to `https` without a listener with TLS.
pub(super) fn warn(config: &Config, findings: &mut Findings) {
    let routes = Reach::new(config);
    for (index, route) in config.routes.iter().enumerate() {
        let key = format!("route.{index}");
        routes.warn_never(route, &key, findings);
        if let Some(first) = routes.first_covering(index, None) {
            let why =
                format!("no request takes this route: route.{first} comes first for all of its requests");
            findings.warn(&key, why, "remove one of both, or give this one another host, path or condition");
        }
    }
    for (name, listener) in &config.listeners {
        if is_open(listener)
            && let Some((route, secure)) = routes.in_cleartext(name)
        {
            let why = format!(
                "serves the requests of route.{route} in cleartext, which `{secure}` serves with TLS"
            );
            let next = format!("write redirect = \"https\" here, or listener = \"{secure}\" in the route");
            findings.warn(format!("listener.{name}"), why, next);
        }
        if let Some(redirect) = &listener.redirect
            && redirect.port.is_none()
            && !config.listeners.values().any(has_tls)
        {
            let next = "add a listener with `tls`, or write { to = \"https\", port = 443 } if another program has it";
            findings.warn(format!("listener.{name}.redirect"), "no listener has TLS", next);
        }
    }
}

/// Routes by host and path. Of several routes for the same host and path, a request takes the first whose conditions
/// match.
struct Reach<'a> {
    config: &'a Config,
    /// The routes for each host and path, in order.
    places: HashMap<(Option<String>, String), Vec<usize>>,
}

impl<'a> Reach<'a> {
    fn new(config: &'a Config) -> Self {
        let mut places: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, route) in config.routes.iter().enumerate() {
            for place in places_of(route) {
                places.entry(place).or_default().push(index);
            }
        }
        Self { config, places }
    }

    /// If earlier routes with the same hosts and paths take every request for the route at `index`, returns the one for
    /// its first host and path. `from` limits the comparison to requests on that listener.
    fn first_covering(&self, index: usize, from: Option<&str>) -> Option<usize> {
        let route = &self.config.routes[index];
        let covering = |place| {
            let others = self.places.get(&place).map_or(&[][..], Vec::as_slice);
            let before = others.iter().copied().take_while(|other| *other < index);
            before.into_iter().find(|other| self.covers(&self.config.routes[*other], route, from))
        };
        let all: Option<Vec<_>> = places_of(route).map(covering).collect();
        all?.first().copied()
    }

    /// Whether `first` takes every request for `route`. `from` limits the comparison to requests on that listener.
    fn covers(&self, first: &Route, route: &Route, from: Option<&str>) -> bool {
        let is_any = |value: &str| value == "*";
        let has_field = |(name, value): (&String, &String)| {
            let mut fields = route.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            fields.any(|(_, known)| is_any(value) || known == value)
        };
        let is_within = |network: &Network| first.client.iter().any(|outer| outer.includes(*network));
        let mut listeners = self.listeners_of(route).filter(|name| from.is_none_or(|from| *name == from));
        (first.method.is_empty()
            || !route.method.is_empty() && route.method.iter().all(|method| first.method.contains(method)))
            && first.headers.iter().all(has_field)
            && (first.client.is_empty() || !route.client.is_empty() && route.client.iter().all(is_within))
            && (first.listener.is_empty()
                || listeners.all(|name| first.listener.iter().any(|own| own == name)))
    }

    /// The names of the listeners whose requests the route may take: all, unless the route names some.
    fn listeners_of(&self, route: &'a Route) -> impl Iterator<Item = &'a str> {
        let names = self.config.listeners.keys().map(String::as_str);
        names.filter(|name| route.listener.is_empty() || route.listener.iter().any(|own| own == name))
    }

    /// Warns about a route whose own conditions exclude all requests.
    fn warn_never(&self, route: &Route, key: &str, findings: &mut Findings) {
        let for_challenges = is_for_challenges(route);
        let has_requests = |listener: &&Listener| {
            let is_passed = listener.tls.is_none() && !listener.passthrough.is_empty();
            let has_http = listener.tcp.is_none() && !is_passed;
            has_http && (listener.redirect.is_none() || for_challenges)
        };
        let listeners = self.listeners_of(route).filter_map(|name| self.config.listeners.get(name));
        let (listeners, others): (Vec<_>, Vec<_>) = listeners.partition(has_requests);
        // `redirects::check_listeners` reports a named listener that redirects as a fault.
        let is_fault =
            !route.listener.is_empty() && others.iter().any(|listener| listener.redirect.is_some());
        if listeners.is_empty() && !others.is_empty() && !is_fault {
            let why = "no request takes this route: all listeners redirect their requests, or forward connections as bytes";
            findings.warn(key, why, "remove it, or add a listener");
        } else if !route.client.is_empty()
            && !route.client.iter().any(|client| listeners.iter().any(|listener| lets_in(listener, *client)))
        {
            let why = "no request takes this route: none of its listeners admits clients of these networks";
            findings.warn(format!("{key}.client"), why, "remove it, or admit these networks");
        }
        for (at, path) in route.path.iter().enumerate() {
            if let Some(usual) = path.in_usual_form() {
                let why =
                    format!("no request has the path `{path}`: routes are compared in the form `{usual}`");
                findings.warn(format!("{key}.path.{at}"), why, "write it in that form");
            }
        }
        for (at, method) in route.method.iter().enumerate() {
            let upper = method.to_ascii_uppercase();
            if *method != upper && METHODS.contains(&&*upper) {
                let why = format!("no usual request has the method `{method}`: methods are case-sensitive");
                findings.warn(format!("{key}.method.{at}"), why, format!("write {upper}"));
            }
        }
        if let Some(prefix) = &route.strip_prefix
            && let Ok(prefix) = prefix.trim_end_matches('/').parse::<PathPattern>()
            && !route.path.is_empty()
            && !route.path.iter().any(|path| path.may_begin_with(&prefix))
        {
            let why = format!("no path of this route begins with `{prefix}`, so nothing is removed");
            findings.warn(format!("{key}.strip_prefix"), why, "remove it, or write the beginning of `path`");
        }
        if route.trace && !route.method.is_empty() && !route.method.iter().any(|method| method == "TRACE") {
            let why = "no TRACE request takes this route, as `method` does not have it";
            findings.warn(format!("{key}.trace"), why, "remove it, or add TRACE to `method`");
        }
    }

    /// The first route to a service that serves both this cleartext listener and a listener with TLS: the route's
    /// index, and the name of the listener with TLS.
    fn in_cleartext(&self, name: &str) -> Option<(usize, &'a str)> {
        let (index, route) = self.config.routes.iter().enumerate().find(|(index, route)| {
            route.service.is_some()
                && self.listeners_of(route).any(|listener| listener == name)
                && self.listeners_of(route).any(|listener| is_secure(&self.config.listeners[listener]))
                && self.first_covering(*index, Some(name)).is_none()
        })?;
        let secure =
            self.listeners_of(route).find(|listener| is_secure(&self.config.listeners[*listener]))?;
        Some((index, secure))
    }
}

/// Whether a listener serves requests with TLS.
fn is_secure(listener: &Listener) -> bool {
    listener.tls.is_some() && listener.tcp.is_none()
}

/// All pairs of a host and a path of a route.
fn places_of(route: &Route) -> impl Iterator<Item = (Option<String>, String)> {
    let hosts: Vec<_> = match route.host.as_slice() {
        [] => vec![None],
        hosts => hosts.iter().map(|host| host_name(host).or_else(|| Some(host.clone()))).collect(),
    };
    let paths: Vec<_> = match route.path.as_slice() {
        [] => vec![PathPattern::all().to_string()],
        paths => paths.iter().map(ToString::to_string).collect(),
    };
    hosts.into_iter().flat_map(move |host| paths.clone().into_iter().map(move |path| (host.clone(), path)))
}

/// Whether a listener serves the requests of any client in cleartext: it has no `tls`, `tcp`, `redirect` or `allow`, no
/// proxy is in front, and at least one of its addresses is an IP address other than loopback.
fn is_open(listener: &Listener) -> bool {
    let is_outside = |bind: &Bind| match bind {
        Bind::Tcp { host, .. } => {
            !host.eq_ignore_ascii_case("localhost")
                && host.parse::<std::net::IpAddr>().is_ok_and(|host| !host.is_loopback())
        }
        Bind::Unix(_) => false,
    };
    !has_tls(listener)
        && listener.tcp.is_none()
        && listener.redirect.is_none()
        && listener.proxy_protocol.is_empty()
        && listener.trusted_proxies.is_empty()
        && listener.allow.is_empty()
        && listener.bind.iter().any(is_outside)
}

/// Whether a listener admits at least some clients of a network. Behind a proxy this is unknown, so the function
/// returns true.
fn lets_in(listener: &Listener, client: Network) -> bool {
    if !listener.proxy_protocol.is_empty() || !listener.trusted_proxies.is_empty() {
        return true;
    }
    let has_kind =
        listener.bind.iter().any(|bind| matches!(bind, Bind::Unix(_)) == (client == Network::Unix));
    let meets = |allowed: &Network| allowed.includes(client) || client.includes(*allowed);
    has_kind
        && (listener.allow.is_empty() || listener.allow.iter().any(meets))
        && !listener.deny.iter().any(|denied| denied.includes(client))
}

/// The usual methods (RFC 9110 section 9, RFC 5789).
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys and messages of the warnings.
    fn warnings(text: &str) -> Vec<String> {
        let config: Config = toml::from_str(text).unwrap();
        let mut findings = Findings::default();
        warn(&config, &mut findings);
        findings.warnings().map(|warning| format!("{}: {}", warning.key, warning.message)).collect()
    }

    const LISTENERS: &str = "[listener.a]\nbind = '127.0.0.1:80'\n[listener.b]\nbind = 'unix:/b'\n[listener.c]\nbind = '127.0.0.1:81'\nredirect = { to = 'https', port = 443 }\n";

    /// The warnings for routes with these conditions.
    fn of_routes(routes: &[&str]) -> Vec<String> {
        let routes: String =
            routes.iter().map(|route| format!("[[route]]\n{route}\nrespond.status = 200\n")).collect();
        warnings(&format!("{LISTENERS}{routes}"))
    }

    #[test]
    fn a_route_behind_another_one_for_all_of_its_requests_is_dead() {
        for (first, second) in [
            ("", ""),
            ("", "method = 'GET'"),
            ("", "listener = 'a'\nheaders = { X = '1' }"),
            ("host = 'a.test'", "host = 'A.TEST.'"),
            ("host = '[::1]'", "host = '[0:0:0:0:0:0:0:1]'"),
            ("host = ['a.test', 'b.test']", "host = ['b.test', 'a.test']"),
            ("path = ['/a/*', '/b']", "path = '/b'"),
            ("path = '/{id}/x'", "path = '/{name}/x'"),
            ("path = '/*'", ""),
            ("method = ['GET', 'HEAD']", "method = 'HEAD'"),
            ("headers = { X-A = '*' }", "headers = { x-a = '1', X-B = '2' }"),
            ("client = '10.0.0.0/8'", "client = ['10.1.0.0/16', '10.2.3.4']"),
            ("client = ['::/0', 'unix']", "client = ['10.0.0.0/8', 'unix']"),
            ("listener = ['a', 'b']", "listener = 'b'"),
            ("listener = ['a', 'b', 'c']", ""),
        ] {
            let found = of_routes(&[first, second]);
            let expected =
                "route.1: no request takes this route: route.0 comes first for all of its requests";
            assert_eq!(found, [expected], "{first} | {second}");
        }
    }

    #[test]
    fn a_route_that_gets_some_requests_is_not() {
        for (first, second) in [
            ("method = 'GET'", ""),
            ("method = 'GET'", "method = ['GET', 'PUT']"),
            ("host = 'a.test'", ""),
            ("", "host = 'a.test'"),
            ("host = 'a.test'", "host = '*.a.test'"),
            ("host = 'a.test'", "host = ['a.test', 'b.test']"),
            ("path = '/a/*'", "path = '/a'"),
            ("path = '/a/*'", "path = '/a/b/*'"),
            ("path = '/a*'", "path = '/a/*'"),
            ("path = '/{id}'", "path = '/a'"),
            ("headers = { X = '1' }", "headers = { X = '*' }"),
            ("headers = { X = '1' }", "headers = { Y = '1' }"),
            ("client = '10.0.0.0/8'", ""),
            ("client = '10.0.0.0/8'", "client = '0.0.0.0/0'"),
            ("client = '10.0.0.0/8'", "client = ['10.0.0.1', 'unix']"),
            ("listener = 'a'", ""),
            ("listener = 'a'", "listener = ['a', 'b']"),
        ] {
            assert_eq!(of_routes(&[first, second]), [""; 0], "{first} | {second}");
        }
    }

    #[test]
    fn a_route_whose_own_conditions_never_hold_is_dead() {
        for (route, found) in [
            ("listener = 'a'\nclient = 'unix'", "route.0.client: no request takes this route"),
            ("listener = 'b'\nclient = '10.0.0.0/8'", "route.0.client: no request takes this route"),
            (
                "path = '/a//b'",
                "route.0.path.0: no request has the path `/a//b`: routes are compared in the form `/a/b`",
            ),
            (
                "path = ['/x', '/%61/*']",
                "route.0.path.1: no request has the path `/%61/*`: routes are compared in the form `/a/*`",
            ),
            ("method = 'get'", "route.0.method.0: no usual request has the method `get`"),
            (
                "path = '/a/*'\nstrip_prefix = '/b'",
                "route.0.strip_prefix: no path of this route begins with `/b`",
            ),
            (
                "path = '/a*'\nstrip_prefix = '/b'",
                "route.0.strip_prefix: no path of this route begins with `/b`",
            ),
            ("method = 'GET'\ntrace = true", "route.0.trace: no TRACE request takes this route"),
        ] {
            let warnings = of_routes(&[route]);
            assert!(matches!(&warnings[..], [one] if one.starts_with(found)), "{route}: {warnings:?}");
        }
        for route in [
            "client = 'unix'",
            "path = ['/', '/a/', '/a.b/*', '/{id}/x', '/.well-known/*']",
            "method = ['PROPFIND', 'purge']",
            "listener = 'c'\npath = '/.well-known/acme-challenge/*'",
            "path = '/{id}/*'\nstrip_prefix = '/b'",
            "path = '/a*'\nstrip_prefix = '/ab/c'",
            "path = '/a/b'\nstrip_prefix = '/a/'",
            "strip_prefix = '/a'",
        ] {
            assert_eq!(of_routes(&[route]), [""; 0], "{route}");
        }
    }

    #[test]
    fn a_client_that_no_listener_lets_in_has_no_requests() {
        for (listener, client, is_dead) in [
            ("allow = '10.0.0.0/8'", "192.0.2.1", true),
            ("allow = '10.0.0.0/8'", "10.1.0.0/16", false),
            ("allow = '10.0.0.0/8'", "0.0.0.0/0", false),
            ("deny = '10.0.0.0/8'", "10.1.0.0/16", true),
            ("deny = '10.1.0.0/16'", "10.0.0.0/8", false),
            ("allow = '10.0.0.0/8'\ntrusted_proxies = '10.0.0.0/8'", "192.0.2.1", false),
            ("proxy_protocol = '10.0.0.0/8'\nallow = '192.0.2.0/24'", "10.0.0.1", false),
        ] {
            let route = format!("[[route]]\nclient = '{client}'\nrespond.status = 200\n");
            let found = warnings(&format!("[listener.a]\nbind = '127.0.0.1:80'\n{listener}\n{route}"));
            assert_eq!(!found.is_empty(), is_dead, "{listener} {client}: {found:?}");
        }
    }

    #[test]
    fn cleartext_beside_tls_is_warned_about() {
        let found = |cleartext: &str, routes: &str| {
            let rest = "[listener.s]\nbind = '0.0.0.0:443'\ntls = {}\n[service.app]\nservers = 'http://127.0.0.1:1'\n";
            warnings(&format!("[listener.c]\n{cleartext}\n{rest}{routes}"))
        };
        let warning = "listener.c: serves the requests of route.";
        let all = "[[route]]\nservice = 'app'\n";
        let host = "[[route]]\nhost = 'a.test'\nservice = 'app'\n";
        let redirect = "[[route]]\nlistener = 'c'\nredirect.to = 'https://{host}{target}'\n";
        let secure = "[[route]]\nlistener = 's'\nservice = 'app'\n";
        for (cleartext, routes, is_warned) in [
            ("bind = '0.0.0.0:80'", all.to_owned(), true),
            ("bind = ['127.0.0.1:80', '192.0.2.1:80']", all.to_owned(), true),
            ("bind = '[::]:80'", host.to_owned(), true),
            // Requests for the route with a host bypass the redirect.
            ("bind = '0.0.0.0:80'", format!("{redirect}{host}{all}"), true),
            ("bind = '0.0.0.0:80'", format!("{all}{redirect}"), true),
            ("bind = '0.0.0.0:80'", format!("{redirect}{all}"), false),
            ("bind = '0.0.0.0:80'", secure.to_owned(), false),
            ("bind = '0.0.0.0:80'\nredirect = 'https'", format!("{host}{all}"), false),
            ("bind = '127.0.0.1:80'", all.to_owned(), false),
            ("bind = '[::1]:80'", all.to_owned(), false),
            ("bind = 'localhost:80'", all.to_owned(), false),
            ("bind = 'unix:/c'", all.to_owned(), false),
            ("bind = '0.0.0.0:80'\nproxy_protocol = '10.0.0.0/8'", all.to_owned(), false),
            ("bind = '0.0.0.0:80'\ntrusted_proxies = '10.0.0.0/8'", all.to_owned(), false),
            ("bind = '0.0.0.0:80'\nallow = '10.0.0.0/8'", all.to_owned(), false),
            ("bind = '0.0.0.0:80'", "[[route]]\nrespond.status = 200\n".to_owned(), false),
        ] {
            let found = found(cleartext, &routes);
            let is_found = found.iter().any(|found| found.starts_with(warning));
            assert_eq!(is_found, is_warned, "{cleartext} {routes}: {found:?}");
        }
    }

    #[test]
    fn a_route_without_a_listener_has_no_requests() {
        let route = "[[route]]\nservice = 'a'\n[service.a]\nservers = 'http://127.0.0.1:1'\n";
        for listener in
            ["redirect = { to = 'https', port = 443 }", "passthrough = [{ name = '*', service = 'a' }]"]
        {
            let found = warnings(&format!("[listener.a]\nbind = '127.0.0.1:80'\n{listener}\n{route}"));
            let expected = "route.0: no request takes this route: all listeners redirect";
            assert!(matches!(&found[..], [one] if one.starts_with(expected)), "{listener}: {found:?}");
        }
    }

    #[test]
    fn a_redirect_to_tls_that_nothing_has_is_warned_about() {
        let of = |redirect: &str| {
            warnings(&format!("[listener.a]\nbind = '127.0.0.1:80'\nredirect = {redirect}\n"))
        };
        assert_eq!(of("'https'"), ["listener.a.redirect: no listener has TLS"]);
        assert_eq!(of("{ to = 'https', port = 443 }"), [""; 0]);
    }
}
