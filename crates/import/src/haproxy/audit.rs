//! Every keyword is translated, needs no counterpart, or is reported: none is dropped silently.

use super::parser::{Line, Section};
use super::{Config, rules};
use crate::note::Notes;

/// Whether a section has nothing but HAProxy's own statistics.
pub(super) fn is_statistics(section: &Section) -> bool {
    let has = |word: &str| section.lines.iter().any(|line| line.word(0) == word);
    let serves = ["server", "default_backend", "use_backend", "server-template"].iter().any(|word| has(word));
    let metrics = section.lines.iter().any(|line| line.text().contains("prometheus-exporter"));
    (has("stats") || metrics) && !serves
}

/// Reports what no other part of the translation looks at.
pub(super) fn audit(config: &Config<'_>, notes: &mut Notes) {
    for section in config.sections {
        match section.kind.as_str() {
            "frontend" | "listen" if is_statistics(section) => {
                let message = "Weir has metrics, health and state at an address of their own; set [admin]";
                notes.loss(&section.at, format!("{} {}", section.kind, section.name), message);
            }
            "global" => section.lines.iter().for_each(|line| global(line, notes)),
            "defaults" | "frontend" | "backend" | "listen" => {
                section.lines.iter().for_each(|line| proxy(line, notes));
            }
            "cache" => notes.loss(&section.at, "cache", "Weir does not cache; put a cache behind it"),
            "fcgi-app" => {
                let message = "Weir speaks HTTP to services, not FastCGI; put an HTTP server before it";
                notes.loss(&section.at, "fcgi-app", message);
            }
            "http-errors" => {
                notes.loss(&section.at, "http-errors", "name files in error_pages, without their heads");
            }
            "log-forward" | "program" => {
                notes.loss(&section.at, &section.kind, "no counterpart; leave it to a program of its own");
            }
            kind => notes.quiet(kind),
        }
    }
}

fn global(line: &Line, notes: &mut Notes) {
    const READ: [&str; 9] = [
        "ca-base",
        "crt-base",
        "nbthread",
        "ssl-default-bind-ciphers",
        "ssl-default-bind-ciphersuites",
        "ssl-default-bind-curves",
        "ssl-default-bind-options",
        "ssl-server-verify",
        "unique-id-header",
    ];
    let word = line.word(0);
    if READ.contains(&word) {
        return;
    }
    match word {
        "lua-load" | "lua-load-per-thread" => {
            notes.loss(&line.at, line.text(), "Weir runs no scripts; let a service do it");
        }
        "stats" if line.word(1) == "socket" => notes.quiet("stats socket"),
        word => notes.quiet(word),
    }
}

fn proxy(line: &Line, notes: &mut Notes) {
    const READ: [&str; 34] = [
        "acl",
        "balance",
        "bind",
        "block",
        "cookie",
        "default-server",
        "default_backend",
        "http-after-response",
        "http-check",
        "http-request",
        "http-response",
        "mode",
        "monitor-uri",
        "redirect",
        "reqadd",
        "reqdel",
        "reqdeny",
        "reqidel",
        "reqideny",
        "reqitarpit",
        "reqtarpit",
        "rspadd",
        "rspdel",
        "rspidel",
        "server",
        "server-template",
        "stick",
        "tcp-request",
        "tcp-response",
        "timeout",
        "unique-id-header",
        "use_backend",
        "log",
        "option",
    ];
    const QUIET: [&str; 22] = [
        "backlog",
        "bind-process",
        "capture",
        "declare",
        "description",
        "dispatch-log",
        "fullconn",
        "guid",
        "hash-type",
        "http-reuse",
        "id",
        "log-format",
        "log-format-sd",
        "log-tag",
        "max-keep-alive-queue",
        "maxconn",
        "no",
        "rate-limit",
        "retries",
        "stick-table",
        "unique-id-format",
        "load-server-state-from-file",
    ];
    const LOSSES: [(&str, &str); 12] = [
        ("compression", "Weir does not compress; let the service compress its responses"),
        ("filter", "Weir has no filters"),
        ("errorfile", "Weir has bodies alone: take the head off the file, and name it in error_pages"),
        ("errorfiles", "Weir has bodies alone: take the heads off the files, and name them in error_pages"),
        ("errorloc", "Weir has files for its own error responses: error_pages"),
        ("errorloc302", "Weir has files for its own error responses: error_pages"),
        ("errorloc303", "Weir has files for its own error responses: error_pages"),
        ("monitor", "/ready of [admin] says whether the gateway is well"),
        ("retry-on", "Weir retries what has not left, on up to two more servers; no setting needed"),
        ("source", "Weir does not choose its own address; use the routing table"),
        ("stats", "Weir has metrics, health and state at an address of their own; set [admin]"),
        ("use-server", "servers are not chosen by a rule; make them services of their own"),
    ];
    let word = line.word(0);
    if let Some((_, message)) = LOSSES.iter().find(|(known, _)| *known == word) {
        return notes.loss_once(word, &line.at, line.text(), message);
    }
    match word {
        "option" => option(line, notes),
        "tcp-request" => tcp_request(line, notes),
        "retries" | "hash-type" | "stick-table" => notes.quiet(word),
        word if READ.contains(&word) => {}
        word if QUIET.contains(&word) => notes.quiet(word),
        _ => {
            let message = "unknown to `weir import`; look for a counterpart in docs/GATEWAY.md";
            notes.loss(&line.at, line.text(), message);
        }
    }
}

/// Options by which HAProxy takes requests that break rules, by their name since 3.0 and the one of before.
pub(super) const ACCEPTS_REQUESTS: [&str; 2] =
    ["accept-unsafe-violations-in-http-request", "accept-invalid-http-request"];

/// Likewise answers.
pub(super) const ACCEPTS_ANSWERS: [&str; 2] =
    ["accept-unsafe-violations-in-http-response", "accept-invalid-http-response"];

fn option(line: &Line, notes: &mut Notes) {
    let name = line.word(1);
    match name {
        "httpchk" | "httplog" => {}
        name if ACCEPTS_REQUESTS.contains(&name) || ACCEPTS_ANSWERS.contains(&name) => {}
        "forwardfor" => {
            notes.remark(
                "X-Forwarded-For, -Proto and -Host are always sent to services, in place of the client's own",
            );
        }
        "originalto" => {
            notes.loss(&line.at, line.text(), "the address that the client asked for has no variable");
        }
        "mysql-check" | "pgsql-check" | "redis-check" | "smtpchk" | "ldap-check" | "external-check" => {
            notes.loss(&line.at, line.text(), "health checks are GET requests, or connections; set health");
        }
        "allbackups" => {
            notes.loss(&line.at, line.text(), "all backups are used by turns while no other server is there");
        }
        name => notes.quiet(&format!("option {name}")),
    }
}

fn tcp_request(line: &Line, notes: &mut Notes) {
    let text = line.text();
    let is_hello = text.contains("req_ssl_hello_type") || text.contains("req.ssl_hello_type");
    if rules::rejects_connections(line) {
        return;
    }
    if line.word(1) == "inspect-delay" || is_hello || text.contains("WAIT_END") {
        return notes.quiet("tcp-request for TLS");
    }
    let message =
        "Weir accepts connections of all, and counts no rates; use the firewall, or `client` of a [[route]]";
    notes.loss(&line.at, text, message);
}
