//! The `stream` block: connections that use protocols other than HTTP, and TLS connections by server name.

use super::admission::admitted;
use super::closed::is_guard;
use super::upstream::{Upstreams, stream_service, upstreams};
use super::{listen, listener_tls, passthrough, time};
use crate::access::announced_by;
use crate::model::{Document, Listener, Passthrough, Table, Tcp};
use crate::note::Notes;
use crate::values;
use std::collections::BTreeMap;
use weir_syntax::nginx::{Directive, Scope};

/// The reason why a server is left out: a directive, and the problem with it.
type LeftOut<'a> = (&'a Directive, String);

/// nginx's default of `proxy_timeout`.
const IDLE_MS: u64 = 600_000;

pub(super) fn translate(block: &[Directive], document: &mut Document, notes: &mut Notes) {
    let (stream, groups) = (Scope::new(block), upstreams(block));
    let servers: Vec<_> = block
        .iter()
        .filter(|directive| directive.is("server"))
        .map(|directive| (directive, stream.within(directive.block())))
        .collect();
    // nginx chooses by `server_name` among several servers with the same address.
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for bind in servers.iter().flat_map(|(directive, _)| binds(directive)) {
        *uses.entry(bind).or_default() += 1;
    }
    for (directive, scope) in &servers {
        let is_shared = binds(directive).iter().any(|bind| uses.get(bind).is_some_and(|count| *count > 1));
        let (services, certificates) = (document.services.len(), document.certificates.len());
        let done = match is_shared {
            true => Err((*directive, "several servers have its address".to_owned())),
            false => server(directive, scope, block, &groups, document, notes),
        };
        if let Err((at, why)) = done {
            document.services.truncate(services);
            document.certificates.truncate(certificates);
            let message =
                format!("{why}, so the server of line {} is left out; keep nginx for it", directive.at.line);
            notes.loss(&at.at, at.text(), message);
        }
    }
    for split in block.iter().filter(|directive| directive.is("split_clients")) {
        let message = "a listener with `tcp` has one service; give its servers weights";
        notes.loss(&split.at, split.text(), message);
    }
    super::log::of_streams(servers.iter().map(|(_, scope)| scope), document, notes);
}

/// The addresses of a server, except those for UDP.
fn binds(server: &Directive) -> Vec<String> {
    let listens = server.block().iter().filter(|inner| inner.is("listen") && !has(inner, "udp"));
    listens.flat_map(listen::binds).map(|(bind, _)| bind).collect()
}

fn server<'a>(
    directive: &'a Directive,
    scope: &Scope<'a>,
    block: &'a [Directive],
    groups: &Upstreams<'a>,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<(), LeftOut<'a>> {
    let pass = scope.here("proxy_pass").ok_or_else(|| (directive, "it has no proxy_pass".to_owned()))?;
    if let Some(guard) = scope.from(0).find(|found| is_guard(&found.name) || is_script(&found.name)) {
        return Err((guard, "it may reject or change connections".to_owned()));
    }
    let listens = scope.own().iter().filter(|inner| inner.is("listen"));
    let (udp, listens): (Vec<_>, Vec<_>) = listens.partition(|listen| has(listen, "udp"));
    match udp.first() {
        Some(first) if listens.is_empty() => return Err((first, "Weir forwards no UDP".to_owned())),
        _ => udp.iter().for_each(|listen| {
            notes.loss(&listen.at, listen.text(), "Weir forwards no UDP; keep nginx for it");
        }),
    }
    let admitted = admitted(scope, notes).map_err(|rule| (rule, "the network is invalid".to_owned()))?;
    let trusted: Vec<_> = scope.all("set_real_ip_from");
    let trusted: Vec<_> = trusted.iter().filter_map(|found| values::network(found.arg())).collect();
    let mut listeners = listeners(directive, &listens)?;
    for (listener, listen) in &mut listeners {
        if has(listen, "proxy_protocol") {
            let (networks, is_all) = announced_by(&trusted, &listener.bind);
            if let Some(rule) = scope.all_of(&["allow", "deny"]).first().filter(|_| is_all) {
                let why = "nginx applies it to the load balancer, and Weir to the client in the PROXY protocol header";
                return Err((rule, why.to_owned()));
            }
            if networks != ["unix"] && is_all {
                notes.remark(format!(
                    "listener {}: nginx takes the PROXY protocol from all; name your load balancers in proxy_protocol",
                    listener.name
                ));
            }
            listener.settings.texts("proxy_protocol", networks);
        }
        let is_announced = listener.settings.get("proxy_protocol").is_some();
        if !admitted.write(&listener.bind, is_announced, &mut listener.settings) {
            return Err((directive, "it admits no client".to_owned()));
        }
        let known = document.listeners.iter().flat_map(|known| &known.bind);
        if known.into_iter().any(|known| listener.bind.contains(known)) {
            return Err((listen, "another listener has its address".to_owned()));
        }
    }
    let is_by_name = pass.arg().contains('$');
    let is_tls = listens.iter().any(|listen| has(listen, "ssl"));
    let idle_ms = match scope.find("proxy_timeout") {
        Some(found) => time(found.arg()).filter(|ms| *ms > 0),
        None => Some(IDLE_MS),
    };
    if is_by_name {
        let passthrough = by_name(pass, scope, is_tls, block, groups, document, notes)?;
        if let Some(ms) = idle_ms.filter(|_| scope.find("proxy_timeout").is_some()) {
            document.timeouts.set("tunnel", ms, "proxy_timeout", notes);
        }
        for (listener, _) in &mut listeners {
            listener.passthrough.clone_from(&passthrough);
        }
    } else {
        let service =
            stream_service(pass.arg(), pass, scope, groups, document, notes).map_err(|why| (pass, why))?;
        for (listener, listen) in &mut listeners {
            listener.tcp = Some(Tcp { service: service.clone(), idle_ms });
            if has(listen, "ssl") {
                let (tls, certificates) = terminated(scope, document, notes)?;
                listener.tls = Some(tls);
                listener.present(certificates);
            }
        }
    }
    if let Some(ms) = scope.find("proxy_connect_timeout").and_then(|found| time(found.arg())) {
        document.timeouts.set("connect", ms, "proxy_connect_timeout", notes);
    }
    for (listener, _) in listeners {
        let wanted = if is_by_name { "passthrough".to_owned() } else { listener.name.clone() };
        let name = document.listener_name(&wanted);
        document.listeners.push(Listener { name, ..listener });
    }
    Ok(())
}

