//! Translates HAProxy's `bind` lines to listeners.

use super::Config;
use super::audit::ACCEPTS_REQUESTS;
use super::region::Entry;
use crate::model::{Certificate, Document, Listener, Table};
use crate::note::Notes;
use crate::{tls, values};
use std::collections::BTreeMap;
use weir_syntax::haproxy::{Line, Section};
use weir_tls::Version;

/// Bind parameters that take a value.
const VALUED: [&str; 30] = [
    "alpn",
    "backlog",
    "ca-file",
    "ca-ignore-err",
    "ca-sign-file",
    "ciphers",
    "ciphersuites",
    "crl-file",
    "crt",
    "crt-ignore-err",
    "crt-list",
    "curves",
    "ecdhe",
    "gid",
    "group",
    "id",
    "interface",
    "level",
    "maxconn",
    "mode",
    "mss",
    "name",
    "namespace",
    "nice",
    "npn",
    "process",
    "proto",
    "ssl-max-ver",
    "ssl-min-ver",
    "thread",
];
const VALUED_TOO: [&str; 6] = ["tls-ticket-keys", "uid", "user", "verify", "tcp-ut", "severity-output"];

const QUIET: [&str; 27] = [
    "allow-0rtt",
    "alpn",
    "backlog",
    "defer-accept",
    "ecdhe",
    "expose-fd",
    "gid",
    "group",
    "id",
    "level",
    "maxconn",
    "mss",
    "name",
    "nice",
    "no-alpn",
    "no-sslv3",
    "no-tlsv10",
    "no-tlsv11",
    "npn",
    "process",
    "proto",
    "prefer-client-ciphers",
    "tfo",
    "thread",
    "uid",
    "user",
    "v6only",
];

/// Parameters with their values; some occur several times.
type Params = BTreeMap<String, Vec<String>>;

/// The versions from a minimum to a maximum; empty for Weir's default, which is both.
pub(super) fn versions(least: Option<&str>, most: Option<&str>) -> Vec<Version> {
    match (least, most) {
        (Some("TLSv1.3"), _) => vec![Version::Tls13],
        (_, Some("TLSv1.2")) => vec![Version::Tls12],
        _ => Vec::new(),
    }
}

/// The protocol of a listener's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    Http,
    /// Any protocol, as bytes.
    Bytes,
}

