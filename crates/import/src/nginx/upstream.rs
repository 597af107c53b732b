//! Translates `upstream`, `proxy_pass` and `grpc_pass` to services.

use super::health::{Check, health};
use super::module::Module;
use super::service_tls::tls_towards;
use super::split::Split;
use super::variables::{Known, resolved};
use super::{audit, time};
use crate::model::{Action, Destination, Document, Server, Service, Share, Table, Value};
use crate::note::Notes;
use crate::values;
use std::collections::BTreeMap;
use weir_syntax::nginx::{Directive, Scope};

/// Named groups of servers.
pub(super) type Upstreams<'a> = BTreeMap<&'a str, &'a Directive>;

pub(super) fn upstreams(block: &[Directive]) -> Upstreams<'_> {
    let named = block.iter().filter(|directive| directive.is("upstream"));
    named.map(|directive| (directive.arg(), directive)).collect()
}

/// The target of a `proxy_pass` or `grpc_pass`.
#[derive(Debug)]
pub(super) struct Target {
    /// The target's service, or services by weight.
    pub action: Action,
    /// The replacement of the location's prefix, if the URL has a path.
    pub uri: Option<String>,
    /// `$proxy_host`; `None`: it differs between shares.
    pub authority: Option<String>,
    /// nginx's default `Host`. `None`: it differs between shares, and each share sets its own.
    pub host: Option<String>,
}

