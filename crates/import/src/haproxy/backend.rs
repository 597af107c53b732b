//! Translates HAProxy's backends to services.

use super::Config;
use super::audit::ACCEPTS_ANSWERS;
use super::health;
use super::http2::{self, Offer};
use crate::model::{Document, Server, Service, Table, Value};
use crate::nginx::server_url;
use crate::note::Notes;
use crate::{tls, values};
use std::collections::BTreeMap;
use weir_syntax::haproxy::{Line, Section};

/// Server parameters that take a value.
const VALUED: [&str; 52] = [
    "addr",
    "agent-addr",
    "agent-inter",
    "agent-port",
    "agent-send",
    "alpn",
    "ca-file",
    "check-alpn",
    "check-proto",
    "check-sni",
    "ciphers",
    "ciphersuites",
    "cookie",
    "crl-file",
    "crt",
    "curves",
    "downinter",
    "error-limit",
    "fall",
    "fastinter",
    "guid",
    "hash-key",
    "id",
    "init-addr",
    "inter",
    "log-proto",
    "maxconn",
    "maxqueue",
    "minconn",
    "namespace",
    "npn",
    "observe",
    "on-error",
    "on-marked-down",
    "on-marked-up",
    "pool-low-conn",
    "pool-max-conn",
    "pool-purge-delay",
    "port",
    "proto",
    "redir",
    "resolve-net",
    "resolve-opts",
    "resolve-prefer",
    "resolvers",
    "rise",
    "slowstart",
    "sni",
    "source",
    "ssl-max-ver",
    "ssl-min-ver",
    "verify",
];
const VALUED_TOO: [&str; 7] = ["weight", "verifyhost", "track", "tcp-ut", "socks4", "ws", "shard"];

/// Server parameters that need no setting in Weir.
const QUIET: [&str; 29] = [
    "check",
    "check-ssl",
    "cookie",
    "downinter",
    "enabled",
    "fastinter",
    "guid",
    "id",
    "init-addr",
    "minconn",
    "maxqueue",
    "no-verifyhost",
    "pool-max-conn",
    "no-check-ssl",
    "no-ssl-reuse",
    "no-sslv3",
    "no-tls-tickets",
    "no-tlsv10",
    "no-tlsv11",
    "on-marked-down",
    "on-marked-up",
    "pool-low-conn",
    "pool-purge-delay",
    "resolve-net",
    "resolve-opts",
    "resolve-prefer",
    "resolvers",
    "tfo",
    "check-sni",
];

pub(super) type Params = BTreeMap<String, String>;

/// The protocol of a service's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http,
    /// Another protocol, as bytes.
    Tcp,
    /// TLS between client and server, forwarded without decryption.
    Passthrough,
}

