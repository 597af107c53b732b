//! Changes to fields: `proxy_set_header`, `add_header`, `proxy_hide_header`, `expires`.

use super::module::Module;
use super::time;
use super::upstream::Target;
use super::variables::{Known, line, resolved};
use crate::model::{Document, Edits};
use crate::note::Notes;
use crate::values::{is_framing, is_token};
use weir_syntax::nginx::Scope;

/// The translation of a location's directives for requests.
pub(super) struct Request {
    pub edits: Edits,
    /// Whether the location forwards WebSocket upgrades.
    pub is_upgraded: bool,
    /// Whether a directive sets `Host`, in place of nginx's default.
    pub has_host: bool,
}

pub(super) fn request(
    module: Module,
    scope: &Scope<'_>,
    target: &Target,
    known: &Known,
    document: &mut Document,
    notes: &mut Notes,
) -> Request {
    let (mut edits, mut is_upgraded, mut has_host) = (Edits::default(), false, false);
    for directive in module.all(scope, "proxy_set_header") {
        let [name, value] = &directive.args[..] else {
            notes.loss(&directive.at, directive.text(), "expected a field and its value");
            continue;
        };
        let lower = name.to_ascii_lowercase();
        let value = plain(&resolved(value, known));
        let same = format!("$http_{}", lower.replace('-', "_"));
        match (lower.as_str(), value.as_str()) {
            ("host", "$host" | "$http_host" | "$host:$server_port" | "$http_host:$server_port") => {
                has_host = true;
            }
            ("host", "$proxy_host" | "$proxy_host:$proxy_port" | "") => {}
            ("upgrade", _) => is_upgraded = true,
            // Weir frames messages itself and forwards upgrades.
            (
                "connection" | "te" | "trailer" | "keep-alive" | "proxy-connection" | "transfer-encoding",
                _,
            ) => {}
            ("content-length" | "expect", "") => {}
            ("x-forwarded-for", "$proxy_add_x_forwarded_for") => notes.remark(FORWARDED_FOR),
            ("x-forwarded-for", "$remote_addr" | "$proxy_protocol_addr" | "$realip_remote_addr") => {}
            ("x-forwarded-for", value) if value.contains("$http_x_forwarded_for") => {
                notes.remark(FORWARDED_FOR);
            }
            ("x-forwarded-proto", "$scheme") => {}
            ("x-forwarded-host", "$host" | "$http_host" | "$host:$server_port") => {}
            ("x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host", value) if value == same => {
                let message =
                    "Weir forwards what proxies in front say only with trusted_proxies of the listener";
                notes.loss(&directive.at, directive.text(), message);
            }
            (_, value) if value == same => edits.forget(name),
            (name, _) if is_framing(name) || !is_token(name) => {
                let message = "the field frames messages or belongs to a connection; Weir writes it itself";
                notes.loss(&directive.at, directive.text(), message);
            }
            (_, "") => edits.drop(name),
            (_, "$request_id") if is_id(name, document) => {
                document.request_id = Some(name.clone());
            }
            (lower, value) => match line(value, known) {
                Ok(text) => {
                    if text.contains("{request_id}") && document.request_id.is_none() {
                        document.request_id = Some("X-Request-Id".to_owned());
                    }
                    has_host |= lower == "host";
                    edits.put(name, text);
                }
                Err(variable) => {
                    let message =
                        format!("`{variable}` has no counterpart; see the variables in docs/GATEWAY.md");
                    notes.loss(&directive.at, directive.text(), message);
                }
            },
        }
    }
    if !has_host && let Some(host) = &target.host {
        edits.put("Host", host.clone());
    }
    Request { edits, is_upgraded, has_host }
}

const FORWARDED_FOR: &str = "X-Forwarded-For has the client's address alone, not what the client sent; behind another proxy, name it in trusted_proxies";

/// Whether the field can carry the request ID.
fn is_id(name: &str, document: &Document) -> bool {
    document.request_id.as_ref().is_none_or(|known| known.eq_ignore_ascii_case(name))
}