/// Returns the target of a `proxy_pass` or `grpc_pass`. The error says why it has no counterpart, and what to do.
pub(super) fn target(
    module: Module,
    directive: &Directive,
    scope: &Scope<'_>,
    upstreams: &Upstreams<'_>,
    splits: &mut [Split<'_>],
    document: &mut Document,
    notes: &mut Notes,
) -> Result<Target, String> {
    let known = Known { set: scope.variables.clone(), ..Known::default() };
    let mut address = resolved(directive.arg(), &known);
    // These variables stand for the request's own path.
    for own in ["${request_uri}", "${uri}${is_args}${args}", "${uri}"] {
        address = address.strip_suffix(own).map(str::to_owned).unwrap_or(address);
    }
    if let Some(split) = splits.iter_mut().find(|split| split.decides(&address)) {
        let services = document.services.len();
        let mut one = |address: &str| one(module, directive, address, scope, upstreams, document, notes);
        let target = divided(module, &address, split, &mut one);
        match &target {
            Ok(target) => {
                split.is_used = true;
                split.remark(&target.action, notes);
            }
            Err(_) => document.services.truncate(services),
        }
        return target;
    }
    if address.contains('$') {
        return Err("the server depends on variables; write a [service.NAME] and a [[route]] for each".into());
    }
    let One { service, uri, authority, host } =
        one(module, directive, &address, scope, upstreams, document, notes)?;
    Ok(Target { action: Action::Service(service), uri, authority: Some(authority), host: Some(host) })
}

/// Returns the target of a `split_clients` variable; `one` returns the service of an address.
fn divided(
    module: Module,
    address: &str,
    split: &Split<'_>,
    one: &mut dyn FnMut(&str) -> Result<One, String>,
) -> Result<Target, String> {
    let mut shares: Vec<Share> = Vec::new();
    let mut found: Vec<One> = Vec::new();
    for (address, weight) in split.values(address) {
        let to = match scheme_of(module, &address)?.1 {
            // nginx responds with 500 if there is no host.
            rest if rest.is_empty() || rest.starts_with('/') => Destination::Status(500),
            _ => {
                let one = one(&address)?;
                let to = Destination::Service(one.service.clone());
                found.push(one);
                to
            }
        };
        let host = found.last().map(|one| one.host.clone()).filter(|_| to != Destination::Status(500));
        match shares.iter_mut().find(|known| known.to == to) {
            Some(known) if known.host == host => known.weight += weight,
            Some(_) => return Err("two of its values have one server; write a [[route]]".to_owned()),
            None => shares.push(Share { to, weight, host }),
        }
    }
    let first = found.first().ok_or("none of its values is a server")?;
    if found.iter().any(|one| one.uri != first.uri) {
        return Err("the paths of its addresses differ; write a [[route]] for each".to_owned());
    }
    let is_same = |of: fn(&One) -> &String| found.iter().all(|one| of(one) == of(first));
    let authority = is_same(|one| &one.authority).then(|| first.authority.clone());
    let host = is_same(|one| &one.host).then(|| first.host.clone());
    if host.is_some() {
        shares.iter_mut().for_each(|share| share.host = None);
    }
    let uri = first.uri.clone();
    let action = match &shares[..] {
        [Share { to: Destination::Service(service), .. }] => Action::Service(service.clone()),
        _ => Action::Split { shares, sticky: split.sticky() },
    };
    Ok(Target { action, uri, authority, host })
}

/// The service of an address.
#[derive(Debug)]
struct One {
    service: String,
    uri: Option<String>,
    authority: String,
    /// The `Host` that nginx sends by default.
    host: String,
}

fn one(
    module: Module,
    directive: &Directive,
    address: &str,
    scope: &Scope<'_>,
    upstreams: &Upstreams<'_>,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<One, String> {
    let (scheme, rest) = scheme_of(module, address)?;
    let (host, uri) = match rest.strip_prefix("unix:") {
        Some(path) => {
            let (path, uri) = path.split_once(':').unwrap_or((path, ""));
            (format!("unix:{path}"), uri)
        }
        None => {
            let (host, uri) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (host.to_owned(), uri)
        }
    };
    let group = upstreams.get(host.as_str()).copied();
    let mut service = match group {
        Some(group) => group_service(group, scheme, document, notes)?,
        None => Service {
            name: service_name(&host),
            servers: vec![Server {
                url: url(scheme, &host, default_port(scheme))?,
                weight: 1,
                backup: false,
            }],
            settings: Table::default(),
            notes: Vec::new(),
            from: directive.at.to_string(),
        },
    };
    let is_http2 = module == Module::Grpc || scope.arg("proxy_http_version") == "2";
    if is_http2 {
        service.settings.flag("http2", true);
    }
    let is_https = service.servers.iter().any(|server| server.url.starts_with("https:"));
    if is_https {
        let tls = tls_towards(module, scope, group.map(|_| host.as_str()), &mut service.notes, notes);
        service.settings.set("tls", Value::Table(tls));
    }
    if let Some(check) = scope.here("health_check") {
        let kind = match is_http2 && check.args.iter().any(|arg| arg == "type=grpc") {
            true => Check::Grpc,
            false => Check::Path,
        };
        service.settings.set("health", Value::Table(health(check, kind, notes)));
    }
    let authority = if host.starts_with("unix:") { "localhost".to_owned() } else { host };
    let uri = (!uri.is_empty()).then(|| uri.to_owned());
    // All servers of a group get the group's name as `Host`, so a retry at another server may keep that `Host`.
    let host = match group.is_some() || authority == "localhost" {
        true => authority.replace('{', "{{").replace('}', "}}"),
        false => "{upstream}".to_owned(),
    };
    Ok(One { service: document.service(service), uri, authority, host })
}

/// Returns the service of a `proxy_pass` in `stream`. The error says why it has no counterpart.
pub(super) fn stream_service(
    to: &str,
    at: &Directive,
    scope: &Scope<'_>,
    upstreams: &Upstreams<'_>,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<String, String> {
    if to.contains('$') {
        return Err("the server depends on variables".to_owned());
    }
    let scheme = if scope.arg("proxy_ssl") == "on" { "tls" } else { "tcp" };
    let group = upstreams.get(to).copied();
    let mut service = match group {
        Some(group) => group_service(group, scheme, document, notes)?,
        None => Service {
            name: service_name(to),
            servers: vec![Server { url: url(scheme, to, 0)?, weight: 1, backup: false }],
            settings: Table::default(),
            notes: Vec::new(),
            from: at.at.to_string(),
        },
    };
    if scope.arg("proxy_protocol") == "on" {
        service.settings.text("proxy_protocol", "v1");
    }
    if scheme == "tls" {
        let tls = tls_towards(Module::Proxy, scope, group.map(|_| to), &mut service.notes, notes);
        service.settings.set("tls", Value::Table(tls));
    }
    if let Some(check) = scope.find("health_check") {
        service.settings.set("health", Value::Table(health(check, Check::Connection, notes)));
    }
    Ok(document.service(service))
}

/// Determines the scheme for the service's servers, and returns the rest of the address.
fn scheme_of(module: Module, address: &str) -> Result<(&'static str, &str), String> {
    match (module, address.split_once("://")) {
        (Module::Proxy, Some(("http", rest))) | (Module::Grpc, Some(("grpc", rest))) => Ok(("http", rest)),
        (Module::Proxy, Some(("https", rest))) | (Module::Grpc, Some(("grpcs", rest))) => Ok(("https", rest)),
        (Module::Grpc, None) => Ok(("http", address)),
        (Module::Proxy, None) => Err("expected http:// or https://".to_owned()),
        (module, Some((scheme, _))) => {
            let expected = if module == Module::Grpc { "grpc or grpcs" } else { "http or https" };
            Err(format!("Weir does not speak `{scheme}` to services; expected {expected}"))
        }
    }
}

/// Forms a service name from an address. The name includes the port, so that `app:8080` and `app:8081` differ.
pub(super) fn service_name(host: &str) -> String {
    let host = host.strip_prefix("unix:").map_or(host, |path| path.rsplit('/').next().unwrap_or(path));
    values::name(host)
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

/// Whether servers with this scheme use protocols other than HTTP.
fn is_stream(scheme: &str) -> bool {
    matches!(scheme, "tcp" | "tls")
}

/// Forms a server's URL. Servers of streams must specify a port. Fails if the address is invalid, or a Unix socket for
/// TLS.
pub(crate) fn url(scheme: &str, address: &str, port: u16) -> Result<String, String> {
    if let Some(path) = address.strip_prefix("unix:") {
        if matches!(scheme, "https" | "tls") {
            return Err(format!("Weir speaks cleartext to Unix sockets; use a port for {scheme}"));
        }
        // The size of sun_path (unix(7)).
        return match path.starts_with('/') && path.len() <= 107 {
            true => Ok(format!("unix:{path}")),
            false => Err(format!("`{address}`: expected an absolute path of at most 107 bytes")),
        };
    }
    let (host, given) = match address.rsplit_once(':') {
        Some((host, digits)) if !digits.contains(']') => {
            let port = digits.parse::<u16>().ok().filter(|port| *port > 0);
            (host, Some(port.ok_or_else(|| format!("`{address}`: invalid port"))?))
        }
        _ => (address, None),
    };
    if !values::is_host(host) || host.starts_with("*.") {
        return Err(format!("`{address}`: expected HOST:PORT"));
    }
    if is_stream(scheme) {
        let port = given.ok_or_else(|| format!("`{address}`: expected HOST:PORT"))?;
        return Ok(format!("{scheme}://{host}:{port}"));
    }
    let port = given.unwrap_or(port);
    match port == default_port(scheme) {
        true => Ok(format!("{scheme}://{host}")),
        false => Ok(format!("{scheme}://{host}:{port}")),
    }
}

/// The service of a group, without TLS.
pub(super) fn group_service(
    group: &Directive,
    scheme: &str,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<Service, String> {
    let mut service = Service {
        name: values::name(group.arg()),
        servers: Vec::new(),
        settings: Table::default(),
        notes: Vec::new(),
        from: group.at.to_string(),
    };
    let mut failures: BTreeMap<&str, (u64, &Directive)> = BTreeMap::new();
    let mut most = Vec::new();
    for directive in group.block().iter().filter(|directive| directive.is("server")) {
        let mut server = Server { url: String::new(), weight: 1, backup: false };
        let mut is_down = false;
        for param in directive.args.iter().skip(1) {
            let (name, value) = param.split_once('=').unwrap_or((param, ""));
            match name {
                "weight" => server.weight = value.parse().unwrap_or(1_u64).clamp(1, 1000),
                "backup" => server.backup = true,
                "down" => is_down = true,
                "max_fails" => {
                    failures.extend(value.parse().ok().map(|count| ("failures", (count, directive))));
                }
                // A period of 0 means that nginx never marks the server as failed.
                "fail_timeout" if time(value) == Some(0) => drop(failures.insert("failures", (0, directive))),
                "fail_timeout" => failures.extend(time(value).map(|ms| ("for", (ms, directive)))),
                "slow_start" => failures.extend(time(value).map(|ms| ("slow_return", (ms, directive)))),
                "max_conns" => most.extend(value.parse::<u64>().ok().filter(|most| *most > 0)),
                // Weir always re-resolves names and reuses connections.
                "resolve" => {}
                _ => notes.loss(&directive.at, param, "no counterpart; remove it, or see [service.NAME]"),
            }
        }
        if is_down {
            service.notes.push(format!("{}: `{}` is down, and left out", directive.at, directive.arg()));
            continue;
        }
        // The default port in a group is 80 for either scheme.
        match url(scheme, directive.arg(), 80) {
            Ok(url) => service.servers.push(Server { url, ..server }),
            Err(why) => notes.loss(&directive.at, directive.text(), why),
        }
    }
    if service.servers.is_empty() {
        return Err(format!("the group `{}` has no server that is up", group.arg()));
    }
    service.promote_backups();
    balance(group, scheme, &mut service, notes);
    eject(&failures, &mut service);
    service.limit_connections(&most, notes);
    if !is_stream(scheme) {
        pool(group, &mut service, document, notes);
    }
    Ok(service)
}

fn eject(failures: &BTreeMap<&str, (u64, &Directive)>, service: &mut Service) {
    let mut eject = Table::default();
    if let Some((count, _)) = failures.get("failures") {
        eject.number("failures", (*count).min(1_000_000));
    }
    for name in ["for", "slow_return"] {
        if let Some(text) = failures.get(name).and_then(|(ms, _)| values::duration(*ms)) {
            eject.text(name, text);
        }
    }
    if !eject.is_empty() {
        service.settings.set("eject", Value::Table(eject));
    }
}

fn balance(group: &Directive, scheme: &str, service: &mut Service, notes: &mut Notes) {
    for directive in group.block() {
        let settings = &mut service.settings;
        match directive.name.as_str() {
            "least_conn" | "least_time" => settings.text("balance", "least-in-flight"),
            "random" => settings.text("balance", "two-choices"),
            "ip_hash" => settings.text("balance", "hash"),
            "hash" => match hash(directive.arg()).filter(|on| on == "client" || !is_stream(scheme)) {
                Some(on) => {
                    settings.text("balance", "hash");
                    if on != "client" {
                        settings.text("hash", on);
                    }
                }
                None => {
                    let message = match is_stream(scheme) {
                        true => "Weir hashes the client's address; the servers take turns: set `balance`",
                        false => "Weir hashes the client, a field or a cookie; set `hash` to one of them",
                    };
                    notes.loss(&directive.at, directive.text(), message);
                }
            },
            "sticky" if !is_stream(scheme) && directive.arg() == "cookie" && directive.args.len() > 1 => {
                settings.text("sticky", directive.args[1].clone());
                if directive.args.len() > 2 {
                    let message =
                        "the cookie's attributes are Path=/, HttpOnly, SameSite=Lax, Secure with TLS";
                    notes.loss(&directive.at, directive.text(), message);
                }
            }
            "server" | "keepalive" | "keepalive_requests" | "keepalive_time" | "keepalive_timeout" => {}
            "zone" | "queue" | "ntlm" | "state" | "resolver" | "resolver_timeout" => {
                notes.quiet(&directive.name);
            }
            _ => audit::audit(std::slice::from_ref(directive), notes),
        }
    }
}

fn hash(key: &str) -> Option<String> {
    match key.trim_start_matches('$') {
        "remote_addr" | "binary_remote_addr" => Some("client".to_owned()),
        name => {
            let field = name.strip_prefix("http_").map(|name| format!("header:{}", name.replace('_', "-")));
            field.or_else(|| Some(format!("cookie:{}", name.strip_prefix("cookie_")?)))
        }
    }
    .filter(|on| on.split_once(':').is_none_or(|(_, name)| values::is_token(name)))
}

fn pool(group: &Directive, service: &mut Service, document: &mut Document, notes: &mut Notes) {
    let mut pool = Table::default();
    for directive in group.block() {
        let (arg, at) = (directive.arg(), directive.at.to_string());
        match directive.name.as_str() {
            "keepalive" => {
                if let Ok(count) = arg.parse::<u32>() {
                    pool.number("max_idle", count.into());
                }
            }
            "keepalive_requests" => {
                if let Ok(count) = arg.parse::<u32>() {
                    pool.number("max_requests", count.max(1).into());
                }
            }
            "keepalive_time" => {
                if let Some(text) = time(arg).and_then(values::duration) {
                    pool.text("max_age", text);
                }
            }
            "keepalive_timeout" => {
                if let Some(ms) = time(arg) {
                    document.timeouts.set("pooled", ms, &format!("keepalive_timeout ({at})"), notes);
                }
            }
            _ => {}
        }
    }
    if !pool.is_empty() {
        service.settings.set("pool", Value::Table(pool));
    }
}
