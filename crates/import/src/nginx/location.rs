//! Translates a location's handling of requests to routes.

use super::closed::{closed, closing};
use super::guards;
use super::headers;
use super::http::Context;
use super::module::Module;
use super::timeouts;
use super::upstream;
use super::variables::{Known, line, template};
use crate::model::{Action, Conditions, Handler};
use crate::pattern::Pattern;
use crate::regex::of_regex;
use crate::values;
use std::collections::BTreeMap;
use weir_syntax::nginx::{Directive, Scope};

/// A future route, without the server's names and the location's paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub host: Vec<String>,
    /// Patterns that replace the location's patterns.
    pub patterns: Option<Vec<Pattern>>,
    /// Whether the route is for cleartext requests only.
    pub on_cleartext: bool,
    pub when: Conditions,
    pub then: Handler,
    /// The place in the source, if it differs from the location's.
    pub from: String,
}

/// Named locations, `@name`.
pub(super) type Named<'a> = BTreeMap<&'a str, Scope<'a>>;

/// Returns the routes of a block. A `proxy_pass` with a path replaces `prefix`.
pub(super) fn parts(
    scope: &Scope<'_>,
    prefix: Option<&str>,
    known: &Known,
    named: &Named<'_>,
    context: &mut Context<'_>,
) -> Vec<Part> {
    if let Some(directive) = scope.find("internal") {
        let then = Handler::new(Action::status(404))
            .noted(format!("{}: only nginx itself may ask for it", directive.at));
        return vec![Part { then, ..Part::default() }];
    }
    let (mut parts, lost) = guards::ifs(scope, known, context);
    parts.extend(moved(scope, known, context));
    let then = handler(scope, prefix, known, named, context);
    if let Some(directive) = lost {
        parts.push(Part { then: closed(then, directive), ..Part::default() });
        return parts;
    }
    match scope.here("return") {
        // nginx runs `return` before its access control.
        Some(_) => parts.push(Part { then, ..Part::default() }),
        None => parts.extend(guards::guarded(scope, then, context)),
    }
    parts
}

/// Redirects of single paths by `rewrite`.
pub(super) fn moved(scope: &Scope<'_>, known: &Known, context: &mut Context<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    for directive in scope.own().iter().filter(|directive| directive.is("rewrite")) {
        if is_of_all(directive) || !is_redirect(directive) {
            continue;
        }
        let replacement = directive.args.get(1).map_or("", String::as_str);
        let patterns = of_regex(directive.arg()).filter(|_| !has_capture(replacement));
        match patterns.zip(line(replacement.trim_end_matches('?'), known).ok()) {
            Some((patterns, to)) => {
                context.notes.remark("redirects by `rewrite` to a fixed path drop the query");
                parts.push(Part {
                    patterns: Some(patterns),
                    then: Handler::new(Action::Redirect { to, status: redirect_status(directive) }),
                    from: directive.at.to_string(),
                    ..Part::default()
                });
            }
            None => {
                let message =
                    "routes have no regular expressions; write a [[route]] with `redirect` for each path";
                context.notes.loss(&directive.at, directive.text(), message);
            }
        }
    }
    parts
}

fn has_capture(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair[0] == b'$' && pair[1].is_ascii_digit())
}

fn is_redirect(directive: &Directive) -> bool {
    let flag = directive.args.get(2).map_or("", String::as_str);
    let replacement = directive.args.get(1).map_or("", String::as_str);
    matches!(flag, "permanent" | "redirect")
        || ["http://", "https://", "$scheme"].iter().any(|scheme| replacement.starts_with(scheme))
}

fn redirect_status(directive: &Directive) -> u64 {
    if directive.args.get(2).is_some_and(|flag| flag == "permanent") { 301 } else { 302 }
}

/// Regular expressions that match every path, with the text that refers to the path through their first group.
const OF_ALL: [(&str, &str); 10] = [
    ("^", ""),
    ("^.*$", ""),
    (".*", ""),
    ("^.*", ""),
    ("^(.*)$", "$1"),
    ("^(.*)", "$1"),
    ("(.*)", "$1"),
    ("^/(.*)$", "/$1"),
    ("^/(.*)", "/$1"),
    ("/(.*)", "/$1"),
];

fn is_of_all(directive: &Directive) -> bool {
    OF_ALL.iter().any(|(regex, _)| *regex == directive.arg())
}

