//! Decisions before a location's handler: `if`, `allow` and `deny`, `limit_except`, passwords.

use super::closed::{self, closed};
use super::http::Context;
use super::location::{Part, answer};
use super::variables::Known;
use crate::model::{Action, Conditions, Handler};
use crate::pattern::Pattern;
use crate::regex::{around_regex, of_regex};
use crate::values;
use weir_syntax::nginx::{Directive, Scope};

/// The routes for the block's own `if`s, which precede its other routes. Also returns the first `if` without a
/// counterpart that may reject requests.
pub(super) fn ifs<'a>(
    scope: &Scope<'a>,
    known: &Known,
    context: &mut Context<'_>,
) -> (Vec<Part>, Option<&'a Directive>) {
    let (mut parts, mut lost) = (Vec::new(), None);
    for directive in scope.own().iter().filter(|directive| directive.is("if")) {
        match part(directive, scope, known, context) {
            Ok(part) => parts.push(part),
            Err(why) if closed::denies(directive) => {
                let message = format!("{why}. IT MAY TURN REQUESTS AWAY, SO ALL ARE DENIED until then");
                context.notes.loss(&directive.at, directive.text(), message);
                lost = lost.or(Some(directive));
            }
            Err(why) => context.notes.loss(&directive.at, directive.text(), why),
        }
    }
    (parts, lost)
}

fn part(
    directive: &Directive,
    scope: &Scope<'_>,
    known: &Known,
    context: &mut Context<'_>,
) -> Result<Part, String> {
    let inner = scope.within(directive.block());
    let does_more = directive.block().iter().any(|inner| {
        !["return", "rewrite", "set", "add_header", "access_log"].contains(&inner.name.as_str())
    });
    let answers = ["return", "rewrite"].iter().find_map(|name| inner.here(name));
    let answers = answers.filter(|_| !does_more);
    let answers =
        answers.ok_or("only `return` and redirects are translated; write a [[route]] with the condition")?;
    let (mut part, is_more) = condition(&directive.args, closed::denies(directive))?;
    if is_more {
        let message = "routes have no regular expressions, so MORE IS DENIED: all that this could be for; see the routes that name this line";
        context.notes.loss(&directive.at, directive.text(), message);
    }
    part.then = match answers.name.as_str() {
        "return" => answer(answers, &inner, known, context)?,
        _ => super::location::redirect_of_all(answers, &inner, known, context)
            .ok_or("only `return` and redirects of all paths are translated; write a [[route]]")?,
    };
    part.from = directive.at.to_string();
    Ok(part)
}

/// Translates the condition in parentheses. Returns true if the result matches more paths, which is allowed only for a
/// denial. The error says why the condition has no counterpart.
fn condition(args: &[String], denies: bool) -> Result<(Part, bool), String> {
    let text = args.join(" ");
    let inner = text.trim().strip_prefix('(').and_then(|text| text.trim().strip_suffix(')')).unwrap_or(&text);
    let words: Vec<&str> = inner.split_whitespace().collect();
    let none = || {
        "routes have no such condition, only equal values of host, method, fields and clients; write a [[route]]".to_owned()
    };
    let [variable, operator, value] = words[..] else { return Err(none()) };
    let value = value.trim_matches(['"', '\'']);
    let (mut part, mut is_more) = (Part::default(), false);
    match (variable.trim_start_matches('$'), operator) {
        ("host" | "http_host", "=") if values::is_host(value) => {
            part.host = vec![value.to_ascii_lowercase()];
        }
        ("host" | "http_host", "~" | "~*") => {
            let host = super::server::host_of_regex(value).ok_or_else(none)?;
            part.host = host;
        }
        ("scheme", "=") if value == "http" => part.on_cleartext = true,
        ("scheme", "!=") if value == "https" => part.on_cleartext = true,
        ("https", "!=") if value == "on" => part.on_cleartext = true,
        ("https", "=") if value.is_empty() => part.on_cleartext = true,
        ("request_method", "=") if values::is_token(value) => part.when.method = vec![value.to_owned()],
        ("request_method", "~" | "~*") => {
            let names = value.trim_start_matches('^').trim_end_matches('$').trim_matches(['(', ')']);
            let names: Vec<_> = names.split('|').map(str::to_owned).collect();
            if !names.iter().all(|name| values::is_token(name) && !name.contains(['.', '*', '+', '^'])) {
                return Err(none());
            }
            // For other variables, `~` also matches substrings and `~*` ignores case.
            let is_whole = operator == "~" && value.starts_with('^') && value.ends_with('$');
            if denies && !is_whole {
                return Err(none());
            }
            part.when.method = names;
        }
        ("remote_addr", "=") => part.when.client = vec![values::network(value).ok_or_else(none)?],
        ("request_uri" | "uri" | "document_uri", "=") => {
            part.patterns = Some(vec![Pattern::exact(value).ok_or_else(none)?]);
        }
        ("request_uri" | "uri" | "document_uri", "~") => {
            let exact = of_regex(value);
            is_more = exact.is_none();
            let patterns = exact.or_else(|| denies.then(|| around_regex(value, false)));
            part.patterns = Some(patterns.ok_or_else(none)?);
        }
        ("request_uri" | "uri" | "document_uri", "~*") if denies => {
            (part.patterns, is_more) = (Some(around_regex(value, true)), true);
        }
        (name, "=") if name.starts_with("http_") && !value.is_empty() => {
            let field = name.trim_start_matches("http_").replace('_', "-");
            if !values::is_token(&field) || value == "*" {
                return Err(none());
            }
            part.when.headers.insert(field, value.to_owned());
        }
        _ => return Err(none()),
    }
    Ok((part, is_more))
}

