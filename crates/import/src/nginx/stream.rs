//! The `stream` block: passthrough connections by server name.

use super::listen;
use super::server::host_of_regex;
use super::time;
use super::upstream::{Upstreams, group_service, service_name, upstreams, url};
use crate::model::{Document, Listener, Passthrough, Server, Service, Table};
use crate::note::Notes;
use crate::values;
use weir_syntax::nginx::{Directive, Scope};

pub(super) fn translate(block: &[Directive], document: &mut Document, notes: &mut Notes) {
    let (stream, groups) = (Scope::new(block), upstreams(block));
    for directive in block.iter().filter(|directive| directive.is("server")) {
        let scope = stream.within(directive.block());
        server(directive, &scope, block, &groups, document, notes);
    }
}

fn server(
    directive: &Directive,
    scope: &Scope<'_>,
    block: &[Directive],
    groups: &Upstreams<'_>,
    document: &mut Document,
    notes: &mut Notes,
) {
    let Some(pass) = scope.here("proxy_pass") else { return };
    let listens: Vec<_> = scope.own().iter().filter(|inner| inner.is("listen")).collect();
    let is_by_name = scope.arg("ssl_preread") == "on" && listens.iter().all(|listen| !has(listen, "ssl"));
    if !is_by_name || listens.iter().any(|listen| has(listen, "udp")) {
        let message =
            "Weir passes on TLS by name (ssl_preread) and HTTP, no other TCP or UDP; keep nginx for this";
        return notes.loss(&directive.at, pass.text(), message);
    }
    if let Some(denial) = scope.all_of(&["allow", "deny"]).into_iter().find(|rule| rule.is("deny")) {
        let message =
            "Weir passes on the connections of all clients, so this server is left out; keep nginx for it";
        return notes.loss(&denial.at, denial.text(), message);
    }
    let mut bind = Vec::new();
    for listen in &listens {
        bind.extend(listen::addresses(listen.arg()).into_iter().map(|(bind, _)| bind));
    }
    if bind.is_empty() {
        return notes.loss(&directive.at, "listen", "expected an address; set `bind`");
    }
    let announces = scope.arg("proxy_protocol") == "on";
    let mut passthrough: Vec<Passthrough> = Vec::new();
    for (names, to, at) in targets(pass, block, notes) {
        match service(&to, groups, announces, at, document, notes) {
            Ok(service) => match passthrough.iter_mut().find(|known| known.service == service) {
                Some(known) => known.names.extend(names),
                None => passthrough.push(Passthrough { names, service }),
            },
            Err(why) => notes.loss(&at.at, format!("{} {to}", at.name), why),
        }
    }
    if passthrough.is_empty() {
        return;
    }
    if let Some(ms) = scope.find("proxy_timeout").and_then(|found| time(found.arg())) {
        document.timeouts.set("tunnel", ms, "proxy_timeout", notes);
    }
    if let Some(ms) = scope.find("proxy_connect_timeout").and_then(|found| time(found.arg())) {
        document.timeouts.set("connect", ms, "proxy_connect_timeout", notes);
    }
    let mut settings = Table::default();
    if listens.iter().any(|listen| has(listen, "proxy_protocol")) {
        let networks: Vec<_> =
            scope.all("set_real_ip_from").iter().filter_map(|found| values::network(found.arg())).collect();
        match networks.is_empty() {
            true => settings.texts("proxy_protocol", ["0.0.0.0/0", "::/0"]),
            false => settings.texts("proxy_protocol", networks),
        }
    }
    document.listeners.push(Listener {
        name: document.listener_name("passthrough"),
        bind,
        settings,
        tls: None,
        passthrough,
        notes: Vec::new(),
        from: directive.at.to_string(),
    });
}

fn has(listen: &Directive, param: &str) -> bool {
    listen.args.iter().skip(1).any(|arg| arg == param)
}

/// Server names, their target, and the directive that maps them.
fn targets<'a>(
    pass: &'a Directive,
    block: &'a [Directive],
    notes: &mut Notes,
) -> Vec<(Vec<String>, String, &'a Directive)> {
    let to = pass.arg();
    let Some(variable) = to.strip_prefix('$') else {
        return vec![(vec!["*".to_owned()], to.to_owned(), pass)];
    };
    let (variable, port) =
        variable.split_once(':').map_or((variable, None), |(name, port)| (name, Some(port)));
    let is_map = |map: &&Directive| {
        map.is("map")
            && map.arg() == "$ssl_preread_server_name"
            && map.args.get(1).is_some_and(|name| name.trim_start_matches('$') == variable)
    };
    let Some(map) = block.iter().find(is_map) else {
        let message = "the server depends on variables; name each in the listener's `passthrough`";
        notes.loss(&pass.at, pass.text(), message);
        return Vec::new();
    };
    let mut targets = Vec::new();
    for entry in map.block().iter().filter(|entry| !entry.is("hostnames") && !entry.is("volatile")) {
        let name = entry.name.to_ascii_lowercase();
        let names = match name.as_str() {
            "default" => vec!["*".to_owned()],
            regex if regex.starts_with('~') => {
                host_of_regex(regex[1..].trim_start_matches('*')).unwrap_or_default()
            }
            domain if domain.starts_with('.') => vec![domain[1..].to_owned(), format!("*{domain}")],
            name => vec![name.to_owned()],
        };
        let names: Vec<_> = names.into_iter().filter(|name| name == "*" || values::is_host(name)).collect();
        let target = match port {
            Some(port) => format!("{}:{port}", entry.arg()),
            None => entry.arg().to_owned(),
        };
        match names.is_empty() {
            true => {
                let message =
                    "names are plain, or begin with `*.`; name each in the listener's `passthrough`";
                notes.loss(&entry.at, entry.text(), message);
            }
            // nginx closes connections for names with an empty value, as for unknown names.
            false if entry.arg().is_empty() => {}
            false => targets.push((names, target, entry)),
        }
    }
    targets
}

fn service(
    to: &str,
    groups: &Upstreams<'_>,
    announces: bool,
    at: &Directive,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<String, String> {
    if to.contains('$') {
        return Err("the server depends on variables; name each in the listener's `passthrough`".to_owned());
    }
    let mut service = match groups.get(to) {
        Some(group) => group_service(group, "http", document, notes)?,
        None => Service {
            name: service_name(to),
            servers: vec![Server { url: url("http", to, 443)?, weight: 1, backup: false }],
            settings: Table::default(),
            notes: vec!["TLS passes through undecrypted, hence http".to_owned()],
            from: at.at.to_string(),
        },
    };
    if announces {
        service.settings.text("proxy_protocol", "v1");
    }
    Ok(document.service(service))
}