/// Redirects of every path by `rewrite`.
pub(super) fn redirect_of_all(
    directive: &Directive,
    scope: &Scope<'_>,
    known: &Known,
    context: &mut Context<'_>,
) -> Option<Handler> {
    if !is_redirect(directive) {
        return None;
    }
    let (_, group) = OF_ALL.iter().find(|(regex, _)| *regex == directive.arg())?;
    let replacement = directive.args.get(1)?;
    // nginx appends the query unless the replacement ends with `?`.
    let text = match replacement.strip_suffix('?') {
        Some(text) => text.to_owned(),
        None if !group.is_empty() && replacement.ends_with(group) => {
            format!("{}$request_uri", replacement.strip_suffix(group)?)
        }
        None => replacement.clone(),
    };
    let text = if group.is_empty() { text } else { text.replace(group, "${uri}") };
    let to = line(&text, known).ok()?;
    let (response, _) = headers::response(scope, known, None, context.notes);
    let action = Action::Redirect { to, status: redirect_status(directive) };
    Some(Handler { response, ..Handler::new(action) })
}

/// The response in place of an untranslatable directive.
pub(super) fn untranslated(directive: &Directive) -> Handler {
    Handler::new(Action::status(501)).noted(format!("not translated: {}", directive.text()))
}

fn handler(
    scope: &Scope<'_>,
    prefix: Option<&str>,
    known: &Known,
    named: &Named<'_>,
    context: &mut Context<'_>,
) -> Handler {
    for directive in scope.own() {
        match directive.name.as_str() {
            "return" => return returned(directive, scope, known, context),
            "rewrite" if is_of_all(directive) => {
                if let Some(handler) = redirect_of_all(directive, scope, known, context) {
                    return handler;
                }
            }
            _ => {}
        }
    }
    if let Some((module, directive)) = Module::here(scope) {
        return proxied(module, directive, scope, prefix, known, context);
    }
    const OTHERS: [(&str, &str); 10] = [
        (
            "fastcgi_pass",
            "Weir speaks HTTP to services, not FastCGI; put an HTTP server before it, and set `service`",
        ),
        ("uwsgi_pass", "Weir speaks HTTP to services; start uWSGI with --http-socket, and set `service`"),
        ("scgi_pass", "Weir speaks HTTP to services; put an HTTP server before it, and set `service`"),
        ("memcached_pass", "Weir speaks HTTP to services; put an HTTP server before it, and set `service`"),
        ("stub_status", "Weir has metrics at an address of their own; set [admin]"),
        ("api", "Weir has metrics at an address of their own; set [admin]"),
        ("js_content", "Weir runs no scripts; let a service respond"),
        ("content_by_lua_block", "Weir runs no scripts; let a service respond"),
        ("content_by_lua_file", "Weir runs no scripts; let a service respond"),
        ("empty_gif", "Weir has no such response; let a service respond"),
    ];
    for (name, message) in OTHERS {
        if let Some(directive) = scope.here(name) {
            context.notes.loss(&directive.at, directive.text(), message);
            return untranslated(directive);
        }
    }
    if let Some(directive) = scope.find("try_files")
        && let Some(inner) = directive.args.last().and_then(|last| named.get(last.as_str()))
    {
        let message =
            "Weir serves no files; all requests go to the service, so let it or another one serve them";
        context.notes.loss(&directive.at, directive.text(), message);
        let then = handler(inner, None, known, &Named::new(), context);
        return match closing(inner, inner.depth() - 1) {
            Some(why) => {
                let message = "it keeps requests out of a named location, so all its requests get 403; write a [[route]]";
                context.notes.loss(&why.at, why.text(), message);
                closed(then, why)
            }
            None => then,
        };
    }
    files(scope, prefix, context)
}

/// The handler of a location with static files, which Weir does not serve: 404, with a note that names the directive.
fn files(scope: &Scope<'_>, prefix: Option<&str>, context: &mut Context<'_>) -> Handler {
    let directive =
        ["alias", "root", "try_files", "index", "autoindex"].iter().find_map(|name| scope.find(name));
    let Some(directive) = directive else {
        return Handler::new(Action::status(404)).noted("no location of nginx's is for this");
    };
    let is_challenge = prefix.is_some_and(|prefix| prefix.starts_with("/.well-known/acme-challenge"));
    let message = if is_challenge {
        "Weir serves no files; start certbot with --standalone --http-01-port 8888, and make that the service here"
    } else {
        "Weir serves no files; start a file server behind it, and set `service` in place of this 404"
    };
    let at = scope.own().first().map_or(&directive.at, |first| &first.at);
    let at = if at.file == directive.at.file { &directive.at } else { at };
    context.notes.loss(at, directive.text(), message);
    Handler::new(Action::status(404)).noted(format!("nginx serves files here: {}", directive.text()))
}

