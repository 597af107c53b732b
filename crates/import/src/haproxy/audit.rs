//! The audit: every keyword is translated, needs no counterpart, or is reported.

use super::{Config, rules};
use crate::note::Notes;
use weir_syntax::haproxy::{Line, Section};

/// Whether a section serves only HAProxy's own statistics.
pub(super) fn is_statistics(section: &Section) -> bool {
    let has = |word: &str| section.lines.iter().any(|line| line.word(0) == word);
    let serves = ["server", "default_backend", "use_backend", "server-template"].iter().any(|word| has(word));
    let metrics = section.lines.iter().any(|line| line.text().contains("prometheus-exporter"));
    (has("stats") || metrics) && !serves
}

/// Reports keywords that no other part of the translation reads.
pub(super) fn audit(config: &Config<'_>, notes: &mut Notes) {
    for section in config.sections {
        match section.kind.as_str() {
            "frontend" | "listen" if is_statistics(section) => {
                let message = "Weir has metrics, health and state at an address of their own; set [admin]";
                notes.loss(&section.at, format!("{} {}", section.kind, section.name), message);
            }
            "global" => section.lines.iter().for_each(|line| global(line, notes)),
            "frontend" | "backend" | "listen" if !config.is_http(section) => {
                section.lines.iter().filter(|line| !is_of_tcp(line)).for_each(|line| proxy(line, notes));
            }
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
            "crt-store" => notes.loss(&section.at, "crt-store", "write a [[certificate]] for each"),
            "mailers" => notes.loss(&section.at, "mailers", "Weir sends no mails; let your monitoring do it"),
            kind => notes.quiet(kind),
        }
    }
}

/// Whether a line belongs to the rules of `mode tcp` that admit connections; their translation reports such lines
/// itself.
fn is_of_tcp(line: &Line) -> bool {
    line.word(0) == "tcp-request"
        && ["accept", "expect-proxy", "reject", "silent-drop"].contains(&line.word(2))
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
    const QUIET: [&str; 39] = [
        "busy-polling",
        "chroot",
        "close-spread-time",
        "cpu-map",
        "daemon",
        "debug",
        "default-path",
        "description",
        "expose-experimental-directives",
        "fd-hard-limit",
        "gid",
        "group",
        "hard-stop-after",
        "localpeer",
        "log",
        "log-send-hostname",
        "log-tag",
        "master-worker",
        "maxconn",
        "maxpipes",
        "nbproc",
        "no",
        "node",
        "noepoll",
        "nosplice",
        "numa-cpu-mapping",
        "pidfile",
        "quiet",
        "server-state-base",
        "server-state-file",
        "set-dumpable",
        "spread-checks",
        "ssl-dh-param-file",
        "stats",
        "strict-limits",
        "thread-groups",
        "uid",
        "ulimit-n",
        "user",
    ];
    match line.word(0) {
        word if READ.contains(&word) => {}
        "lua-load" | "lua-load-per-thread" => {
            notes.loss(&line.at, line.text(), "Weir runs no scripts; let a service do it");
        }
        "stats" if line.word(1) == "socket" => notes.quiet("stats socket"),
        word if QUIET.contains(&word) || word.starts_with("tune.") || word.starts_with("mworker-") => {
            notes.quiet(word);
        }
        _ => notes.loss(&line.at, line.text(), UNKNOWN),
    }
}

const UNKNOWN: &str = "unknown to `weir import`; look for a counterpart in docs/GATEWAY.md";

fn proxy(line: &Line, notes: &mut Notes) {
    const READ: [&str; 15] = [
        "acl",
        "balance",
        "bind",
        "cookie",
        "default-server",
        "default_backend",
        "http-check",
        "mode",
        "server",
        "server-template",
        "stick",
        "timeout",
        "unique-id-header",
        "log",
        "option",
    ];
    const QUIET: [&str; 16] = [
        "backlog",
        "bind-process",
        "capture",
        "declare",
        "description",
        "fullconn",
        "guid",
        "hash-type",
        "http-reuse",
        "id",
        "log-tag",
        "max-keep-alive-queue",
        "no",
        "retries",
        "stick-table",
        "unique-id-format",
    ];
    const LOSSES: [(&str, &str); 16] = [
        ("log-format", "the access log's lines are JSON objects with Weir's names; set [log] format"),
        ("log-format-sd", "the access log's lines are JSON objects with Weir's names; set [log] format"),
        ("maxconn", "Weir limits the connections of all listeners together; see [limits]"),
        ("rate-limit", "Weir limits the requests of a client or of a route; set `rate`"),
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
        "timeout" => timeout(line, notes),
        "http-check" if !["send", "expect"].contains(&line.word(1)) => {
            notes.loss(&line.at, line.text(), "health checks are GET requests, or connections; set health");
        }
        "tcp-request" => tcp_request(line, notes),
        "retries" | "hash-type" | "stick-table" => notes.quiet(word),
        word if READ.contains(&word) || rules::KEYWORDS.iter().any(|rules| rules.contains(&word)) => {}
        word if QUIET.contains(&word) => notes.quiet(word),
        _ => notes.loss(&line.at, line.text(), UNKNOWN),
    }
}

/// Options that make HAProxy accept malformed requests: the name since 3.0 and the former one.
pub(super) const ACCEPTS_REQUESTS: [&str; 2] =
    ["accept-unsafe-violations-in-http-request", "accept-invalid-http-request"];

/// Options that make HAProxy accept malformed responses: the name since 3.0 and the former one.
pub(super) const ACCEPTS_ANSWERS: [&str; 2] =
    ["accept-unsafe-violations-in-http-response", "accept-invalid-http-response"];

fn option(line: &Line, notes: &mut Notes) {
    const QUIET: [&str; 41] = [
        "abortonclose",
        "clitcpka",
        "contstats",
        "disable-h2-upgrade",
        "dontlog-normal",
        "dontlognull",
        "forceclose",
        "forwarded",
        "http-ignore-probes",
        "http-keep-alive",
        "http-no-delay",
        "http-pretend-keepalive",
        "http-restrict-req-hdr-names",
        "http-server-close",
        "http-tunnel",
        "http-use-htx",
        "http-use-proxy-header",
        "httpclose",
        "httpslog",
        "idle-close-on-response",
        "independent-streams",
        "log-health-checks",
        "log-separate-errors",
        "logasap",
        "nolinger",
        "persist",
        "prefer-last-server",
        "redispatch",
        "socket-stats",
        "splice-auto",
        "splice-request",
        "splice-response",
        "srvtcpka",
        "ssl-hello-chk",
        "tcp-check",
        "tcp-smart-accept",
        "tcp-smart-connect",
        "tcpka",
        "tcplog",
        "tfo-queue",
        "use-small-buffers",
    ];
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
        name if QUIET.contains(&name) => notes.quiet(&format!("option {name}")),
        _ => notes.loss(&line.at, line.text(), UNKNOWN),
    }
}

fn timeout(line: &Line, notes: &mut Notes) {
    const READ: [&str; 8] =
        ["check", "client", "connect", "http-keep-alive", "http-request", "queue", "server", "tunnel"];
    match line.word(1) {
        name if READ.contains(&name) => {}
        // Weir rejects a request immediately where HAProxy delays the rejection (`tarpit`), and applies its other
        // timeouts to half-closed connections.
        name @ ("client-fin" | "server-fin" | "tarpit") => notes.quiet(&format!("timeout {name}")),
        _ => notes.loss(&line.at, line.text(), UNKNOWN),
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
