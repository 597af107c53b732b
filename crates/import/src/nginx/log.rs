//! Translates `access_log` and `log_format`.

use super::variables::{Piece, pieces};
use crate::model::{Document, Value};
use crate::note::Notes;
use weir_syntax::nginx::{Directive, Scope};

/// Translates the access log: the first one with a fixed file, since Weir writes only one.
pub(super) fn access(http: &Scope<'_>, servers: &[Scope<'_>], document: &mut Document, notes: &mut Notes) {
    let all = std::iter::once(http).chain(servers).flat_map(|scope| scope.all("access_log"));
    let mut chosen: Option<&Directive> = None;
    for directive in all.filter(|directive| directive.arg() != "off") {
        let file = directive.arg();
        match chosen {
            _ if file.starts_with("syslog:") || file.contains('$') => {
                let message = "Weir writes to a file, or to stdout with access = \"-\"; send that on";
                notes.loss(&directive.at, directive.text(), message);
            }
            None => chosen = Some(directive),
            Some(known) if known.arg() == file => {}
            Some(known) => {
                let message = format!("there is one access log, {}, with the host in each line", known.arg());
                notes.loss(&directive.at, directive.text(), message);
            }
        }
    }
    let Some(directive) = chosen else { return };
    let file = match directive.arg() {
        "/dev/stdout" | "/dev/stderr" => "-",
        file => file,
    };
    document.log.text("access", file);
    let name = directive.args.get(1).map_or("combined", String::as_str);
    if name.contains('=') {
        return document.log.text("format", COMBINED);
    }
    let format = http.own().iter().rfind(|format| format.is("log_format") && format.arg() == name);
    match format {
        None if name == "combined" => document.log.text("format", COMBINED),
        None => {}
        Some(format) => {
            let parts = format.args.iter().skip(1).filter(|part| !part.starts_with("escape="));
            let text: String = parts.map(String::as_str).collect();
            if text.trim_start().starts_with('{') {
                notes.remark(
                    "the access log's lines are JSON objects with Weir's names: docs/GATEWAY.md, [log]",
                );
            } else {
                document.log.text("format", template(&text, format, notes));
            }
        }
    }
}

/// Sets the access log of `stream` servers, unless HTTP has one: Weir writes both to one file in one format.
pub(super) fn of_streams<'a>(
    servers: impl Iterator<Item = &'a Scope<'a>>,
    document: &mut Document,
    notes: &mut Notes,
) {
    let all = servers.flat_map(|scope| scope.all("access_log"));
    for directive in all.filter(|directive| directive.arg() != "off") {
        let file = match directive.arg() {
            "/dev/stdout" | "/dev/stderr" => "-",
            file => file,
        };
        let known = document.log.get("access").cloned();
        if file.starts_with("syslog:") || file.contains('$') {
            let message = "Weir writes to a file, or to stdout with access = \"-\"; send that on";
            notes.loss(&directive.at, directive.text(), message);
        } else if known.is_none() {
            document.log.text("access", file);
            notes.remark("the access log has a line in JSON for each TCP connection: docs/GATEWAY.md, [log]");
        } else if known != Some(Value::Text(file.to_owned())) {
            let message = "there is one access log, which has TCP connections, too";
            notes.loss(&directive.at, directive.text(), message);
        }
    }
}

const COMBINED: &str =
    "{client} - - [{time}] \"{method} {target} {protocol}\" {status} {sent} \"{referer}\" \"{user_agent}\"";

fn template(text: &str, format: &Directive, notes: &mut Notes) -> String {
    let mut out = String::new();
    let mut unknown = Vec::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(plain) => {
                out.extend(plain.replace('{', "{{").replace('}', "}}").chars().filter(|c| !c.is_control()));
            }
            Piece::Variable(name) => match variable(&name) {
                Some(variable) => out.push_str(variable),
                None => {
                    out.push('-');
                    unknown.push(format!("${name}"));
                }
            },
        }
    }
    if out.contains("_ms}") {
        notes.remark("times in the access log are in milliseconds");
    }
    if !unknown.is_empty() {
        let message = format!("{} of the log have no counterpart, and are `-`", unknown.join(", "));
        notes.loss(&format.at, format!("log_format {}", format.arg()), message);
    }
    out
}

fn variable(name: &str) -> Option<&'static str> {
    Some(match name {
        "remote_addr" | "proxy_protocol_addr" | "realip_remote_addr" => "{client}",
        "remote_port" => "{client_port}",
        // Weir authenticates no users, and logs the forwarded client address as the client.
        "remote_user" | "http_x_forwarded_for" => "-",
        "time_local" | "time_iso8601" | "msec" => "{time}",
        "request" => "{method} {target} {protocol}",
        "request_method" => "{method}",
        "request_uri" | "uri" => "{target}",
        "server_protocol" => "{protocol}",
        "status" | "upstream_status" => "{status}",
        "body_bytes_sent" | "bytes_sent" => "{sent}",
        "request_length" => "{received}",
        "http_referer" => "{referer}",
        "http_user_agent" => "{user_agent}",
        "host" | "http_host" | "server_name" => "{host}",
        "request_time" => "{total_ms}",
        "upstream_response_time" | "upstream_header_time" => "{wait_ms}",
        "upstream_connect_time" => "{connect_ms}",
        "upstream_addr" => "{server}",
        "proxy_host" => "{service}",
        "ssl_protocol" => "{tls_version}",
        "ssl_cipher" => "{tls_suite}",
        "request_id" => "{request_id}",
        _ => return None,
    })
}