/// The handler of a `return`, or a placeholder for one without a counterpart.
pub(super) fn returned(
    directive: &Directive,
    scope: &Scope<'_>,
    known: &Known,
    context: &mut Context<'_>,
) -> Handler {
    answer(directive, scope, known, context).unwrap_or_else(|why| {
        context.notes.loss(&directive.at, directive.text(), why);
        untranslated(directive)
    })
}

/// Translates `return`. The error says why it has no counterpart.
pub(super) fn answer(
    directive: &Directive,
    scope: &Scope<'_>,
    known: &Known,
    context: &mut Context<'_>,
) -> Result<Handler, String> {
    let (response, content_type) = headers::response(scope, known, None, context.notes);
    let (status, text) = match (directive.arg().parse::<u64>(), directive.args.get(1)) {
        (Ok(status), text) => (status, text.map(String::as_str)),
        (Err(_), _) => (302, Some(directive.arg())),
    };
    let action = match (status, text) {
        (301 | 302 | 303 | 307 | 308, Some(text)) => {
            let to = line(text, known).map_err(|part| {
                format!("`redirect` cannot contain {part}; write a [[route]] for each of its values")
            })?;
            Action::Redirect { to, status }
        }
        (444, _) => {
            let message = "Weir does not close connections without a response; requests get 404";
            context.notes.loss(&directive.at, directive.text(), message);
            Action::status(404)
        }
        (200..=599, text) => {
            let text = match text.map(|text| constant(text, known)).transpose() {
                Ok(text) => text,
                Err(()) if status >= 400 => {
                    let message = "the text depends on variables, and is left out; see `respond`";
                    context.notes.loss(&directive.at, directive.text(), message);
                    None
                }
                Err(()) => {
                    return Err("the text has variables, and that of `respond` is constant; write one, or let a service respond".to_owned());
                }
            };
            let body = text.filter(|body| !(body.is_empty() || matches!(status, 204 | 304)));
            let default = scope.arg("default_type");
            let default = (!default.is_empty()
                && !matches!(default, "text/plain" | "application/octet-stream"))
            .then(|| default.to_owned());
            let content_type =
                content_type.or(default).filter(|kind| body.is_some() && !kind.contains(char::is_control));
            Action::Respond { status, body, content_type }
        }
        _ => return Err("expected a status of 200 to 599; see `respond`".to_owned()),
    };
    Ok(Handler { response, ..Handler::new(action) })
}

/// Translates a response body without variables. Fails if the body contains a variable of the request.
fn constant(text: &str, known: &Known) -> Result<String, ()> {
    let template = template(text, known).map_err(drop)?;
    match template.replace("{{", "").contains('{') {
        true => Err(()),
        false => Ok(template.replace("{{", "{").replace("}}", "}")),
    }
}

fn proxied(
    module: Module,
    directive: &Directive,
    scope: &Scope<'_>,
    prefix: Option<&str>,
    known: &Known,
    context: &mut Context<'_>,
) -> Handler {
    let target = upstream::target(
        module,
        directive,
        scope,
        &context.upstreams,
        &mut context.splits,
        context.document,
        context.notes,
    );
    let target = match target {
        Ok(target) => target,
        Err(why) => {
            context.notes.loss(&directive.at, directive.text(), why);
            return untranslated(directive);
        }
    };
    let known = Known { proxy_host: target.authority.clone(), ..known.clone() };
    let headers::Request { edits: request, is_upgraded, has_host } =
        headers::request(module, scope, &target, &known, context.document, context.notes);
    let (response, _) = headers::response(scope, &known, Some(module), context.notes);
    let mut handler = Handler { request, response, ..Handler::new(target.action) };
    if let Action::Split { shares, .. } = &mut handler.action
        && has_host
    {
        shares.iter_mut().for_each(|share| share.host = None);
    }
    let rewritten = rewritten(scope, context);
    let (strip, add) = match (rewritten, &target.uri, prefix) {
        (Some(edit), _, _) => edit,
        (None, None, _) => (String::new(), String::new()),
        (None, Some(uri), Some(prefix)) => {
            if prefix.ends_with('/') != uri.ends_with('/') && prefix != "/" {
                let message =
                    "nginx joins the rest of the path without a slash, or with two; here it has one";
                context.notes.loss(&directive.at, directive.text(), message);
            }
            (prefix.trim_end_matches('/').to_owned(), uri.trim_end_matches('/').to_owned())
        }
        (None, Some(uri), None) => {
            let message = "the path of the address is not translated here; see strip_prefix and add_prefix";
            if uri != "/" {
                context.notes.loss(&directive.at, directive.text(), message);
            }
            (String::new(), String::new())
        }
    };
    let is_path = |path: &str| Pattern::exact(path).is_some_and(|pattern| pattern.path() == path);
    for (text, place) in [(strip, &mut handler.strip_prefix), (add, &mut handler.add_prefix)] {
        if text.is_empty() {
            continue;
        }
        match is_path(&text) {
            true => *place = Some(text),
            false => {
                let message = format!("`{text}` is no plain path; see strip_prefix and add_prefix");
                context.notes.loss(&directive.at, directive.text(), message);
            }
        }
    }
    handler.timeouts = timeouts::of_route(module, scope, is_upgraded, context);
    if let Some(bytes) = scope.find("client_max_body_size").and_then(|found| values::bytes(found.arg()))
        && bytes != context.max_body
    {
        // Weir has no unlimited body size.
        handler.max_body = Some(if bytes == 0 { 1 << 50 } else { bytes });
    }
    handler
}

