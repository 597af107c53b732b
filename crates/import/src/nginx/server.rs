//! A server: its names, its locations, and the routes of both.

use super::errors;
use super::guards;
use super::headers;
use super::http::Context;
use super::listen::Place;
use super::location::{Named, Part, answer, moved, parts, redirect_of_all};
use super::parser::Directive;
use super::scope::Scope;
use super::variables::Known;
use crate::model::{Action, Handler, Route};
use crate::note::{At, Notes};
use crate::pattern::{Pattern, of_regex};
use crate::values;

/// The server's names, as hosts of routes.
pub(super) fn names(server: &Scope<'_>, notes: &mut Notes) -> Vec<String> {
    let mut names = Vec::new();
    let directives = server.own().iter().filter(|directive| directive.is("server_name"));
    for directive in directives {
        for name in &directive.args {
            let name = name.to_ascii_lowercase();
            let found = match name.as_str() {
                // Names that no client asks for: the server is a default one.
                "_" | "" | "\"\"" | "-" | "__" | "*" => Some(Vec::new()),
                "$hostname" => None,
                regex if regex.starts_with('~') => host_of_regex(&regex[1..]),
                domain if domain.starts_with('.') => Some(vec![domain[1..].to_owned(), format!("*{domain}")]),
                name => Some(vec![name.to_owned()]),
            };
            match found.filter(|found| found.iter().all(|name| values::is_host(name))) {
                Some(found) => names.extend(found),
                None => {
                    let message = "hosts are names or begin with `*.`; name each one in `host`";
                    notes.loss(&directive.at, format!("server_name {name}"), message);
                }
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The hosts of an expression that is a name or a domain: `^(www\.)?example\.org$`, `^.+\.example\.org$`.
pub(crate) fn host_of_regex(regex: &str) -> Option<Vec<String>> {
    let inner = regex.strip_prefix('^')?.strip_suffix('$')?;
    let unescaped = |text: &str| text.replace("\\.", ".").replace("\\-", "-");
    let any = ["(.+)\\.", "(.*)\\.", ".+\\.", ".*\\.", "[^.]+\\.", "([^.]+)\\."];
    let named = || inner.strip_prefix("(?<")?.split_once(">.+)\\.").map(|(_, rest)| rest);
    let domain = any.iter().find_map(|any| inner.strip_prefix(any)).or_else(named);
    let (hosts, raw) = match (domain, inner.strip_prefix("(www\\.)?").or(inner.strip_prefix("(?:www\\.)?"))) {
        (Some(domain), _) => (vec![format!("*.{}", unescaped(domain))], domain),
        (None, Some(name)) => (vec![unescaped(name), format!("www.{}", unescaped(name))], name),
        (None, None) => (vec![unescaped(inner)], inner),
    };
    // A dot that is not escaped is any character.
    let is_plain = !raw.replace("\\.", "").contains(['.', '(', '*', '+', '?', '[', '|']);
    (is_plain && hosts.iter().all(|host| values::is_host(host))).then_some(hosts)
}

/// For which requests the server is: hosts (none: all) on listeners.
struct Scoped {
    host: Vec<String>,
    listener: Vec<String>,
    cleartext: Vec<String>,
}

/// A location with its patterns.
struct Location<'a> {
    scope: Scope<'a>,
    patterns: Vec<Pattern>,
    /// As written, if it is a prefix or a path alone.
    prefix: Option<&'a str>,
    directive: &'a Directive,
}

pub(super) fn translate(
    number: usize,
    server: &Scope<'_>,
    places: &[Place],
    at: &At,
    context: &mut Context<'_>,
) {
    errors::pages(server, context);
    let names = context.names.get(&number).cloned().unwrap_or_default();
    let scoped = scoped(number, &names, places, context);
    if scoped.is_empty() {
        let message = "no request comes here: it has no name, and is not the first on its address";
        if !places.is_empty() {
            context.notes.loss(at, "server", message);
        }
        return;
    }
    let ports: std::collections::BTreeSet<_> = places.iter().map(|place| place.port).collect();
    let known = Known {
        set: server.variables.clone(),
        server_name: names.iter().find(|name| !name.starts_with("*.")).cloned(),
        port: if ports.len() == 1 { ports.first().copied().flatten() } else { None },
        proxy_host: None,
    };
    let routes = routes(server, &known, at, context);
    let all: usize =
        context.document.listeners.iter().filter(|listener| listener.passthrough.is_empty()).count();
    for scope in &scoped {
        for (part, patterns, from) in &routes {
            let mut listener =
                if part.on_cleartext { scope.cleartext.clone() } else { scope.listener.clone() };
            if listener.is_empty() {
                continue;
            }
            // A condition about all listeners is none.
            if listener.len() == all {
                listener.clear();
            }
            let is_within =
                |host: &String| scope.host.is_empty() || scope.host.contains(host) || part.host.is_empty();
            let host: Vec<_> = match part.host.is_empty() {
                true => scope.host.clone(),
                false => part.host.iter().filter(|host| is_within(host)).cloned().collect(),
            };
            if host.is_empty() && !part.host.is_empty() {
                continue;
            }
            let is_all = patterns.contains(&Pattern::all()) && patterns.len() == 1;
            let mut when = part.when.clone();
            when.listener = listener;
            context.document.routes.push(Route {
                host,
                path: if is_all { Vec::new() } else { patterns.iter().map(Pattern::text).collect() },
                when,
                then: part.then.clone(),
                from: from.clone(),
            });
        }
    }
}

/// Where the server is the default one it gets all hosts, elsewhere its names.
fn scoped(number: usize, names: &[String], places: &[Place], context: &Context<'_>) -> Vec<Scoped> {
    let mut scoped = Vec::new();
    // A domain of another server would come before any host.
    let has_rival = |place: &&Place| {
        let others = place.servers.iter().filter(|other| **other != number);
        let mut others = others.filter_map(|other| context.names.get(other)).flatten();
        others.any(|name| name.starts_with("*."))
    };
    let named: Vec<_> = places.iter().filter(|place| !place.is_default || has_rival(place)).collect();
    let default: Vec<_> = places.iter().filter(|place| place.is_default).collect();
    for (host, places) in [(names, named), (&[][..], default)] {
        let is_all = host.is_empty() && places.iter().all(|place| place.is_default);
        if places.is_empty() || (host.is_empty() && !is_all) {
            continue;
        }
        let listeners = |only_cleartext: bool| {
            let chosen = places.iter().filter(|place| !(only_cleartext && place.is_tls));
            chosen.map(|place| place.listener.clone()).collect()
        };
        scoped.push(Scoped { host: host.to_vec(), listener: listeners(false), cleartext: listeners(true) });
    }
    if scoped.len() == 2 && names.is_empty() {
        scoped.remove(0);
    }
    scoped
}

type Parts = Vec<(Part, Vec<Pattern>, String)>;

/// The routes of the server: those of its own block first, for all of its paths.
fn routes(server: &Scope<'_>, known: &Known, at: &At, context: &mut Context<'_>) -> Parts {
    let mut first = guards::ifs(server, known, context);
    first.extend(moved(server, known, context));
    let mut whole: Option<Handler> = None;
    for directive in server.own() {
        let answers = match directive.name.as_str() {
            "return" => answer(directive, server, known, context),
            "rewrite" => redirect_of_all(directive, server, known, context),
            _ => continue,
        };
        let is_lost = answers.is_none()
            && (directive.is("return")
                || !directive.args.iter().any(|flag| matches!(flag.as_str(), "permanent" | "redirect")));
        if is_lost {
            let message = "routes have no such rewriting; write a [[route]] with `redirect`, strip_prefix or add_prefix";
            context.notes.loss(&directive.at, directive.text(), message);
        }
        if let Some(mut handler) = answers {
            handler.notes.clear();
            whole = Some(handler);
            break;
        }
    }
    let mut routes: Parts = Vec::new();
    if let Some(handler) = whole {
        routes.push((Part { then: handler, ..Part::default() }, vec![Pattern::all()], at.to_string()));
    } else {
        locations_of(server, known, at, &mut routes, context);
    }
    let mut patterns: Vec<_> = routes.iter().flat_map(|(_, patterns, _)| patterns.clone()).collect();
    patterns.sort();
    patterns.dedup();
    if patterns.is_empty() {
        patterns.push(Pattern::all());
    }
    let first = first.into_iter().map(|part| {
        let patterns = part.patterns.clone().unwrap_or_else(|| patterns.clone());
        let from = part.from.clone();
        (part, patterns, from)
    });
    first.chain(routes.clone()).collect()
}

fn locations_of(server: &Scope<'_>, known: &Known, at: &At, routes: &mut Parts, context: &mut Context<'_>) {
    let (mut locations, mut named) = (Vec::new(), Named::new());
    collect(server, &mut locations, &mut named, context);
    distinct(&mut locations);
    shadowed(&locations, context.notes);
    let prefixes: Vec<_> = locations.iter().flat_map(|location| location.patterns.clone()).collect();
    for location in &locations {
        if location.patterns.is_empty() || is_silent(location, context) {
            continue;
        }
        let known = Known { set: location.scope.variables.clone(), ..known.clone() };
        let from = location.directive.at.to_string();
        for mut part in parts(&location.scope, location.prefix, &known, &named, context) {
            let patterns = part.patterns.take().unwrap_or_else(|| location.patterns.clone());
            if location.directive.args.first().is_some_and(|modifier| modifier == "~*") {
                context.notes.remark("paths are compared with their case, also where nginx has `~*`");
            }
            let from = if part.from.is_empty() { from.clone() } else { part.from.clone() };
            routes.push((part, patterns, from));
        }
        if let Some((part, pattern)) = with_slash(location, &prefixes, &known, context) {
            routes.push((part, vec![pattern], from));
        }
    }
    if !prefixes.contains(&Pattern::all()) {
        for part in parts(&Scope::within(server, &[]), None, known, &named, context) {
            routes.push((part, vec![Pattern::all()], at.to_string()));
        }
    }
}

/// nginx redirects `/app` to `/app/` where `location /app/` passes requests on.
fn with_slash(
    location: &Location<'_>,
    patterns: &[Pattern],
    known: &Known,
    context: &mut Context<'_>,
) -> Option<(Part, Pattern)> {
    let is_prefix = location.directive.args.len() == 1 || location.directive.arg() == "^~";
    let path = location.prefix.filter(|path| is_prefix && path.len() > 1)?.strip_suffix('/')?;
    location.scope.here("proxy_pass")?;
    let pattern = Pattern::exact(path)?;
    if patterns.contains(&pattern) || pattern.path().contains(['{', '%']) {
        return None;
    }
    let (response, _) = headers::response(&location.scope, known, true, context.notes);
    let action = Action::Redirect { to: format!("{path}/"), status: 301 };
    let then = Handler { response, ..Handler::new(action) };
    Some((Part { then, ..Part::default() }, pattern))
}

/// Locations that need no route: pages of errors, and those that only nginx itself asks for.
fn is_silent(location: &Location<'_>, context: &Context<'_>) -> bool {
    let is_page = location.prefix.is_some_and(|path| context.pages.uris.iter().any(|uri| uri == path));
    let answers =
        ["proxy_pass", "return", "fastcgi_pass"].iter().any(|name| location.scope.here(name).is_some());
    location.scope.here("internal").is_some() || (is_page && !answers)
}

fn collect<'a>(
    outer: &Scope<'a>,
    locations: &mut Vec<Location<'a>>,
    named: &mut Named<'a>,
    context: &mut Context<'_>,
) {
    for directive in outer.own().iter().filter(|directive| directive.is("location")) {
        let scope = outer.within(directive.block());
        let (modifier, path) = match &directive.args[..] {
            [path] => match path.chars().next() {
                // nginx takes `=/path` and `~regex` without a space, too.
                Some('=') => ("=", &path[1..]),
                Some('@') => {
                    named.insert(path, scope);
                    continue;
                }
                _ => ("", path.as_str()),
            },
            [modifier, path] => (modifier.as_str(), path.as_str()),
            _ => {
                context.notes.loss(&directive.at, directive.text(), "expected a path");
                continue;
            }
        };
        let (patterns, prefix) = match modifier {
            "=" => (Pattern::exact(path).map(|pattern| vec![pattern]), Some(path)),
            "" | "^~" => (Pattern::prefix(path).map(|pattern| vec![pattern]), Some(path)),
            "~" | "~*" => (of_regex(path), None),
            _ => (None, None),
        };
        if modifier != "=" && prefix.is_some_and(|path| !path.ends_with('/')) {
            context.notes.remark(
                "a path such as /app/* is for /app and what is below it, by whole segments: not for /apple, as `location /app` is",
            );
        }
        if patterns.is_none() {
            context.notes.loss(&directive.at, directive.text(), lost_location(directive));
        }
        collect(&scope, locations, named, context);
        locations.push(Location { scope, patterns: patterns.unwrap_or_default(), prefix, directive });
    }
}

fn lost_location(directive: &Directive) -> &'static str {
    let inner = directive.block();
    if inner.iter().any(|inner| inner.is("fastcgi_pass")) {
        return "Weir speaks HTTP to services, not FastCGI; put an HTTP server before it. The path's other route is taken";
    }
    if inner.iter().any(|inner| inner.is("deny") || inner.is("return")) {
        return "routes have no regular expressions, so THIS IS NOT DENIED; write a [[route]] with `respond` for each path";
    }
    "routes have no regular expressions; write a [[route]] for each path. Its other route is taken"
}

/// `/app` and `/app/` are one pattern: the first is then for the path alone.
fn distinct(locations: &mut [Location<'_>]) {
    let with_slash: Vec<_> = locations
        .iter()
        .filter_map(|location| location.prefix)
        .filter_map(|path| path.strip_suffix('/'))
        .map(str::to_owned)
        .collect();
    for location in locations.iter_mut() {
        let path = location.prefix.filter(|path| !path.ends_with('/') && location.directive.arg() != "=");
        if let Some(path) = path.filter(|path| with_slash.iter().any(|known| known == path)) {
            location.patterns = Pattern::exact(path).into_iter().collect();
        }
    }
}

/// An expression comes before a longer prefix in nginx, and after it here.
fn shadowed(locations: &[Location<'_>], notes: &mut Notes) {
    for regex in locations.iter().filter(|location| location.prefix.is_none()) {
        let longer = locations.iter().find(|location| {
            location.prefix.is_some()
                && !matches!(location.directive.arg(), "=" | "^~")
                && location
                    .patterns
                    .iter()
                    .any(|inner| regex.patterns.iter().any(|outer| outer.covers(inner) && outer != inner))
        });
        if let Some(longer) = longer {
            let message = format!(
                "in nginx it comes before `{}`, here after it; check which is meant",
                longer.directive.text()
            );
            notes.loss(&regex.directive.at, regex.directive.text(), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_expressions() {
        for (regex, hosts) in [
            ("^(www\\.)?example\\.org$", Some(vec!["example.org", "www.example.org"])),
            ("^.+\\.example\\.org$", Some(vec!["*.example.org"])),
            ("^(?<sub>.+)\\.example\\.org$", Some(vec!["*.example.org"])),
            ("^example\\.org$", Some(vec!["example.org"])),
            ("^ex.mple\\.org$", None),
            ("example", None),
            ("^a\\d\\.org$", None),
        ] {
            let hosts = hosts.map(|hosts| hosts.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(host_of_regex(regex), hosts, "{regex}");
        }
    }
}
