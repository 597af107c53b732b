//! Access control: directives that reject requests, and the paths that they protect.
//!
//! nginx selects locations in its own order and by regular expressions, which routes do not support. If a location
//! rejects requests and no pattern expresses its paths, the translation denies every path that the location could
//! match.

use super::location::Part;
use super::server::{Kind, Location};
use crate::model::{Action, Handler};
use crate::pattern::Pattern;
use crate::regex::around_regex;
use weir_syntax::nginx::{Directive, Scope};

/// Finds a directive that rejects requests, or may do so, in the scope's blocks from number `depth` on.
pub(super) fn closing<'a>(scope: &Scope<'a>, depth: usize) -> Option<&'a Directive> {
    let is_denial = |directive: &&Directive| match directive.name.as_str() {
        "return" => is_denial(directive),
        "if" => denies(directive),
        "limit_except" => true,
        _ => false,
    };
    let rules = scope.all_of(&["allow", "deny"]);
    let inherited = rules.into_iter().rfind(|rule| rule.is("deny")).into_iter();
    let mut inherited = inherited.chain(scope.find("internal")).chain(guard(scope));
    let is_inner = |directive: &&Directive| scope.from(depth).any(|known| std::ptr::eq(known, *directive));
    scope.own().iter().find(is_denial).or_else(|| inherited.find(is_inner))
}

/// The directive that authenticates the client or lets a program decide; Weir supports neither.
pub(super) fn guard<'a>(scope: &Scope<'a>) -> Option<&'a Directive> {
    let is_on = |directive: &&Directive| {
        is_guard(&directive.name)
            && directive.arg() != "off"
            && scope.find(&directive.name).is_some_and(|found| std::ptr::eq(found, *directive))
    };
    scope.from(0).filter(is_on).last()
}

/// Whether a directive of this name rejects requests unless it is `off`.
pub(super) fn is_guard(name: &str) -> bool {
    const MODULES: [&str; 10] = [
        "auth_basic",
        "auth_digest",
        "auth_gss",
        "auth_jwt",
        "auth_ldap",
        "auth_oidc",
        "auth_pam",
        "auth_request",
        "auth_saml",
        "auth_spnego",
    ];
    const OTHERS: [&str; 5] =
        ["auth_jwt_require", "app_protect_enable", "modsecurity", "access_by_lua", "rewrite_by_lua"];
    let is_setting = |module: &&str| name.strip_prefix(*module).is_some_and(|rest| rest.starts_with('_'));
    OTHERS.contains(&name)
        || ["access_by_lua_", "rewrite_by_lua_"].iter().any(|script| name.starts_with(script))
        || (name.starts_with("auth_")
            && !MODULES.iter().any(is_setting)
            && !["auth_delay", "auth_http"].iter().any(|other| name.starts_with(other)))
}

/// Whether a `return` rejects the request.
pub(super) fn is_denial(directive: &Directive) -> bool {
    directive.arg().parse::<u64>().is_ok_and(|status| (400..500).contains(&status))
}

/// Whether an `if` rejects requests, or redirects unauthenticated clients.
pub(super) fn denies(directive: &Directive) -> bool {
    let asks_who = ["$ssl_client", "$remote_user", "$http_authorization", "$secure_link", "$invalid_referer"];
    let asks_who = directive.args.iter().any(|arg| asks_who.iter().any(|variable| arg.contains(variable)));
    let is_login = |inner: &Directive| {
        let places =
            ["login", "signin", "sign-in", "sign_in", "auth", "sso", "denied", "forbidden", "blocked"];
        inner.args.iter().any(|arg| places.iter().any(|place| arg.to_ascii_lowercase().contains(place)))
    };
    directive.block().iter().any(|inner| match inner.name.as_str() {
        "return" => is_denial(inner) || asks_who || is_login(inner),
        "rewrite" => asks_who || is_login(inner),
        _ => false,
    })
}

/// Replaces a handler with one that denies all requests, unless it responds with an error already: Weir cannot
/// determine which requests nginx would reject. The handler's note names the original action.
pub(super) fn closed(handler: Handler, why: &Directive) -> Handler {
    if matches!(handler.action, Action::Respond { status, .. } if status >= 400) {
        return handler;
    }
    let then = match &handler.action {
        Action::Service(name) => format!("; then: service = \"{name}\""),
        Action::Split { shares, .. } => format!("; then: {} services by weight", shares.len()),
        Action::Redirect { to, .. } => format!("; then: redirect to {to}"),
        Action::Respond { .. } => String::new(),
    };
    let note = format!("nginx may turn requests away here ({}: {}){then}", why.at, why.text());
    Handler { notes: handler.notes, ..Handler::new(Action::status(403)) }.noted(note)
}

/// Whether nginx prefers the first of two locations that match a path and Weir might not. Of two prefixes, both servers
/// prefer the longer one.
fn beats(a: &Location<'_>, b: &Location<'_>) -> bool {
    match (a.kind, b.kind) {
        (Kind::Exact, other) => other != Kind::Exact,
        (Kind::Regex, Kind::Prefix) | (Kind::Final, Kind::Regex) => true,
        (Kind::Regex, Kind::Regex) => a.order < b.order || a.is_nested,
        _ => false,
    }
}