/// The first `rewrite` of a location that removes or adds a path prefix.
fn rewritten(scope: &Scope<'_>, context: &mut Context<'_>) -> Option<(String, String)> {
    let mut found = None;
    for directive in scope.own().iter().filter(|directive| directive.is("rewrite") && !is_redirect(directive))
    {
        let flag = directive.args.get(2).map_or("", String::as_str);
        let edit = prefix_edit(directive.arg(), directive.args.get(1).map_or("", String::as_str));
        match edit.filter(|_| flag == "break" && found.is_none()) {
            Some(edit) => found = Some(edit),
            None => {
                let message =
                    "routes take a prefix off or put one before a path, no more; let the service do the rest";
                context.notes.loss(&directive.at, directive.text(), message);
            }
        }
    }
    found
}

/// The path prefix that a `rewrite` removes, and its replacement; `None` if the `rewrite` does anything else.
pub(crate) fn prefix_edit(regex: &str, replacement: &str) -> Option<(String, String)> {
    // The end of the expression, the group with the remaining path, and whether that group includes its slash.
    const TAILS: [(&str, &str, bool); 12] = [
        ("(/|$)(.*)$", "$2", false),
        ("(/|$)(.*)", "$2", false),
        ("/?(.*)$", "$1", false),
        ("/?(.*)", "$1", false),
        ("(/.*)?$", "$1", true),
        ("(/.*)$", "$1", true),
        ("(/.*)", "$1", true),
        ("/(.*)$", "$1", false),
        ("/(.*)", "$1", false),
        ("/(.+)$", "$1", false),
        ("(.*)$", "$1", true),
        ("(.*)", "$1", true),
    ];
    let regex = regex.strip_prefix('^').unwrap_or(regex);
    let (prefix, group, has_slash) =
        TAILS.iter().find_map(|(tail, group, slash)| Some((regex.strip_suffix(tail)?, group, slash)))?;
    let prefix = prefix.replace("\\.", ".").replace("\\/", "/").replace("\\-", "-");
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    let add = replacement.strip_suffix(group)?;
    let add = if *has_slash { add } else { add.strip_suffix('/')? };
    if !prefix.chars().all(plain) || !add.chars().all(plain) {
        return None;
    }
    let is_path = |path: &str| path.is_empty() || path.starts_with('/');
    (is_path(&prefix) && is_path(add)).then(|| (prefix.trim_end_matches('/').to_owned(), add.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_of_prefixes() {
        for (regex, replacement, edit) in [
            ("^/api/(.*)$", "/$1", Some(("/api", ""))),
            ("^/api/(.*)", "/v2/$1", Some(("/api", "/v2"))),
            ("^/api(/.*)$", "$1", Some(("/api", ""))),
            ("/api/?(.*)", "/$1", Some(("/api", ""))),
            ("^/api(/|$)(.*)", "/$2", Some(("/api", ""))),
            ("^/(.*)$", "/app/$1", Some(("", "/app"))),
            ("^/a\\.b/(.*)$", "/$1", Some(("/a.b", ""))),
            ("^/a[0-9]/(.*)$", "/$1", None),
            ("^/api/(.*)$", "/x?p=$1", None),
            ("^/api/(.*)$", "/index.php", None),
        ] {
            let edit = edit.map(|(strip, add)| (strip.to_owned(), add.to_owned()));
            assert_eq!(prefix_edit(regex, replacement), edit, "{regex} {replacement}");
        }
    }
}