/// The listeners of a frontend, with the properties that its rules need.
pub(super) fn listeners(
    section: &Section,
    config: &Config<'_>,
    serves: Serves,
    document: &mut Document,
    notes: &mut Notes,
) -> Vec<Entry> {
    let mut entries: Vec<(Entry, Params, Listener)> = Vec::new();
    for line in section.lines.iter().filter(|line| line.word(0) == "bind") {
        let params = params(line.words.get(2..).unwrap_or_default());
        for name in params.keys() {
            if !READ.contains(&name.as_str()) && !QUIET.contains(&name.as_str()) {
                notes.loss(
                    &line.at,
                    format!("bind {name}"),
                    "no counterpart; remove it, or see [listener.NAME]",
                );
            }
        }
        for address in line.word(1).split(',') {
            let binds = addresses(address, &params);
            if binds.is_empty() {
                let message = "expected ADDRESS:PORT, at most 100 ports or a path; set `bind`";
                notes.loss(&line.at, format!("bind {address}"), message);
            }
            for (bind, port) in binds {
                add(bind, port, &params, line, section, &mut entries);
            }
        }
    }
    let count = entries.len();
    let mut out = Vec::new();
    for (mut entry, params, mut listener) in entries {
        let wanted = match (count, entry.is_tls, entry.ports.first()) {
            (1, ..) => section.name.clone(),
            (_, true, Some(443)) => format!("{}-https", section.name),
            (_, false, Some(80)) => format!("{}-http", section.name),
            (_, _, Some(port)) => format!("{}-{port}", section.name),
            (_, _, None) => format!("{}-unix", section.name),
        };
        listener.name = document.listener_name(&values::name(&wanted));
        entry.listener = listener.name.clone();
        if let Some(mode) = params.get("mode").and_then(|mode| mode.first())
            && listener.bind.iter().any(|bind| bind.starts_with("unix:"))
            && u32::from_str_radix(mode, 8).is_ok_and(|mode| mode <= 0o777)
            && mode.len() <= 4
        {
            listener.settings.text("mode", mode.clone());
        }
        match serves {
            Serves::Http if !may_be_h2(&params) => listener.settings.flag("http2", false),
            Serves::Bytes if entry.is_tls && params.contains_key("alpn") => {
                let message = "a listener with `tcp` has no ALPN; nothing to do unless clients insist on it";
                notes.loss(&section.at, "bind alpn", message);
            }
            Serves::Http | Serves::Bytes => {}
        }
        if params.contains_key("accept-proxy") {
            let unix = listener.bind.iter().all(|bind| bind.starts_with("unix:"));
            match unix {
                true => listener.settings.text("proxy_protocol", "unix"),
                false => {
                    listener.settings.texts("proxy_protocol", ["0.0.0.0/0", "::/0"]);
                    notes.remark(format!(
                        "listener {}: HAProxy takes the PROXY protocol from all; name your load balancers in proxy_protocol",
                        listener.name
                    ));
                }
            }
        }
        if serves == Serves::Http
            && ACCEPTS_REQUESTS.iter().any(|option| config.find(section, &["option", option]).is_some())
        {
            listener.settings.texts("accept", ["raw-utf8-target"]);
            notes.remark(format!(
                "listener {}: of what HAProxy accepts in requests, Weir accepts UTF-8 in targets; accept has more",
                listener.name
            ));
        }
        if entry.is_tls {
            let (tls, certificates) = listener_tls(&params, section, config, document, notes);
            listener.tls = Some(tls);
            listener.present(certificates);
        }
        document.listeners.push(listener);
        out.push(entry);
    }
    out
}

/// Whether clients may speak HTTP/2: HAProxy allows it unless `alpn`, `no-alpn` or `proto` exclude it.
fn may_be_h2(params: &Params) -> bool {
    let has = |name: &str, wanted: &str| {
        params.get(name).is_none_or(|given| given.iter().any(|list| list.split(',').any(|one| one == wanted)))
    };
    has("alpn", "h2") && has("proto", "h2") && !params.contains_key("no-alpn")
}

const READ: [&str; 19] = [
    "accept-proxy",
    "ca-file",
    "ciphers",
    "ciphersuites",
    "crl-file",
    "crt",
    "crt-list",
    "curves",
    "mode",
    "no-tls-tickets",
    "ssl",
    "ssl-max-ver",
    "ssl-min-ver",
    "strict-sni",
    "v4v6",
    "verify",
    "tls-ticket-keys",
    "force-tlsv12",
    "force-tlsv13",
];

fn params(words: &[String]) -> Params {
    let mut params = Params::new();
    for (name, value) in super::params(words, &[&VALUED, &VALUED_TOO]) {
        params.entry(name).or_default().extend(value);
    }
    params
}

/// Adds a bind. Binds with equal parameters and ports form one listener.
fn add(
    bind: String,
    port: Option<u16>,
    params: &Params,
    line: &Line,
    section: &Section,
    entries: &mut Vec<(Entry, Params, Listener)>,
) {
    let ports: Vec<u16> = port.into_iter().collect();
    let is_alike =
        |(entry, known, _): &&mut (Entry, Params, Listener)| known == params && entry.ports == ports;
    if let Some((_, _, listener)) = entries.iter_mut().find(is_alike) {
        if !listener.bind.contains(&bind) {
            listener.bind.push(bind);
        }
        return;
    }
    let listener = Listener::new(section.name.clone(), vec![bind], line.at.to_string());
    let entry = Entry { listener: section.name.clone(), is_tls: params.contains_key("ssl"), ports };
    entries.push((entry, params.clone(), listener));
}