/// Translates a location: its rules for clients, methods and passwords precede its handler.
pub(super) fn guarded(scope: &Scope<'_>, then: Handler, context: &mut Context<'_>) -> Vec<Part> {
    let rules = scope.all_of(&["allow", "deny"]);
    let password = closed::guard(scope);
    let is_any = scope.arg("satisfy") == "any" && !rules.is_empty();
    let is_service = matches!(then.action, Action::Service(_) | Action::Split { .. });
    let mut handler = then;
    if let Some(directive) = password.filter(|_| is_service) {
        let message = "Weir does not check credentials, so requests get 403; let the service ask for them, then set `service`";
        context.notes.loss(&directive.at, directive.text(), message);
        if !is_any {
            handler = closed(handler, directive);
        }
    }
    let mut parts = Vec::new();
    for directive in rules {
        let forbidden = denied(directive);
        let is_allowed = directive.is("allow");
        let then = if is_allowed { handler.clone() } else { forbidden };
        if directive.arg() == "all" {
            parts.push(Part { then, ..Part::default() });
            // `all` decides for every remaining client.
            return methods(scope, parts, context);
        }
        match values::network(directive.arg()) {
            Some(network) => {
                let when = Conditions { client: vec![network], ..Conditions::default() };
                parts.push(Part { when, then, ..Part::default() });
            }
            None => {
                context.notes.loss(&directive.at, directive.text(), "expected a network; name its addresses");
                if !is_allowed {
                    parts.push(Part { then: closed(handler, directive), ..Part::default() });
                    return methods(scope, parts, context);
                }
            }
        }
    }
    let rest = match password.filter(|_| is_any) {
        Some(directive) => closed(handler, directive),
        None => handler,
    };
    parts.push(Part { then: rest, ..Part::default() });
    methods(scope, parts, context)
}

/// Translates `limit_except`: methods other than the listed ones get 403.
fn methods(scope: &Scope<'_>, parts: Vec<Part>, context: &mut Context<'_>) -> Vec<Part> {
    let Some(directive) = scope.here("limit_except") else { return merged(parts) };
    let mut names = directive.args.clone();
    if names.iter().any(|name| name == "GET") {
        names.push("HEAD".to_owned());
    }
    let denies_all = directive.block().iter().any(|inner| inner.is("deny") && inner.arg() == "all");
    if !denies_all || directive.block().len() > 1 {
        let message =
            "only `deny all` is translated, so other methods get 403; write a [[route]] for those that may";
        context.notes.loss(&directive.at, directive.text(), message);
    }
    let mut limited: Vec<_> = merged(parts);
    for part in &mut limited {
        part.when.method = names.clone();
    }
    limited.push(Part { then: denied(directive), ..Part::default() });
    limited
}

/// A response with 403, and a note of the directive that requires it.
fn denied(line: &Directive) -> Handler {
    Handler::new(Action::status(403)).noted(format!("{}: {}", line.at, line.text()))
}

/// Merges adjacent parts that differ only in their clients.
fn merged(parts: Vec<Part>) -> Vec<Part> {
    let plain = |then: &Handler| Handler { notes: Vec::new(), ..then.clone() };
    let is_alike = |a: &Handler, b: &Handler| plain(a) == plain(b);
    let mut out: Vec<Part> = Vec::new();
    for part in parts {
        match out.last_mut() {
            Some(last)
                if is_alike(&last.then, &part.then)
                    && !last.when.client.is_empty()
                    && !part.when.client.is_empty() =>
            {
                last.when.client.extend(part.when.client);
                last.then.notes.extend(part.then.notes);
                last.then.notes.dedup();
            }
            _ => out.push(part),
        }
    }
    out
}
