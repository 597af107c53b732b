//! `upstream`, `proxy_pass` and `grpc_pass` as services.

use super::module::Module;
use super::variables::{Known, resolved};
use super::{audit, time};
use crate::model::{Document, Server, Service, Table, Value};
use crate::note::Notes;
use crate::{tls, values};
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
    /// The service's name.
    pub service: String,
    /// The replacement of the location's prefix, if the URL has a path.
    pub uri: Option<String>,
    /// `$proxy_host`.
    pub authority: String,
    /// The target is a group, whose servers have other names than [`Target::authority`].
    pub is_group: bool,
}

/// The service of a `proxy_pass` or `grpc_pass`. Errors: the reason why there is none, and what to do.
pub(super) fn target(
    module: Module,
    directive: &Directive,
    scope: &Scope<'_>,
    upstreams: &Upstreams<'_>,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<Target, String> {
    let known = Known { set: scope.variables.clone(), ..Known::default() };
    let mut address = resolved(directive.arg(), &known);
    // These repeat the request's own path.
    for own in ["${request_uri}", "${uri}${is_args}${args}", "${uri}"] {
        address = address.strip_suffix(own).map(str::to_owned).unwrap_or(address);
    }
    if address.contains('$') {
        return Err("the server depends on variables; write a [service.NAME] and a [[route]] for each".into());
    }
    let (scheme, rest) = scheme_of(module, &address)?;
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
    Ok(Target { service: document.service(service), uri, authority, is_group: group.is_some() })
}

/// The service of a `proxy_pass` in `stream`. Errors: the reason why there is none.
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

/// The scheme of the service's servers, and the rest of an address.
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

/// A service name from an address. It includes the port, so that `app:8080` and `app:8081` differ.
pub(super) fn service_name(host: &str) -> String {
    let host = host.strip_prefix("unix:").map_or(host, |path| path.rsplit('/').next().unwrap_or(path));
    values::name(host)
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

/// Whether servers with this scheme speak other protocols than HTTP.
fn is_stream(scheme: &str) -> bool {
    matches!(scheme, "tcp" | "tls")
}

/// A server's URL; those of streams need a port of their own. Errors: not a valid address.
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

/// A service's `tls`. `group`: the name that nginx verifies and sends instead of the servers' names.
fn tls_towards(
    module: Module,
    scope: &Scope<'_>,
    group: Option<&str>,
    comments: &mut Vec<String>,
    notes: &mut Notes,
) -> Table {
    let mut table = Table::default();
    let verifies = module.arg(scope, "proxy_ssl_verify") == "on";
    if verifies {
        let trusted = module.arg(scope, "proxy_ssl_trusted_certificate");
        if !trusted.is_empty() {
            table.text("ca", trusted);
        }
    } else {
        comments.push(
            "nginx does not verify servers unless told, nor does this; better: tls.ca = \"CA.pem\" in place of tls.insecure"
                .to_owned(),
        );
        table.flag("insecure", true);
    }
    let name = module.find(scope, "proxy_ssl_name");
    match name {
        Some(directive) if directive.arg().contains('$') && directive.arg() != "$proxy_host" => {
            notes.loss(
                &directive.at,
                directive.text(),
                "the name is fixed in Weir; set tls.name of the service",
            );
        }
        Some(directive) if directive.arg() != "$proxy_host" => table.text("name", directive.arg()),
        _ => {
            if let Some(group) = group.filter(|group| verifies && values::is_host(group)) {
                table.text("name", group);
            }
        }
    }
    for (key, name) in [("certificate", "proxy_ssl_certificate"), ("key", "proxy_ssl_certificate_key")] {
        if let Some(directive) = module.find(scope, name) {
            table.text(key, directive.arg());
        }
    }
    if (table.get("certificate").is_some()) != (table.get("key").is_some()) {
        table.0.retain(|(key, _)| key != "certificate" && key != "key");
    }
    let versions =
        module.find(scope, "proxy_ssl_protocols").map(|directive| &directive.args[..]).unwrap_or_default();
    let ciphers = module.find(scope, "proxy_ssl_ciphers");
    let offer = tls::Offer {
        versions: versions.iter().filter_map(|name| tls::version(name)).collect(),
        ciphers: ciphers.map_or("", Directive::arg),
        ciphersuites: "",
    };
    if let (Err(why), Some(directive)) = (offer.write(&mut table), ciphers) {
        notes.loss(&directive.at, directive.text(), why);
    }
    table
}

/// What a health check does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Path,
    Grpc,
    /// It connects, with TLS it makes a handshake.
    Connection,
}

fn health(check: &Directive, kind: Check, notes: &mut Notes) -> Table {
    let mut table = Table::default();
    match kind {
        Check::Path => table.text("path", "/"),
        Check::Grpc => table.text("grpc", ""),
        // The default of nginx.
        Check::Connection => table.text("every", "5s"),
    }
    for arg in &check.args {
        let Some((name, value)) = arg.split_once('=') else { continue };
        match name {
            "uri" if value.starts_with('/') && kind == Check::Path => table.text("path", value),
            "match" | "port" if kind == Check::Connection => {
                notes.loss(&check.at, arg, "a check is a connection to the server's own port; remove it");
            }
            "grpc_service" if kind == Check::Grpc => match values::is_grpc_service(value) {
                true => table.text("grpc", value),
                false => {
                    notes.loss(
                        &check.at,
                        arg,
                        "no name of a gRPC service; the check is about the whole server",
                    );
                }
            },
            "grpc_status" => {
                let message =
                    "a check passes if the server reports SERVING, and has no other status; remove it";
                notes.loss(&check.at, arg, message);
            }
            "interval" => {
                if let Some(text) = time(value).and_then(values::duration) {
                    table.text("every", text);
                }
            }
            "fails" | "passes" => {
                let key = if name == "fails" { "fall" } else { "rise" };
                if let Ok(count) = value.parse::<u32>() {
                    table.number(key, count.max(1).into());
                }
            }
            _ => {}
        }
    }
    table
}
