//! `listen` directives as listeners, with their servers' TLS settings.

use super::listener_switches::switches;
use super::listener_tls;
use crate::access::{announced_by, of_kind};
use crate::model::{Document, Listener, Table};
use crate::note::Notes;
use crate::values;
use std::collections::BTreeMap;
use weir_syntax::At;
use weir_syntax::nginx::{Directive, Scope};

/// An address and its servers.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    pub bind: String,
    pub port: Option<u16>,
    pub is_tls: bool,
    pub is_announced: bool,
    /// The servers by number, in the order of the file.
    pub servers: Vec<usize>,
    /// The server for unknown server names.
    pub default: usize,
    has_default: bool,
    pub at: At,
}

/// A server's place on a listener.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub listener: String,
    pub port: Option<u16>,
    pub is_tls: bool,
    pub is_default: bool,
    /// Whether the server requires client certificates, but the listener does not.
    pub lacks_certificates: bool,
    /// All servers of the listener, by number.
    pub servers: Vec<usize>,
}

/// The sockets of all servers, in the order of the file.
pub(super) fn sockets(servers: &[Scope<'_>], at: &[At], notes: &mut Notes) -> Vec<Socket> {
    let mut sockets: Vec<Socket> = Vec::new();
    for (number, scope) in servers.iter().enumerate() {
        let implied = Directive {
            name: "listen".to_owned(),
            args: vec!["80".to_owned()],
            block: None,
            at: at.get(number).cloned().unwrap_or(At { file: "".into(), line: 0 }),
        };
        let mut listens: Vec<&Directive> =
            scope.own().iter().filter(|directive| directive.is("listen")).collect();
        if listens.is_empty() {
            listens.push(&implied);
        }
        for directive in listens {
            for socket in parse(directive, scope, number, notes) {
                match sockets.iter_mut().find(|known| known.bind == socket.bind) {
                    None => sockets.push(socket),
                    Some(known) => {
                        known.is_tls |= socket.is_tls;
                        known.is_announced |= socket.is_announced;
                        if !known.servers.contains(&number) {
                            known.servers.push(number);
                        }
                        if socket.has_default && !known.has_default {
                            (known.default, known.has_default) = (number, true);
                        }
                    }
                }
            }
        }
    }
    sockets
}

/// The expected form of an address.
pub(super) const ADDRESS: &str = "expected ADDRESS:PORT, a port, at most 100 ports or unix:PATH; set `bind`";

fn parse(directive: &Directive, scope: &Scope<'_>, number: usize, notes: &mut Notes) -> Vec<Socket> {
    let params: Vec<_> = directive.args.iter().skip(1).map(String::as_str).collect();
    let has = |name: &str| params.contains(&name);
    if has("quic") {
        let message = "Weir speaks HTTP over TCP; clients of HTTP/3 fall back to it, nothing to do";
        notes.loss_once("http3", &directive.at, directive.text(), message);
        return Vec::new();
    }
    let binds = binds(directive);
    if binds.is_empty() {
        notes.loss(&directive.at, directive.text(), ADDRESS);
        return Vec::new();
    }
    let has_default = has("default_server") || has("default");
    let socket = |(bind, port)| Socket {
        bind,
        port,
        is_tls: has("ssl") || scope.arg("ssl") == "on",
        is_announced: has("proxy_protocol"),
        servers: vec![number],
        default: number,
        has_default,
        at: directive.at.clone(),
    };
    binds.into_iter().map(socket).collect()
}

/// The addresses and ports of a `listen`; with `ipv6only=off`, those of both address families. Empty if the directive
/// is invalid.
pub(super) fn binds(listen: &Directive) -> Vec<(String, Option<u16>)> {
    let mut binds = addresses(listen.arg());
    if listen.args.iter().any(|arg| arg == "ipv6only=off") && listen.arg().starts_with("[::]") {
        let ipv4: Vec<_> =
            binds.iter().map(|(bind, port)| (bind.replace("[::]", "0.0.0.0"), *port)).collect();
        binds.extend(ipv4);
    }
    binds
}

/// The maximum number of ports in a range.
const MOST_PORTS: usize = 100;

/// The addresses and ports of a `listen` in Weir's form; none if it is invalid or a range of too many ports.
fn addresses(text: &str) -> Vec<(String, Option<u16>)> {
    if let Some(path) = text.strip_prefix("unix:") {
        let fits = path.starts_with('/') && path.len() <= 107;
        return if fits { vec![(format!("unix:{path}"), None)] } else { Vec::new() };
    }
    let (host, ports) = if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        ("*", text)
    } else {
        match text.rsplit_once(':') {
            Some((host, ports)) if !ports.contains(']') => (host, ports),
            _ => (text, "80"),
        }
    };
    let host = if host == "*" { "0.0.0.0" } else { host };
    if !values::is_host(host) || host.starts_with("*.") {
        return Vec::new();
    }
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) else { return Vec::new() };
    let ports = first..=last;
    if ports.len() > MOST_PORTS {
        return Vec::new();
    }
    ports.map(|port| (format!("{host}:{port}"), Some(port))).collect()
}