/// The service of a backend; `None` if no server remains.
pub(super) fn service(
    section: &Section,
    config: &Config<'_>,
    protocol: Protocol,
    document: &mut Document,
    notes: &mut Notes,
) -> Option<String> {
    let mut service = Service {
        name: values::name(&section.name),
        servers: Vec::new(),
        settings: Table::default(),
        notes: Vec::new(),
        from: section.at.to_string(),
    };
    let mut defaults = Params::new();
    let inherited = section.defaults.and_then(|index| config.sections.get(index));
    for line in inherited.map(|section| &section.lines).into_iter().flatten().chain(&section.lines) {
        if line.word(0) == "default-server" {
            defaults.extend(params(&line.words[1..]));
        }
    }
    let is_http = protocol == Protocol::Http;
    let mut first: Option<Params> = None;
    let mut most = Vec::new();
    for line in &section.lines {
        let is_template = line.word(0) == "server-template";
        if line.word(0) != "server" && !is_template {
            continue;
        }
        let (address, rest) = match is_template {
            true => (line.word(3), 4),
            false => (line.word(2), 3),
        };
        if is_template {
            let message = "Weir takes the first address of a name; name each server";
            notes.loss(&line.at, line.text(), message);
        }
        let mut params_of = defaults.clone();
        params_of.extend(params(line.words.get(rest..).unwrap_or_default()));
        if params_of.contains_key("disabled") {
            service.notes.push(format!("{}: `{}` is disabled, and left out", line.at, line.word(1)));
            continue;
        }
        unknown(&params_of, line, notes);
        let is_tls = params_of.contains_key("ssl");
        let scheme = match (protocol, is_tls) {
            (Protocol::Http, true) => "https",
            (Protocol::Http, false) => "http",
            (Protocol::Tcp, true) => "tls",
            (Protocol::Tcp | Protocol::Passthrough, false) => "tcp",
            (Protocol::Passthrough, true) => {
                let message =
                    "Weir adds no TLS to that of the client, so the server is left out; remove `ssl`";
                notes.loss(&line.at, line.text(), message);
                continue;
            }
        };
        let url = match address_of(address, scheme) {
            Ok(url) => url,
            Err(why) => {
                notes.loss(&line.at, line.text(), why);
                continue;
            }
        };
        let first = first.get_or_insert_with(|| params_of.clone());
        if first.contains_key("ssl") != is_tls {
            let message =
                "the servers of a service all have TLS, or none does; make it one of another service";
            notes.loss(&line.at, line.text(), message);
            continue;
        }
        if !is_http && differs(first, &params_of) {
            let message =
                "the servers of a service share TLS and the PROXY protocol; make it one of another service";
            notes.loss(&line.at, line.text(), message);
            continue;
        }
        if Offer::of(first).is_http2() != Offer::of(&params_of).is_http2() && is_http {
            let message =
                "the servers of a service all speak HTTP/2, or none does; make it one of another service";
            notes.loss(&line.at, line.text(), message);
            continue;
        }
        most.extend(
            params_of.get("maxconn").and_then(|most| most.parse::<u64>().ok()).filter(|most| *most > 0),
        );
        let weight = params_of.get("weight").and_then(|weight| weight.parse::<u64>().ok()).unwrap_or(1);
        service.servers.push(Server {
            url,
            weight: weight.min(1000),
            backup: params_of.contains_key("backup"),
        });
    }
    // Equal weights, often 100 each, have no effect.
    if let Some(common) = service.servers.first().map(|server| server.weight)
        && common > 0
        && service.servers.iter().all(|server| server.weight == common)
    {
        service.servers.iter_mut().for_each(|server| server.weight = 1);
    }
    let first = first?;
    if service.servers.is_empty() {
        return None;
    }
    service.promote_backups();
    balance(section, config, is_http, &mut service, notes);
    sticky(section, config, is_http, &mut service, notes);
    service.limit_connections(&most, notes);
    if !is_http && !most.is_empty() {
        notes.remark(format!(
            "service {}: connections above max_connections end at once; in HAProxy, those above maxconn wait",
            service.name
        ));
    }
    if first.contains_key("check") {
        let health = match is_http {
            true => health::of_requests(section, config, &first, &service.name, notes),
            false => health::of_connections(section, config, &first, notes),
        };
        service.settings.set("health", Value::Table(health));
    }
    let slow = first.get("slowstart").and_then(|time| values::time(time, 1)).and_then(values::duration);
    if let Some(text) = slow {
        let mut eject = Table::default();
        eject.text("slow_return", text);
        service.settings.set("eject", Value::Table(eject));
    }
    for (param, version) in [("send-proxy", "v1"), ("send-proxy-v2", "v2")] {
        if first.contains_key(param) {
            service.settings.text("proxy_protocol", version);
        }
    }
    match is_http {
        true => requests(section, config, &first, &mut service, notes),
        false if first.contains_key("alpn") => {
            let message = "TLS to the servers of a listener with `tcp` has no ALPN; remove it";
            notes.loss(&section.at, format!("alpn of {}", section.name), message);
        }
        false => {}
    }
    if first.contains_key("ssl") {
        let table = tls_towards(&first, section, config, &mut service.notes, notes);
        service.settings.set("tls", Value::Table(table));
    }
    Some(document.service(service))
}