/// Moves paths from the location that Weir would prefer to the one that nginx prefers.
pub(super) fn in_order(locations: &mut [Location<'_>]) {
    let written = locations.to_vec();
    for (location, own) in locations.iter_mut().zip(&written) {
        let is_left = |pattern: &Pattern| {
            let mut winners =
                written.iter().filter(|other| beats(other, own)).flat_map(|other| &other.patterns);
            !winners.any(|winner| winner.covers(pattern))
        };
        location.patterns.retain(is_left);
        for loser in written.iter().filter(|other| beats(own, other)).flat_map(|other| &other.patterns) {
            for pattern in &own.patterns {
                let is_whole = pattern.covers(loser);
                if is_whole && location.patterns.contains(pattern) {
                    continue;
                }
                // A partial overlap may include a few more paths, which is acceptable only for a denial.
                let both = pattern.meet(loser).filter(|_| own.closes.is_some() || is_whole);
                location.patterns.extend(both.filter(|both| both != pattern));
            }
        }
        location.patterns.sort();
        location.patterns.dedup();
    }
}

/// For each location that rejects requests and whose paths no pattern expresses: denies the enclosing paths.
pub(super) fn around(locations: &mut [Location<'_>]) -> Vec<(Part, Vec<Pattern>, String)> {
    let mut routes = Vec::new();
    for a in 0..locations.len() {
        for b in 0..locations.len() {
            let is_other = |pattern: &Pattern, locations: &[Location<'_>]| {
                let mut others = locations.iter().enumerate().filter(|(index, _)| *index != b);
                others.any(|(_, other)| other.patterns.contains(pattern))
            };
            let (closer, other) = match (locations.get(a), locations.get(b)) {
                (Some(closer), Some(other)) if a != b && beats(closer, other) => (closer, other),
                _ => continue,
            };
            let Some(why) = closer.closes.filter(|_| !closer.around.is_empty()) else { continue };
            let at = closer.directive.unwrap_or(why);
            let (mut whole, mut parts) = (Vec::new(), Vec::new());
            for pattern in &other.patterns {
                for around in &closer.around {
                    match around.meet(pattern) {
                        Some(_) if around.covers(pattern) => whole.push(pattern.clone()),
                        Some(both) if !is_other(&both, locations) => parts.push(both),
                        _ => {}
                    }
                }
            }
            if !parts.is_empty() {
                let note = format!("nginx turns a part of these away ({}: {})", at.at, at.text());
                let then = Handler::new(Action::status(403)).noted(note);
                routes.push((Part { then, ..Part::default() }, parts, at.at.to_string()));
            }
            if let Some(other) = locations.get_mut(b) {
                other.patterns.retain(|pattern| !whole.contains(pattern));
                if !whole.is_empty() {
                    other.closed.push((at, whole));
                }
            }
        }
    }
    routes
}

/// Denies `/app` where nginx rejects it and only `location /app/` admits requests, since the pattern `/app/*` matches
/// both.
pub(super) fn without_slash(locations: &mut [Location<'_>]) {
    let mut found = Vec::new();
    for (index, location) in locations.iter().enumerate() {
        for pattern in location.patterns.iter().filter(|_| location.closes.is_none()) {
            let Pattern::Below(path) = pattern else { continue };
            let exact = Pattern::Exact(path.clone());
            if path.is_empty() || locations.iter().any(|other| other.patterns.contains(&exact)) {
                continue;
            }
            let others = locations.iter().enumerate().filter(|(other, _)| *other != index);
            let covering =
                others.filter(|(_, other)| other.patterns.iter().any(|pattern| pattern.covers(&exact)));
            let winner = covering
                .max_by_key(|(_, other)| (other.kind == Kind::Regex, other.prefix.map_or(0, str::len)));
            if let Some((winner, _)) = winner.filter(|(_, winner)| winner.closes.is_some()) {
                found.push((winner, exact));
            }
        }
    }
    for (winner, exact) in found {
        if let Some(winner) = locations.get_mut(winner) {
            winner.patterns.push(exact);
        }
    }
}

/// Denies requests that a rewrite would move to a protected location.
pub(super) fn moved(block: &[Directive], locations: &[Location<'_>]) -> Vec<(Part, Vec<Pattern>, String)> {
    let mut routes = Vec::new();
    for directive in block.iter().filter(|directive| directive.is("rewrite")) {
        let [regex, to, flags @ ..] = &directive.args[..] else { continue };
        let is_final = flags.iter().any(|flag| matches!(flag.as_str(), "permanent" | "redirect" | "break"));
        if is_final || !to.starts_with('/') {
            continue;
        }
        let to = to.split(['$', '?']).next().and_then(Pattern::prefix).unwrap_or_else(Pattern::all);
        let is_kept_out = |location: &&Location<'_>| {
            let mut patterns = location.patterns.iter().chain(&location.around);
            location.closes.is_some() && patterns.any(|pattern| pattern.meet(&to).is_some())
        };
        if let Some(location) = locations.iter().find(is_kept_out) {
            let why = location.closes.map(|why| format!("{}: {}", why.at, why.text())).unwrap_or_default();
            let note = format!("nginx goes on with another path, and turns it away ({why})");
            let then = Handler::new(Action::status(403)).noted(note);
            let part = Part { then, ..Part::default() };
            routes.push((part, around_regex(regex, false), directive.at.to_string()));
        }
    }
    routes
}
