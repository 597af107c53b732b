//! A server: its names, its locations and their routes.

use super::closed;
use super::errors;
use super::guards;
use super::headers;
use super::http::Context;
use super::listen::Place;
use super::location::{Named, Part, moved, parts, redirect_of_all, returned};
use super::module::Module;
use super::variables::Known;
use crate::model::{Action, Handler, Route};
use crate::note::Notes;
use crate::pattern::Pattern;
use crate::regex::{around_regex, of_regex};
use crate::values;
use std::collections::BTreeSet;
use weir_syntax::At;
use weir_syntax::nginx::{Directive, Scope};

/// The server's names as hosts for routes.
pub(super) fn names(server: &Scope<'_>, notes: &mut Notes) -> Vec<String> {
    let mut names = Vec::new();
    let directives = server.own().iter().filter(|directive| directive.is("server_name"));
    for directive in directives {
        for name in &directive.args {
            let name = name.to_ascii_lowercase();
            let found = match name.as_str() {
                // Clients do not request these names, so this is a default server.
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
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The hosts that a regular expression for a name or a domain matches: `^(www\.)?example\.org$`, `^.+\.example\.org$`.
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
    // An unescaped dot matches any character.
    let is_plain = !raw.replace("\\.", "").contains(['.', '(', '*', '+', '?', '[', '|']);
    (is_plain && hosts.iter().all(|host| values::is_host(host))).then_some(hosts)
}

/// A server's requests: its hosts (empty: all) on certain listeners.
struct Scoped {
    host: Vec<String>,
    listener: Vec<String>,
    cleartext: Vec<String>,
}

/// A location's kind of match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `=`: only this path.
    Exact,
    /// No modifier: a path prefix.
    Prefix,
    /// `^~`: a path prefix that precedes expressions.
    Final,
    /// `~` or `~*`: a regular expression.
    Regex,
}

/// A location with its patterns.
#[derive(Clone, Debug)]
pub(super) struct Location<'a> {
    pub scope: Scope<'a>,
    pub kind: Kind,
    /// The location's paths, except those that no pattern expresses.
    pub patterns: Vec<Pattern>,
    /// If no patterns express the location's paths exactly: patterns that match at least these paths.
    pub around: Vec<Pattern>,
    /// The directive that makes the location reject requests.
    pub closes: Option<&'a Directive>,
    /// Paths that another location may reject, with its directive.
    pub closed: Vec<(&'a Directive, Vec<Pattern>)>,
    /// The path as written, unless it is an expression.
    pub prefix: Option<&'a str>,
    /// `None`: the remaining paths of the server.
    pub directive: Option<&'a Directive>,
    /// The order in the file: of several matching expressions, the first one wins.
    pub order: usize,
    pub is_nested: bool,
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
    let ports: BTreeSet<_> = places.iter().map(|place| place.port).collect();
    let known = Known {
        set: server.variables.clone(),
        server_name: names.iter().find(|name| !name.starts_with("*.")).cloned(),
        port: if ports.len() == 1 { ports.first().copied().flatten() } else { None },
        proxy_host: None,
    };
    let mut routes = routes(server, &known, at, context);
    let asks =
        server.find("ssl_verify_client").filter(|_| places.iter().any(|place| place.lacks_certificates));
    if let Some(why) = asks {
        for (part, ..) in &mut routes {
            part.then = closed::closed(std::mem::take(&mut part.then), why);
        }
    }
    let all = context.document.listeners.iter().filter(|listener| listener.is_http()).count();
    for scope in &scoped {
        for (part, patterns, from) in &routes {
            let mut listener =
                if part.on_cleartext { scope.cleartext.clone() } else { scope.listener.clone() };
            if listener.is_empty() {
                continue;
            }
            // A condition that lists all listeners is unnecessary.
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

/// The server's hosts per listener: all where it is the default server, its names elsewhere.
fn scoped(number: usize, names: &[String], places: &[Place], context: &Context<'_>) -> Vec<Scoped> {
    let mut scoped = Vec::new();
    // A route for another server's domain would take precedence over a catch-all route.
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

/// The routes of the server: those of its own block first, for all paths.
fn routes(server: &Scope<'_>, known: &Known, at: &At, context: &mut Context<'_>) -> Parts {
    let (mut first, lost) = guards::ifs(server, known, context);
    first.extend(moved(server, known, context));
    let mut whole: Option<Handler> = None;
    for directive in server.own() {
        whole = match directive.name.as_str() {
            // A `return` leaves the locations unreachable.
            "return" => Some(returned(directive, server, known, context)),
            "rewrite" => redirect_of_all(directive, server, known, context),
            _ => continue,
        };
        if whole.is_some() {
            break;
        }
        if !directive.args.iter().any(|flag| matches!(flag.as_str(), "permanent" | "redirect")) {
            let message = "routes have no such rewriting; write a [[route]] with `redirect`, strip_prefix or add_prefix";
            context.notes.loss(&directive.at, directive.text(), message);
        }
    }
    let mut routes: Parts = Vec::new();
    if let Some(handler) = whole {
        routes.push((Part { then: handler, ..Part::default() }, vec![Pattern::all()], at.to_string()));
    } else {
        locations_of(server, known, at, &mut routes, context);
    }
    routes.retain(|(_, patterns, _)| !patterns.is_empty());
    let mut patterns: Vec<_> = routes.iter().flat_map(|(_, patterns, _)| patterns.clone()).collect();
    patterns.sort();
    patterns.dedup();
    if patterns.is_empty() {
        patterns.push(Pattern::all());
    }
    let first = first.into_iter().map(|part| {
        // nginx applies the server's own directives before it selects a location, but Weir prefers the more specific
        // path. So repeat the server's own routes for each location path that they match.
        let patterns = match &part.patterns {
            Some(own) => {
                let inner = own.iter().flat_map(|own| patterns.iter().filter_map(|inner| own.meet(inner)));
                let all: BTreeSet<_> = own.iter().cloned().chain(inner).collect();
                all.into_iter().collect()
            }
            None => patterns.clone(),
        };
        let from = part.from.clone();
        (part, patterns, from)
    });
    let mut all: Parts = first.chain(routes.clone()).collect();
    if let Some(why) = lost {
        for (part, ..) in &mut all {
            part.then = closed::closed(std::mem::take(&mut part.then), why);
        }
    }
    all
}

fn locations_of(server: &Scope<'_>, known: &Known, at: &At, routes: &mut Parts, context: &mut Context<'_>) {
    let (mut locations, mut named) = (Vec::new(), Named::new());
    collect(server, None, server.depth(), &mut locations, &mut named, context);
    if !locations.iter().any(|location| location.patterns.contains(&Pattern::all())) {
        locations.push(Location::rest(server));
    }
    distinct(&mut locations);
    closed::in_order(&mut locations);
    closed::without_slash(&mut locations);
    routes.extend(closed::moved(server.own(), &locations));
    routes.extend(closed::around(&mut locations));
    let prefixes: Vec<_> = locations.iter().flat_map(|location| location.patterns.clone()).collect();
    for location in &locations {
        if (location.patterns.is_empty() && location.closed.is_empty()) || is_silent(location, context) {
            continue;
        }
        let known = Known { set: location.scope.variables.clone(), ..known.clone() };
        let from = location.directive.map_or(at, |directive| &directive.at).to_string();
        for (part, patterns, from) in closed::moved(location.scope.own(), &locations) {
            routes.push((part, meet(&patterns, &location.patterns), from));
        }
        let mut last = Handler::default();
        for mut part in parts(&location.scope, location.prefix, &known, &named, context) {
            let patterns = match part.patterns.take() {
                Some(own) => meet(&own, &location.patterns),
                None => location.patterns.clone(),
            };
            let from = if part.from.is_empty() { from.clone() } else { part.from.clone() };
            last = part.then.clone();
            routes.push((part, patterns, from));
        }
        for (why, patterns) in &location.closed {
            let part = Part { then: closed::closed(last.clone(), why), ..Part::default() };
            routes.push((part, patterns.clone(), why.at.to_string()));
        }
        if let Some((part, pattern)) = with_slash(location, &prefixes, &known, context) {
            routes.push((part, vec![pattern], from));
        }
    }
}

/// Patterns of the paths that both lists match, possibly of a few more.
fn meet(own: &[Pattern], outer: &[Pattern]) -> Vec<Pattern> {
    let all: BTreeSet<_> =
        own.iter().flat_map(|own| outer.iter().filter_map(|outer| own.meet(outer))).collect();
    all.into_iter().collect()
}

/// As nginx does, redirects `/app` to `/app/` where `location /app/` forwards requests.
fn with_slash(
    location: &Location<'_>,
    patterns: &[Pattern],
    known: &Known,
    context: &mut Context<'_>,
) -> Option<(Part, Pattern)> {
    let is_prefix = matches!(location.kind, Kind::Prefix | Kind::Final);
    let path = location.prefix.filter(|path| is_prefix && path.len() > 1)?.strip_suffix('/')?;
    Module::here(&location.scope).filter(|_| location.closed.is_empty())?;
    let pattern = Pattern::exact(path)?;
    if patterns.contains(&pattern) || pattern.path().contains(['{', '%']) {
        return None;
    }
    let (response, _) = headers::response(&location.scope, known, None, context.notes);
    let action = Action::Redirect { to: format!("{path}/"), status: 301 };
    let then = Handler { response, ..Handler::new(action) };
    Some((Part { then, ..Part::default() }, pattern))
}

/// Whether a location needs no route: it serves only error pages, whose files Weir reads itself.
fn is_silent(location: &Location<'_>, context: &Context<'_>) -> bool {
    let is_page = location.prefix.is_some_and(|path| context.pages.uris.iter().any(|uri| uri == path));
    let answers = ["proxy_pass", "grpc_pass", "return", "fastcgi_pass"]
        .iter()
        .any(|name| location.scope.here(name).is_some());
    is_page && !answers && location.closes.is_none()
}

/// Collects the scope's locations. `outer` is the enclosing location, `depth` the number of blocks around the server's
/// locations.
fn collect<'a>(
    scope: &Scope<'a>,
    outer: Option<&Location<'a>>,
    depth: usize,
    locations: &mut Vec<Location<'a>>,
    named: &mut Named<'a>,
    context: &mut Context<'_>,
) {
    for directive in scope.own().iter().filter(|directive| directive.is("location")) {
        let inner = scope.within(directive.block());
        let (modifier, path) = match &directive.args[..] {
            [path] => match path.as_bytes().first() {
                // nginx accepts `=/path` and `~regex` without a space.
                Some(b'=') => ("=", &path[1..]),
                Some(b'~') if path.starts_with("~*") => ("~*", &path[2..]),
                Some(b'~') => ("~", &path[1..]),
                Some(b'^') if path.starts_with("^~") => ("^~", &path[2..]),
                Some(b'@') => {
                    named.insert(path, inner);
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
        let (kind, is_regex) = match modifier {
            "=" => (Kind::Exact, false),
            "^~" => (Kind::Final, false),
            "~" | "~*" => (Kind::Regex, true),
            _ => (Kind::Prefix, false),
        };
        let closes = closed::closing(&inner, depth);
        let (mut patterns, mut around) = match kind {
            Kind::Exact => (Pattern::exact(path).map(|pattern| vec![pattern]), Vec::new()),
            Kind::Prefix | Kind::Final => (Pattern::prefix(path).map(|pattern| vec![pattern]), Vec::new()),
            Kind::Regex => of_expression(path, modifier == "~*", closes.is_some()),
        };
        if let Some(outer) = outer.filter(|outer| is_regex && !outer.patterns.is_empty()) {
            patterns = patterns.map(|patterns| meet(&patterns, &outer.patterns));
            around = meet(&around, &outer.patterns);
        }
        let is_lost = patterns.is_none() || (modifier == "~*" && (closes.is_none() || !around.is_empty()));
        if is_lost {
            let message = lost_location(directive, closes.is_some(), patterns.is_some());
            context.notes.loss(&directive.at, directive.text(), message);
        }
        let order = locations.len();
        let location = Location {
            scope: inner,
            kind,
            patterns: patterns.unwrap_or_default(),
            around,
            closes,
            closed: Vec::new(),
            prefix: (!is_regex).then_some(path),
            directive: Some(directive),
            order,
            is_nested: outer.is_some(),
        };
        locations.push(location.clone());
        collect(&location.scope, Some(&location), depth, locations, named, context);
    }
}

/// The patterns of an expression, if patterns can express it, and enclosing patterns if its own patterns are missing or
/// incomplete. For a case-insensitive expression of a location that rejects requests, they match upper and lower case.
fn of_expression(regex: &str, ignores_case: bool, closes: bool) -> (Option<Vec<Pattern>>, Vec<Pattern>) {
    let patterns = of_regex(regex);
    let Some(own) = &patterns else { return (None, around_regex(regex, ignores_case)) };
    if !(ignores_case && closes) {
        return (patterns, Vec::new());
    }
    let all: Vec<_> = own.iter().map(Pattern::in_any_case).collect();
    match all.iter().all(|(_, is_whole)| *is_whole) {
        true => (Some(all.into_iter().flat_map(|(patterns, _)| patterns).collect()), Vec::new()),
        false => (patterns, around_regex(regex, true)),
    }
}

fn lost_location(directive: &Directive, closes: bool, has_patterns: bool) -> &'static str {
    if closes {
        return "routes have no regular expressions, so MORE IS DENIED: all that this could be for; see the routes that name this line";
    }
    if has_patterns {
        return "paths are compared with their case, also where nginx has `~*`; add others to `path`";
    }
    if directive.block().iter().any(|inner| inner.is("fastcgi_pass")) {
        return "Weir speaks HTTP to services, not FastCGI; put an HTTP server before it. The path's other route is taken";
    }
    "routes have no regular expressions; write a [[route]] for each path. Its other route is taken"
}

impl<'a> Location<'a> {
    /// The location of all remaining paths.
    fn rest(server: &Scope<'a>) -> Self {
        Self {
            scope: server.within(&[]),
            kind: Kind::Prefix,
            patterns: vec![Pattern::all()],
            around: Vec::new(),
            closes: None,
            closed: Vec::new(),
            prefix: None,
            directive: None,
            order: usize::MAX,
            is_nested: false,
        }
    }
}

/// Separates `/app` from `/app/`, which yield the same pattern: `/app` keeps the path itself and paths that continue
/// its segment.
fn distinct(locations: &mut [Location<'_>]) {
    let with_slash: Vec<_> = locations
        .iter()
        .filter_map(|location| location.prefix)
        .filter_map(|path| path.strip_suffix('/'))
        .map(str::to_owned)
        .collect();
    for location in locations.iter_mut().filter(|location| location.kind != Kind::Exact) {
        let path = location.prefix.filter(|path| with_slash.iter().any(|known| known == path));
        location.patterns.extend(path.and_then(Pattern::exact));
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