/// Sets the service's keys about HTTP, such as `http2` and `accept`.
fn requests(
    section: &Section,
    config: &Config<'_>,
    first: &Params,
    service: &mut Service,
    notes: &mut Notes,
) {
    let is_http2 = http2::set(first, &section.at, service, notes);
    // Repairs apply only to the text format of HTTP/1.1.
    if !is_http2 && ACCEPTS_ANSWERS.iter().any(|option| config.find(section, &["option", option]).is_some()) {
        service.settings.texts("accept", ["bare-lf", "obs-fold", "space-before-colon"]);
        notes.remark(format!(
            "service {}: of the malformed responses that HAProxy accepts, Weir accepts those that it can repair; accept allows more",
            service.name
        ));
    }
}

/// Whether two servers need different settings of their service.
fn differs(a: &Params, b: &Params) -> bool {
    const OF_SERVICE: [&str; 12] = [
        "alpn",
        "ca-file",
        "ciphers",
        "ciphersuites",
        "crt",
        "send-proxy",
        "send-proxy-v2",
        "sni",
        "ssl-max-ver",
        "ssl-min-ver",
        "verify",
        "verifyhost",
    ];
    OF_SERVICE.iter().any(|name| a.get(*name) != b.get(*name))
}

fn params(words: &[String]) -> Params {
    let params = super::params(words, &[&VALUED, &VALUED_TOO]).into_iter();
    params.map(|(name, value)| (name, value.unwrap_or_default())).collect()
}

fn unknown(params: &Params, line: &Line, notes: &mut Notes) {
    const READ: [&str; 22] = [
        "alpn",
        "backup",
        "ca-file",
        "ciphers",
        "ciphersuites",
        "crt",
        "disabled",
        "fall",
        "inter",
        "maxconn",
        "proto",
        "rise",
        "send-proxy",
        "send-proxy-v2",
        "slowstart",
        "sni",
        "ssl",
        "ssl-max-ver",
        "ssl-min-ver",
        "verify",
        "verifyhost",
        "weight",
    ];
    for name in params.keys() {
        if !READ.contains(&name.as_str()) && !QUIET.contains(&name.as_str()) {
            let message = "no counterpart; remove it, or see [service.NAME]";
            notes.loss(&line.at, format!("server {} {name}", line.word(1)), message);
        }
    }
}

fn address_of(address: &str, scheme: &str) -> Result<String, String> {
    if address.contains(['$', '%']) {
        return Err("the address is a variable; write it in `servers`".into());
    }
    let address = ["ipv4@", "ipv6@", "tcp@", "tcp4@", "tcp6@"]
        .iter()
        .find_map(|family| address.strip_prefix(family))
        .unwrap_or(address);
    let unix = address.strip_prefix("unix@").or_else(|| address.starts_with('/').then_some(address));
    if let Some(path) = unix {
        return server_url(scheme, &format!("unix:{path}"), 80);
    }
    // HAProxy separates the port of an IPv6 address with a colon, without brackets.
    let ipv6 = address.rsplit_once(':').filter(|(host, _)| host.parse::<std::net::Ipv6Addr>().is_ok());
    let address = match ipv6 {
        Some((host, port)) => format!("[{host}]:{port}"),
        None => address.to_owned(),
    };
    if address.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
        return Err(
            "the server has no port, so HAProxy takes the client's; write HOST:PORT in `servers`".into()
        );
    }
    server_url(scheme, &address, 80)
}