fn addresses(text: &str, params: &Params) -> Vec<(String, Option<u16>)> {
    let plain =
        ["ipv4@", "ipv6@", "tcp@", "tcp4@", "tcp6@"].iter().find_map(|family| text.strip_prefix(family));
    let address = plain.unwrap_or(text);
    let unix = address.strip_prefix("unix@").or_else(|| address.starts_with('/').then_some(address));
    if let Some(path) = unix {
        let fits = path.starts_with('/') && path.len() <= 107;
        return if fits { vec![(format!("unix:{path}"), None)] } else { Vec::new() };
    }
    let Some((host, ports)) = address.rsplit_once(':') else { return Vec::new() };
    let host = host.trim_matches(['[', ']']);
    let is_ipv6 = host.parse::<std::net::Ipv6Addr>().is_ok();
    let hosts = match host {
        "" | "*" => vec!["0.0.0.0".to_owned()],
        "::" if params.contains_key("v4v6") => vec!["[::]".to_owned(), "0.0.0.0".to_owned()],
        host if is_ipv6 => vec![format!("[{host}]")],
        host if values::is_host(host) && !host.starts_with("*.") => vec![host.to_owned()],
        _ => return Vec::new(),
    };
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) else { return Vec::new() };
    /// The maximum number of ports in a range.
    const MOST: usize = 100;
    if (first..=last).len() > MOST {
        return Vec::new();
    }
    let ports = || first..=last;
    hosts.iter().flat_map(|host| ports().map(move |port| (format!("{host}:{port}"), Some(port)))).collect()
}