/// A listener for each kind of `listen`, with the first directive of the kind.
fn listeners<'a>(
    directive: &'a Directive,
    listens: &[&'a Directive],
) -> Result<Vec<(Listener, &'a Directive)>, LeftOut<'a>> {
    let mut listeners: Vec<(Listener, &Directive)> = Vec::new();
    for listen in listens {
        let binds = listen::binds(listen);
        let Some((_, port)) = binds.first() else { return Err((listen, listen::ADDRESS.to_owned())) };
        let name = port.map_or_else(|| "tcp-unix".to_owned(), |port| format!("tcp-{port}"));
        let binds = binds.iter().map(|(bind, _)| bind.clone());
        let is_alike = |(_, known): &&mut (Listener, &Directive)| {
            ["ssl", "proxy_protocol"].iter().all(|param| has(known, param) == has(listen, param))
        };
        match listeners.iter_mut().find(is_alike) {
            Some((listener, _)) => listener.bind.extend(binds),
            None => {
                let listener = Listener::new(name, binds.collect(), directive.at.to_string());
                listeners.push((listener, listen));
            }
        }
    }
    match listeners.is_empty() {
        true => Err((directive, "it has no address".to_owned())),
        false => Ok(listeners),
    }
}

fn has(listen: &Directive, param: &str) -> bool {
    listen.args.iter().skip(1).any(|arg| arg == param)
}

/// Whether a directive of this name runs a script on each connection.
fn is_script(name: &str) -> bool {
    ["js_access", "js_filter", "js_preread"].contains(&name) || name.contains("_by_lua")
}

/// The services of TLS connections by server name.
fn by_name<'a>(
    pass: &'a Directive,
    scope: &Scope<'a>,
    is_tls: bool,
    block: &'a [Directive],
    groups: &Upstreams<'a>,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<Vec<Passthrough>, LeftOut<'a>> {
    if scope.arg("ssl_preread") != "on" || is_tls {
        let why = "a listener with `tcp` has one service, and this one depends on variables";
        return Err((pass, why.to_owned()));
    }
    if let Some(tls) = scope.find("proxy_ssl").filter(|tls| tls.arg() == "on") {
        return Err((tls, "Weir adds no TLS to that of the client".to_owned()));
    }
    let targets = passthrough::targets(pass, block, notes).map_err(|(at, why)| (at, why.to_owned()))?;
    let mut passthrough: Vec<Passthrough> = Vec::new();
    for (names, to, at) in targets {
        let service = stream_service(&to, at, scope, groups, document, notes).map_err(|why| (at, why))?;
        match passthrough.iter_mut().find(|known| known.service == service) {
            Some(known) => known.names.extend(names),
            None => passthrough.push(Passthrough { names, service }),
        }
    }
    match passthrough.is_empty() {
        true => Err((pass, "no name has a server".to_owned())),
        false => Ok(passthrough),
    }
}

/// Returns the TLS settings of a listener. Fails if the server rejects all handshakes, or asks for client certificates
/// without naming their CAs.
fn terminated<'a>(
    scope: &Scope<'a>,
    document: &mut Document,
    notes: &mut Notes,
) -> Result<(Table, Vec<usize>), LeftOut<'a>> {
    if let Some(rejects) = scope.find("ssl_reject_handshake").filter(|found| found.arg() == "on") {
        return Err((rejects, "it rejects all handshakes".to_owned()));
    }
    let table = listener_tls::settings(scope, notes);
    let asks = scope.find("ssl_verify_client").filter(|found| matches!(found.arg(), "on" | "optional"));
    match asks.filter(|_| table.get("client_ca").is_none()) {
        Some(asks) => Err((asks, "the CAs of the clients are missing".to_owned())),
        None => {
            let certificates = listener_tls::certificates(scope, document, notes);
            Ok((table, certificates))
        }
    }
}