/// Writes the listeners, and returns the places of each server.
pub(super) fn listeners(
    sockets: &[Socket],
    servers: &[Scope<'_>],
    document: &mut Document,
    notes: &mut Notes,
) -> BTreeMap<usize, Vec<Place>> {
    let mut places: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
    let mut done: Vec<(Listener, &Socket)> = Vec::new();
    for socket in sockets {
        let is_alike = |known: &Socket| {
            (known.port, known.is_tls, known.is_announced, &known.servers, known.default)
                == (socket.port, socket.is_tls, socket.is_announced, &socket.servers, socket.default)
        };
        if let Some((listener, _)) = done.iter_mut().find(|(_, known)| is_alike(known)) {
            listener.bind.push(socket.bind.clone());
            continue;
        }
        let wanted = match (socket.port, socket.is_tls) {
            (Some(80), _) => "http".to_owned(),
            (Some(443), _) => "https".to_owned(),
            (Some(port), _) => format!("port-{port}"),
            (None, _) => "unix".to_owned(),
        };
        let is_taken = |name: &str| {
            done.iter().any(|(known, _)| known.name == name)
                || document.listeners.iter().any(|known| known.name == name)
        };
        let name = values::unique(&wanted, is_taken);
        let listener = listener(&name, socket, servers, document, notes);
        for number in &socket.servers {
            places.entry(*number).or_default().push(Place {
                listener: name.clone(),
                port: socket.port,
                is_tls: socket.is_tls,
                is_default: socket.default == *number,
                lacks_certificates: socket.is_tls && lacks_certificates(*number, socket.default, servers),
                servers: socket.servers.clone(),
            });
        }
        done.push((listener, socket));
    }
    document.listeners.extend(done.into_iter().map(|(listener, _)| listener));
    places
}

fn listener(
    name: &str,
    socket: &Socket,
    servers: &[Scope<'_>],
    document: &mut Document,
    notes: &mut Notes,
) -> Listener {
    let mut settings = Table::default();
    let empty = Scope::default();
    let scope = servers.get(socket.default).unwrap_or(&empty);
    let bind = vec![socket.bind.clone()];
    let networks = of_kind(&networks(scope, notes), &bind);
    let header = scope.arg("real_ip_header");
    if socket.is_announced {
        let (networks, is_all) = announced_by(&networks, &bind);
        if networks != ["unix"] && is_all {
            notes.remark(format!(
                "listener {name}: nginx takes the PROXY protocol from all; name your load balancers in proxy_protocol"
            ));
        }
        settings.texts("proxy_protocol", networks);
    }
    if !networks.is_empty() && header != "proxy_protocol" {
        settings.texts("trusted_proxies", networks);
        if let Some(directive) =
            scope.find("set_real_ip_from").filter(|_| !header.eq_ignore_ascii_case("x-forwarded-for"))
        {
            let message = "Weir takes the client from X-Forwarded-For of trusted_proxies; make the proxy in front send it";
            notes.loss_once("real_ip_header", &directive.at, "real_ip_header", message);
        }
    }
    let all: Vec<_> = socket.servers.iter().filter_map(|number| servers.get(*number)).collect();
    switches(name, &all, &mut settings, notes);
    // nginx uses `http2` of the default server; if unset, clients may use every version that Weir supports.
    if scope.arg("http2").eq_ignore_ascii_case("off") {
        settings.flag("http2", false);
    }
    let tls = socket.is_tls.then(|| tls(socket, scope, servers, document, notes));
    let (tls, certificates) = tls.unzip();
    let mut listener =
        Listener { settings, tls, ..Listener::new(name.to_owned(), bind, socket.at.to_string()) };
    listener.present(certificates.unwrap_or_default());
    listener
}

fn networks(scope: &Scope<'_>, notes: &mut Notes) -> Vec<String> {
    let mut networks = Vec::new();
    for directive in scope.all("set_real_ip_from") {
        match values::network(directive.arg()) {
            Some(network) => networks.push(network),
            None => notes.loss(&directive.at, directive.text(), "expected a network; name its addresses"),
        }
    }
    networks
}

/// Translates a listener's TLS settings, and the certificates of its servers, the default server's first.
fn tls(
    socket: &Socket,
    scope: &Scope<'_>,
    servers: &[Scope<'_>],
    document: &mut Document,
    notes: &mut Notes,
) -> (Table, Vec<usize>) {
    let mut certificates = Vec::new();
    let mut table = listener_tls::settings(scope, notes);
    if scope.arg("ssl_reject_handshake") == "on" {
        table.flag("strict_names", true);
    }
    let own = client_settings(scope);
    for number in std::iter::once(&socket.default).chain(&socket.servers) {
        let Some(server) = servers.get(*number) else { continue };
        certificates.extend(listener_tls::certificates(server, document, notes));
        if client_settings(server) != own
            && let Some(directive) = server.find("ssl_verify_client")
        {
            let message = "client certificates are a listener's setting in Weir, not a name's, so requests to this server get 403; give it an address of its own";
            notes.loss(&directive.at, directive.text(), message);
        }
    }
    (table, certificates)
}

/// Whether a server requires client certificates with settings that differ from the default server's.
fn lacks_certificates(number: usize, default: usize, servers: &[Scope<'_>]) -> bool {
    let (Some(own), Some(default)) = (servers.get(number), servers.get(default)) else { return false };
    let asks = !matches!(own.arg("ssl_verify_client"), "" | "off");
    asks && client_settings(own) != client_settings(default)
}

fn client_settings<'a>(scope: &Scope<'a>) -> [&'a str; 2] {
    [scope.arg("ssl_verify_client"), scope.arg("ssl_client_certificate")]
}