fn listener_tls(
    params: &Params,
    section: &Section,
    config: &Config<'_>,
    document: &mut Document,
    notes: &mut Notes,
) -> (Table, Vec<usize>) {
    let (mut table, mut own) = (Table::default(), Vec::new());
    let param = |name: &str| params.get(name).and_then(|values| values.first()).map(String::as_str);
    let global = |name: &str| config.global(name).map(|line| line.word(1));
    let options: Vec<&str> = config
        .global("ssl-default-bind-options")
        .map(|line| line.words.iter().skip(1).map(String::as_str).collect())
        .unwrap_or_default();
    let option = |name: &str| {
        let at = options.iter().position(|option| *option == name)?;
        options.get(at + 1).copied()
    };
    let least = param("ssl-min-ver").or(option("ssl-min-ver"));
    let most = param("ssl-max-ver").or(option("ssl-max-ver"));
    let mut versions = versions(least, most);
    for (name, version) in [("force-tlsv12", Version::Tls12), ("force-tlsv13", Version::Tls13)] {
        if params.contains_key(name) || options.contains(&name) {
            versions = vec![version];
        }
    }
    if least.is_some_and(|least| !matches!(least, "TLSv1.2" | "TLSv1.3")) {
        notes.loss(&section.at, "ssl-min-ver", "Weir accepts TLS 1.2 and 1.3; older clients are rejected");
    }
    let offer = tls::Offer {
        versions,
        ciphers: param("ciphers").or(global("ssl-default-bind-ciphers")).unwrap_or_default(),
        ciphersuites: param("ciphersuites").or(global("ssl-default-bind-ciphersuites")).unwrap_or_default(),
    };
    if let Err(why) = offer.write(&mut table) {
        notes.loss(&section.at, format!("ciphers of {}", section.name), why);
    }
    if params.contains_key("prefer-client-ciphers") || options.contains(&"prefer-client-ciphers") {
        table.text("suite_order", "client");
    }
    if let Some(list) = param("curves").or(global("ssl-default-bind-curves")) {
        let (groups, unknown) = tls::groups(list);
        if !unknown.is_empty() {
            notes.loss(&section.at, "curves", format!("Weir has no group {}", unknown.join(", ")));
        }
        if !groups.is_empty() {
            table.texts("groups", groups);
        }
    }
    if params.contains_key("no-tls-tickets") || options.contains(&"no-tls-tickets") {
        table.number("tickets", 0);
    }
    if params.contains_key("tls-ticket-keys") {
        let message =
            "the file's format differs; write secrets with `openssl rand -hex 32` and set tls.ticket_secrets";
        notes.loss(&section.at, "tls-ticket-keys", message);
    }
    if params.contains_key("strict-sni") {
        table.flag("strict_names", true);
    }
    if let Some(file) =
        param("ca-file").filter(|_| param("verify") != Some("none") && param("verify").is_some())
    {
        table.text("client_ca", config.path(file, "ca-base"));
        if param("verify") == Some("optional") {
            table.text("client_certificates", "optional");
        }
        if let Some(file) = param("crl-file") {
            table.text("client_crl", config.path(file, "ca-base"));
        }
    }
    for file in params.get("crt").into_iter().flatten() {
        own.extend(certificates(file, section, config, document, notes));
    }
    for file in params.get("crt-list").into_iter().flatten() {
        match config.reader.read(&config.folder.join(file)) {
            Ok(text) => {
                let lines =
                    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                for line in lines {
                    if line.contains("verify required") || line.contains("verify optional") {
                        let message = "client certificates are a listener's setting in Weir, not a name's, SO NO CLIENT IS ACCEPTED without one; give the name an address of its own";
                        notes.loss(&section.at, format!("crt-list {file}: {line}"), message);
                        let ca =
                            line.split_once("ca-file ").and_then(|(_, rest)| rest.split([' ', ']']).next());
                        if table.get("client_ca").is_none() {
                            table.text("client_ca", config.path(ca.unwrap_or("clients.pem"), "ca-base"));
                        }
                    }
                    let file = line.split([' ', '\t', '[']).next().unwrap_or_default();
                    own.extend(certificates(file, section, config, document, notes));
                }
            }
            Err(_) => {
                let message = "the file cannot be read; write a [[certificate]] for each of its lines";
                notes.loss(&section.at, format!("crt-list {file}"), message);
            }
        }
    }
    (table, own)
}

/// Adds the certificates of a PEM file with certificate and key, or of a directory of such files; returns their
/// indexes.
fn certificates(
    file: &str,
    section: &Section,
    config: &Config<'_>,
    document: &mut Document,
    notes: &mut Notes,
) -> Vec<usize> {
    let path = config.path(file, "crt-base");
    let listed = config.reader.list(&config.folder.join(&path));
    let mut own = Vec::new();
    let mut add = |chain: String, key: String| {
        let from = section.at.to_string();
        own.push(document.certificate(Certificate { name: None, chain, key, ocsp: None, from }));
    };
    if !listed.is_empty() {
        for file in listed {
            let name = file.display().to_string();
            let is_side = [".key", ".ocsp", ".issuer", ".sctl"].iter().any(|end| name.ends_with(end));
            if !is_side {
                let key = format!("{name}.key");
                let has_key = config.reader.read(std::path::Path::new(&key)).is_ok();
                add(name.clone(), if has_key { key } else { name });
            }
        }
        return own;
    }
    let text = config.reader.read(&config.folder.join(&path)).ok();
    let is_file = text.is_some() || [".pem", ".crt", ".cer"].iter().any(|end| path.ends_with(end));
    if !is_file {
        let message = "if it is a directory, it cannot be read; write a [[certificate]] for each file in it";
        notes.loss(&section.at, format!("crt {file}"), message);
    }
    // If the file has no key, HAProxy reads the adjacent `.key` file.
    let is_alone = text.is_some_and(|text| !text.contains("PRIVATE KEY"));
    let key = if is_alone { format!("{path}.key") } else { path.clone() };
    add(path, key);
    own
}