/// The text without optional braces around variables, for comparisons.
fn plain(text: &str) -> String {
    use super::variables::{Piece, pieces};
    let pieces = pieces(text);
    let next_is_name = |at: usize| match pieces.get(at + 1) {
        Some(Piece::Text(text)) => text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'),
        _ => false,
    };
    let piece = |(at, piece): (usize, &Piece)| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable(name) if next_is_name(at) => format!("${{{name}}}"),
        Piece::Variable(name) => format!("${name}"),
    };
    pieces.iter().enumerate().map(piece).collect()
}

/// Returns the edits of the response's fields. `module` forwards to the servers; it is `None` for a generated response,
/// whose Content-Type is returned separately.
pub(super) fn response(
    scope: &Scope<'_>,
    known: &Known,
    module: Option<Module>,
    notes: &mut Notes,
) -> (Edits, Option<String>) {
    let (mut edits, mut content_type) = (Edits::default(), None);
    let is_own = module.is_none();
    if let Some(module) = module {
        for directive in module.all(scope, "proxy_hide_header") {
            let name = directive.arg();
            if is_token(name) && !is_framing(name) {
                edits.drop(name);
            }
        }
    }
    expires(scope, &mut edits, notes);
    for directive in scope.all("add_header") {
        let (name, value) = (directive.arg(), directive.args.get(1).map_or("", String::as_str));
        if value.is_empty() {
            continue;
        }
        if name.eq_ignore_ascii_case("alt-svc") {
            notes.loss(
                &directive.at,
                directive.text(),
                "it announces HTTP/3, which Weir does not speak; nothing to do",
            );
            continue;
        }
        if is_framing(name) || !is_token(name) {
            let message = "the field frames messages or belongs to a connection; Weir writes it itself";
            notes.loss(&directive.at, directive.text(), message);
            continue;
        }
        let text = match line(value, known) {
            Ok(text) if is_constant(&text) => text,
            _ => {
                let message =
                    "fields of responses have no variables; write the value, or let the service send it";
                notes.loss(&directive.at, directive.text(), message);
                continue;
            }
        };
        if is_own && name.eq_ignore_ascii_case("content-type") {
            content_type = Some(value.to_owned());
            continue;
        }
        if directive.args.get(2).is_none_or(|arg| arg != "always") && !is_own {
            notes.remark("add_header without `always` is for successes and redirects in nginx; here it is for all responses");
        }
        match edits.add.get(name) {
            Some(known) if *known != text => {
                let message = "a route adds one field of a name; let the service send the other";
                notes.loss(&directive.at, directive.text(), message);
            }
            _ => {
                // `proxy_hide_header` removes the server's field, so `add_header` replaces it.
                let is_hidden = edits.remove.iter().any(|hidden| hidden.eq_ignore_ascii_case(name));
                match is_hidden {
                    true => edits.put(name, text),
                    false => drop(edits.add.insert(name.to_owned(), text)),
                }
            }
        }
    }
    (edits, content_type)
}

/// Whether a template has no variable.
fn is_constant(template: &str) -> bool {
    !template.replace("{{", "").replace("}}", "").contains('{')
}

/// Translates `expires` to Cache-Control, which takes precedence over Expires (RFC 9111 section 5.3).
fn expires(scope: &Scope<'_>, edits: &mut Edits, notes: &mut Notes) {
    let Some(directive) = scope.find("expires") else { return };
    let value = match directive.arg() {
        "off" => return,
        "max" => "max-age=315360000".to_owned(),
        "epoch" => "no-cache".to_owned(),
        negative if negative.starts_with('-') => "no-cache".to_owned(),
        text => match time(text.trim_start_matches('+')) {
            Some(ms) if directive.args.len() == 1 => format!("max-age={}", ms / 1000),
            _ => {
                let message = "the time depends on the response; let the service send Cache-Control";
                notes.loss(&directive.at, directive.text(), message);
                return;
            }
        },
    };
    edits.put("Cache-Control", value);
}
