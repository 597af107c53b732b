//! Facts from an nginx configuration.

use super::{bytes, is_address, seconds};
use crate::config::place;
use crate::fact::Facts;
use weir_syntax::nginx::{Directive, Scope};

/// The first version that keeps upstream connections alive by default, over HTTP/1.1.
const KEEPS_UPSTREAMS: [u32; 3] = [1, 29, 7];

/// Whether a directive's arguments are a fault.
type IsFault = fn(&[String]) -> bool;

/// The directives whose faults are counted, with the fact's name.
const COUNTED: [(&str, &str, IsFault); 4] = [
    (
        "config.unshared_session_caches",
        "ssl_session_cache",
        |args| matches!(args, [only] if only.starts_with("builtin")),
    ),
    ("config.nodelay_off", "tcp_nodelay", is_off),
    ("config.unbuffered_proxies", "proxy_buffering", is_off),
    ("config.upstream_resumption_off", "proxy_ssl_session_reuse", is_off),
];

pub(super) fn add(facts: &mut Facts, directives: &[Directive]) {
    let all = walk(&Scope::new(directives));
    let found = |name: &'static str| all.iter().map(|(_, one)| *one).filter(move |one| one.is(name));
    let is_cache = |cache: &Directive| !cache.args.iter().any(|kind| matches!(kind.as_str(), "off" | "none"));
    if let Some(http) = directives.iter().find(|one| one.name == "http") {
        logs(facts, http);
    }
    for (fact, name, is_fault) in COUNTED {
        let faults: Vec<&Directive> = found(name).filter(|one| is_fault(&one.args)).collect();
        if let Some(first) = faults.first() {
            facts.add(fact, faults.len() as f64, &place(&first.at));
        }
    }
    for (scope, directive) in &all {
        let Directive { name, args, at, .. } = directive;
        let (first, place) = (directive.arg(), &place(at));
        match name.as_str() {
            "keepalive_timeout" => {
                if let Some(seconds) = seconds(first, 1000) {
                    facts.add_keep_alive(seconds, place);
                }
            }
            "keepalive_requests" => {
                facts.add_known("http.requests_per_connection", first.parse::<f64>().ok(), place);
            }
            "ssl_protocols" => {
                facts.add("tls.offers_1_3", args.iter().any(|version| version == "TLSv1.3"), place);
                let newest = args.iter().filter_map(|version| version.strip_prefix("TLSv")).max();
                facts.add_known("tls.version", newest, place);
            }
            "ssl_ecdh_curve" => facts.add_curves(first, place),
            "ssl_buffer_size" => facts.add_known("config.record_bytes", bytes(first), place),
            "ssl_session_tickets" if first == "off" && !found("ssl_session_cache").any(is_cache) => {
                facts.add_no_sessions(place);
            }
            "worker_processes" => facts.add_known("process.workers", first.parse::<f64>().ok(), place),
            "proxy_pass" => {
                let group = |name: &str| found("upstream").find(|one| one.arg() == name);
                upstream(facts, group, scope, first, place);
            }
            _ => {}
        }
    }
    server_names(facts, &all);
}

/// Counts uses of `proxy_pass` with TLS and without SNI, which nginx sends only if configured. An IP address needs
/// none.
fn server_names(facts: &mut Facts, all: &[(Scope<'_>, &Directive)]) {
    let is_nameless = |(scope, directive): &&(Scope<'_>, &Directive)| {
        let Some(rest) = directive.arg().strip_prefix("https://") else { return false };
        directive.is("proxy_pass") && !is_address(rest) && scope.arg("proxy_ssl_server_name") != "on"
    };
    let nameless: Vec<_> = all.iter().filter(is_nameless).collect();
    if let Some((_, first)) = nameless.first() {
        facts.add("config.upstreams_without_sni", nameless.len() as f64, &place(&first.at));
    }
}

fn is_off(args: &[String]) -> bool {
    args.first().is_some_and(|first| first == "off")
}

/// Counts access logs that are written with a system call per request. nginx writes such a log by default.
fn logs(facts: &mut Facts, http: &Directive) {
    let walked = walk(&Scope::new(http.block()));
    let logs: Vec<&Directive> =
        walked.into_iter().map(|(_, one)| one).filter(|one| one.is("access_log")).collect();
    if logs.is_empty() {
        facts.add("config.unbuffered_logs", 1.0, &format!("{}, nginx's default", place(&http.at)));
        return;
    }
    let is_plain = |log: &&&Directive| {
        let to = log.args.first().map_or("off", String::as_str);
        to != "off"
            && !to.starts_with("syslog:")
            && !log.args.iter().any(|arg| arg.starts_with("buffer=") || arg.starts_with("gzip"))
    };
    let plain: Vec<&&Directive> = logs.iter().filter(is_plain).collect();
    if let Some(first) = plain.first() {
        facts.add("config.unbuffered_logs", plain.len() as f64, &place(&first.at));
    }
}

/// Adds whether the upstream connections of a `proxy_pass` are kept alive.
fn upstream<'a>(
    facts: &mut Facts,
    group: impl Fn(&str) -> Option<&'a Directive>,
    scope: &Scope<'_>,
    url: &str,
    place: &str,
) {
    let Some((_, rest)) = url.split_once("://") else { return };
    let name = rest.split(['/', ':']).next().unwrap_or_default();
    // nginx resolves variables per request.
    if name.contains('$') || name == "unix" {
        return;
    }
    let is_recent = facts.text("product.version").is_some_and(keeps_upstreams);
    let keepalive = match group(name) {
        None if is_recent => return,
        None => return facts.add_upstream_closed(&format!("{place}, not an upstream with keepalive")),
        Some(block) => block.block().iter().find(|one| one.name == "keepalive"),
    };
    match keepalive.map(Directive::arg) {
        Some("0") => return facts.add_upstream_closed(&format!("{place}, keepalive 0")),
        None if !is_recent => {
            return facts.add_upstream_closed(&format!("{place}, no keepalive in upstream {name}"));
        }
        _ => {}
    }
    let version = scope.find("proxy_http_version").map(|one| one.args.concat());
    if version.as_deref() == Some("1.0") || version.is_none() && !is_recent {
        return facts.add_upstream_closed(&format!("{place}, HTTP/1.0 to the upstream"));
    }
    let is_set = |one: &&&Directive| one.arg().eq_ignore_ascii_case("connection");
    let headers = scope.all("proxy_set_header");
    let connection = headers.iter().find(is_set).map(|one| one.args.get(1).map_or("", String::as_str));
    if connection == Some("close") || connection.is_none() && !is_recent {
        facts.add_upstream_closed(&format!("{place}, `Connection: close` to the upstream"));
    }
}

fn keeps_upstreams(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version: [u32; 3] = std::array::from_fn(|_| parts.next().unwrap_or(0));
    version >= KEEPS_UPSTREAMS
}

/// All directives of a scope and its blocks, in the order of the files, with the scope of each.
fn walk<'a>(scope: &Scope<'a>) -> Vec<(Scope<'a>, &'a Directive)> {
    let mut all = Vec::new();
    for directive in scope.own() {
        all.push((scope.clone(), directive));
        all.extend(walk(&scope.within(directive.block())));
    }
    all
}