fn balance(section: &Section, config: &Config<'_>, is_http: bool, service: &mut Service, notes: &mut Notes) {
    let Some(line) = config.find(section, &["balance"]) else { return };
    let algorithm = line.word(1);
    let header = algorithm.strip_prefix("hdr(").and_then(|rest| rest.strip_suffix(')'));
    let on = match (algorithm, header) {
        ("roundrobin" | "static-rr" | "", _) => return,
        ("leastconn", _) => return service.settings.text("balance", "least-in-flight"),
        ("source", _) => None,
        (random, _) if random.starts_with("random") => {
            return service.settings.text("balance", "two-choices");
        }
        (_, Some(name)) if is_http && values::is_token(name) => Some(format!("header:{name}")),
        ("hash", _) if line.word(2) == "src" => None,
        ("hash", _) if is_http && line.word(2).starts_with("req.hdr(") => {
            let name = line.word(2).trim_start_matches("req.hdr(").trim_end_matches(')');
            Some(format!("header:{name}")).filter(|_| values::is_token(name))
        }
        _ => {
            let message = match is_http {
                true => {
                    "Weir hashes the client, a field or a cookie; round-robin it is, set `balance` and `hash`"
                }
                false => "Weir hashes the client's address; round-robin it is, set `balance`",
            };
            return notes.loss(&line.at, line.text(), message);
        }
    };
    service.settings.text("balance", "hash");
    if let Some(on) = on {
        service.settings.text("hash", on);
    }
}

fn sticky(section: &Section, config: &Config<'_>, is_http: bool, service: &mut Service, notes: &mut Notes) {
    if let Some(line) = config.find(section, &["cookie"]).filter(|_| is_http) {
        let inserts = line.has("insert");
        match inserts && values::is_token(line.word(1)) {
            true => {
                service.settings.text("sticky", line.word(1));
                let others = ["domain", "maxidle", "maxlife", "attr", "postonly", "preserve"];
                if line.words.iter().any(|word| others.contains(&word.as_str())) {
                    let message =
                        "the cookie's attributes are Path=/, HttpOnly, SameSite=Lax, Secure with TLS";
                    notes.loss(&line.at, line.text(), message);
                }
            }
            false => {
                let message = "Weir sets a cookie of its own; set `sticky` to its name";
                notes.loss(&line.at, line.text(), message);
            }
        }
    }
    for line in section.lines.iter().filter(|line| line.word(0) == "stick") {
        let message = "Weir has no tables; set balance = \"hash\", or `sticky`";
        notes.loss(&line.at, line.text(), message);
    }
}

fn tls_towards(
    first: &Params,
    section: &Section,
    config: &Config<'_>,
    comments: &mut Vec<String>,
    notes: &mut Notes,
) -> Table {
    let mut table = Table::default();
    let param = |name: &str| first.get(name).map(String::as_str);
    // HAProxy verifies servers by default.
    let skips = param("verify") == Some("none")
        || (param("verify").is_none()
            && config.global("ssl-server-verify").is_some_and(|line| line.word(1) == "none"));
    match (skips, param("ca-file")) {
        (true, _) => {
            comments.push(
                "HAProxy is told not to verify servers, nor does this; better: tls.ca = \"CA.pem\" in place of tls.insecure"
                    .to_owned(),
            );
            table.flag("insecure", true);
        }
        (false, Some(file)) if file != "@system-ca" => table.text("ca", config.path(file, "ca-base")),
        (false, _) => {}
    }
    let fixed =
        |text: &str| text.strip_prefix("str(").and_then(|text| text.strip_suffix(')')).map(str::to_owned);
    let name = param("verifyhost").map(str::to_owned).or_else(|| fixed(param("sni")?));
    if let Some(name) = name.filter(|name| values::is_host(name)) {
        table.text("name", name);
    } else if param("sni").is_some() {
        let message = "the name is fixed in Weir; set tls.name of the service";
        notes.loss(&section.at, format!("sni {}", param("sni").unwrap_or_default()), message);
    }
    if let Some(file) = param("crt") {
        let file = config.path(file, "crt-base");
        table.text("certificate", file.clone());
        table.text("key", file);
    }
    let offer = tls::Offer {
        versions: super::bind::versions(param("ssl-min-ver"), param("ssl-max-ver")),
        ciphers: param("ciphers").unwrap_or_default(),
        ciphersuites: param("ciphersuites").unwrap_or_default(),
    };
    if let Err(why) = offer.write(&mut table) {
        notes.loss(&section.at, format!("ciphers of {}", section.name), why);
    }
    table
}
