//! Compilation of routes: their conditions, actions, edits, and the index by host and path.

use super::services::ServicePlaces;
use super::{Fault, Findings, beside, check_name, listed, min_rates, redirects, size, split};
use crate::config::document::{self, AmbiguousPaths, Config, RateBy, Retries, Retry, Target};
use crate::config::policy::{MAX_PENDING, MirrorTo, Policy, RateLimit};
use crate::config::snapshot::{Action, FieldNames, Route};
use crate::heads::imitations::is_imitation;
use crate::route::{Conditions, Edits, End, Hosts, PathEdit, PathPattern, Template, WantedField};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::Ipv6Addr;
use weir_http::{FieldName, is_token, may_be_trailer};

/// The routes in order, their names, and their index by host and path. `policy` is the general policy, `None` if it is
/// at fault. Returns `None` if a route is at fault.
pub(super) fn compile(
    config: &Config,
    services: &ServicePlaces<'_>,
    policy: Option<&Policy>,
    findings: &mut Findings,
) -> Option<(Vec<Route>, Vec<String>, Hosts)> {
    let mut routes = Vec::new();
    let mut hosts = Hosts::default();
    let names = names(config, findings);
    for (index, route) in config.routes.iter().enumerate() {
        let key = format!("route.{index}");
        routes.push(compile_one(config, services, route, &names, policy, &key, findings));
        place(&mut hosts, route, index, &key, findings);
    }
    let mut routes: Vec<_> = routes.into_iter().collect::<Option<_>>()?;
    let reads_path = |route: &Route| route.path.is_some() || route.ambiguous_paths == AmbiguousPaths::Strict;
    if routes.iter().any(reads_path) {
        hosts.set_reads_paths();
    }
    if let ([only], [written]) = (&routes[..], &config.routes[..])
        && written.host.is_empty()
        && written.path.is_empty()
        && only.conditions.are_none()
        && !reads_path(only)
    {
        hosts.set_catch_all(0);
    }
    split::add_routes(services, &config.routes, &mut routes, findings);
    Some((routes, names, hosts))
}

/// The names of routes, sorted. An invalid or duplicate name is a fault.
fn names(config: &Config, findings: &mut Findings) -> Vec<String> {
    let mut firsts: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, route) in config.routes.iter().enumerate() {
        let Some(name) = route.name.as_deref() else { continue };
        let key = format!("route.{index}.name");
        findings.keep(check_name(&key, name));
        match firsts.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(index)),
            Entry::Occupied(entry) => {
                let why = format!(
                    "duplicate name `{name}`: expected a name that no other route has, and route.{} has it",
                    entry.get()
                );
                findings.fault(Fault::new(key, why));
            }
        }
    }
    firsts.into_keys().map(str::to_owned).collect()
}

/// Compiles a route. Checks every part even after a fault, to report all faults at once.
fn compile_one(
    config: &Config,
    services: &ServicePlaces<'_>,
    route: &document::Route,
    names: &[String],
    policy: Option<&Policy>,
    key: &str,
    findings: &mut Findings,
) -> Option<Route> {
    beside::of_route(route, key, findings);
    redirects::check_listeners(config, route, key, findings);
    let conditions = conditions(config, route, key, findings);
    let action = action(services, route, key, findings);
    let own = own_policy(config, route, policy, key, findings);
    let mirror = findings.keep(mirror(config, services, route, key));
    let path = findings.keep(path_edit(route, key));
    let rate = findings.keep(rate(route.rate, key));
    let request = edits(&route.request_headers, &format!("{key}.request_headers"), true, findings);
    let request = findings.keep(traced(config, request));
    let request_trailers = findings.keep(trailers(&route.request_trailers, request.as_ref(), key));
    let response = edits(&route.response_headers, &format!("{key}.response_headers"), false, findings);
    let place = |name: &str| names.binary_search_by(|own| own.as_str().cmp(name)).ok();
    Some(Route {
        name: route.name.as_deref().and_then(place),
        conditions,
        is_for_challenges: redirects::is_for_challenges(route),
        action: action?,
        policy: own?,
        trace: route.trace,
        mirror: mirror?,
        path: path?,
        ambiguous_paths: route.ambiguous_paths,
        rate: rate?,
        request: request?,
        request_trailers: request_trailers?,
        response,
    })
}

fn own_policy(
    config: &Config,
    route: &document::Route,
    policy: Option<&Policy>,
    key: &str,
    findings: &mut Findings,
) -> Option<Policy> {
    let min_rates = min_rates(route.min_rate.over(config.min_rate), &format!("{key}.min_rate"));
    let min_rates = findings.keep(min_rates);
    let request_buffer = buffer(route.request_buffer, 0, &format!("{key}.request_buffer"));
    let request_buffer = findings.keep(request_buffer);
    let response_buffer = buffer(route.response_buffer, MAX_PENDING, &format!("{key}.response_buffer"));
    let response_buffer = findings.keep(response_buffer);
    let retries = findings.keep(retries(route, key));
    let (policy, min_rates) = (policy?, min_rates?);
    let timeouts = route.timeouts.over(policy.timeouts);
    Some(Policy {
        max_body: route.max_body.unwrap_or(policy.max_body),
        timeouts,
        min_rates,
        has_own_response_limits: (timeouts.stall, timeouts.response_body, min_rates.response)
            != (policy.timeouts.stall, policy.timeouts.response_body, policy.min_rates.response),
        retry: retries?,
        request_buffer: request_buffer?,
        response_buffer: response_buffer?,
        ..policy.clone()
    })
}

/// The number of bytes to buffer for one message.
fn buffer(bytes: Option<u64>, default: usize, key: &str) -> Result<usize, Fault> {
    match bytes {
        None => Ok(default),
        Some(bytes) => size(key, bytes, document::Route::BUFFER),
    }
}

/// Adds a route to the index, under each of its hosts and paths.
fn place(hosts: &mut Hosts, route: &document::Route, index: usize, key: &str, findings: &mut Findings) {
    let all = [PathPattern::all()];
    let paths = if route.path.is_empty() { &all[..] } else { &route.path };
    let mut names = Vec::new();
    for (at, host) in route.host.iter().enumerate() {
        match host_name(host) {
            Some(name) => names.push(Some(name)),
            None => findings
                .fault(Fault::new(format!("{key}.host.{at}"), format!("invalid host `{host}`: {HOST}"))),
        }
    }
    if route.host.is_empty() {
        names.push(None);
    }
    for name in &names {
        for path in paths {
            hosts.insert(name.as_deref(), path, index);
        }
    }
}

/// The expected form of a name in a route or a listener.
pub(super) const HOST: &str = "expected a name without port, all names of a domain, or an IPv6 address in brackets, such as \
     example.org, *.example.org or [2001:db8::1]";

/// Normalises a name for the comparison with requests: lower case, no trailing dot, an IPv6 address in canonical text
/// form. Returns `None` if the name is invalid.
pub(super) fn host_name(host: &str) -> Option<String> {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().ok().map(|address| format!("[{address}]"));
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let name = host.strip_prefix("*.").unwrap_or(host);
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    (name.len() <= 253 && name.split('.').all(label)).then(|| host.to_ascii_lowercase())
}

fn conditions(config: &Config, route: &document::Route, key: &str, findings: &mut Findings) -> Conditions {
    for (at, method) in route.method.iter().enumerate() {
        if !is_token(method.as_bytes()) {
            let why = format!("invalid method `{method}`: expected a token such as GET");
            findings.fault(Fault::new(format!("{key}.method.{at}"), why));
        }
    }
    let mut listeners = Vec::new();
    for (at, name) in route.listener.iter().enumerate() {
        if !config.listeners.contains_key(name) {
            let why =
                format!("unknown listener `{name}`: expected one of {}", listed(config.listeners.keys()));
            findings.fault(Fault::new(format!("{key}.listener.{at}"), why));
        }
        listeners.push(name.as_str().into());
    }
    let mut headers = Vec::new();
    for (name, value) in &route.headers {
        if !is_token(name.as_bytes()) {
            let why = format!("invalid field name `{name}`");
            findings.fault(Fault::new(format!("{key}.headers.{name}"), why));
        }
        let value = (value != "*").then(|| value.as_bytes().into());
        // A route without a service usually denies requests, so its condition matches every spelling that a server may
        // read as this name: otherwise a client could avoid the route. A route to a service grants access, so its
        // condition matches only the exact name, which a proxy in front sets or removes.
        let in_any_spelling = route.service.is_none();
        headers.push(WantedField { name: name.as_bytes().into(), value, in_any_spelling });
    }
    Conditions {
        methods: route.method.iter().map(|method| method.as_bytes().into()).collect(),
        headers,
        clients: route.client.clone(),
        listeners,
    }
}

fn action(
    services: &ServicePlaces<'_>,
    route: &document::Route,
    key: &str,
    findings: &mut Findings,
) -> Option<Action> {
    const ACTIONS: &str = "expected one of `service`, `redirect`, `respond`";
    let action = match (&route.service, &route.redirect, &route.respond) {
        (Some(Target::Split(shares)), None, None) => {
            return split::action(services, shares, route.sticky.as_deref(), key, findings);
        }
        (Some(Target::Service(name)), None, None) => {
            services.for_requests(name, &format!("{key}.service")).map(|service| Action::Pass { service })
        }
        (None, Some(redirect), None) => {
            redirects::redirect(&redirect.to, redirect.status, &format!("{key}.redirect"))
                .map(Action::Redirect)
        }
        (None, None, Some(respond)) => fixed(respond, &format!("{key}.respond")),
        (None, None, None) => Err(Fault::new(key, format!("missing action: {ACTIONS}"))),
        _ => Err(Fault::new(key, format!("more than one action: {ACTIONS}"))),
    };
    findings.keep(action)
}

fn retries(route: &document::Route, key: &str) -> Result<Retries, Fault> {
    if !route.retry.on.is_empty() && route.retry.requests == Retry::Never {
        let why = "invalid value `never` beside `on`: expected `idempotent` or `always`";
        return Err(Fault::new(format!("{key}.retry.requests"), why));
    }
    Ok(route.retry)
}

fn mirror(
    config: &Config,
    services: &ServicePlaces<'_>,
    route: &document::Route,
    key: &str,
) -> Result<Option<MirrorTo>, Fault> {
    let Some(document::Mirror { service, percent, max_body, max_in_flight }) = &route.mirror else {
        return Ok(None);
    };
    let key = format!("{key}.mirror");
    if !document::Mirror::PERCENT.contains(percent) {
        let why = format!("invalid value `{percent}`: expected 0.0 to 100.0");
        return Err(Fault::new(format!("{key}.percent"), why));
    }
    let max_body = size(format!("{key}.max_body"), *max_body, document::Mirror::BODY)?;
    if *max_in_flight == 0 {
        return Err(Fault::new(format!("{key}.max_in_flight"), "invalid value `0`: expected at least 1"));
    }
    let of_service = format!("{key}.service");
    let index = services.for_requests(service, &of_service)?;
    if config.services.get(service).is_some_and(|service| service.http2) {
        let why = format!(
            "invalid service `{service}`: expected one without `http2`, as copies are sent by HTTP/1.1"
        );
        return Err(Fault::new(of_service, why));
    }
    Ok(Some(MirrorTo { service: index, share: percent / 100.0, max_body, most: *max_in_flight }))
}

fn rate(written: Option<document::Rate>, key: &str) -> Result<Option<RateLimit>, Fault> {
    let Some(document::Rate { requests, per, burst, by }) = written else { return Ok(None) };
    let burst = burst.unwrap_or(requests);
    for (name, value) in [("requests", requests), ("burst", burst)] {
        size(format!("{key}.rate.{name}"), value.into(), document::Rate::REQUESTS)?;
    }
    if per > document::Rate::LONGEST {
        return Err(Fault::new(
            format!("{key}.rate.per"),
            format!("invalid value {per:?}: expected at most 1h"),
        ));
    }
    Ok(Some(RateLimit { requests, per, burst, in_common: by == RateBy::Route }))
}

fn fixed(respond: &document::Respond, key: &str) -> Result<Action, Fault> {
    let status = respond.status;
    size(format!("{key}.status"), status.into(), document::Respond::STATUSES)?;
    let content_type = respond.content_type.as_deref().unwrap_or(document::Respond::CONTENT_TYPE);
    if content_type.chars().any(char::is_control) {
        let why = format!("invalid value {content_type:?}: control characters end a field");
        return Err(Fault::new(format!("{key}.content_type"), why));
    }
    Ok(Action::Respond {
        status,
        content_type: content_type.into(),
        body: respond.body.as_ref().map(|body| body.as_bytes().into()),
    })
}

fn path_edit(route: &document::Route, key: &str) -> Result<Option<PathEdit>, Fault> {
    let prefix = |name: &str, prefix: &Option<String>| match prefix.as_deref() {
        None => Ok(Box::default()),
        Some(text) => match text.parse::<PathPattern>() {
            Ok(PathPattern { end: End::Alone, .. }) if !text.contains('{') => {
                Ok(text.trim_end_matches('/').as_bytes().into())
            }
            _ => {
                let why = format!("invalid value `{text}`: expected a path such as /api");
                Err(Fault::new(format!("{key}.{name}"), why))
            }
        },
    };
    let edit = PathEdit {
        strip: prefix("strip_prefix", &route.strip_prefix)?,
        add: prefix("add_prefix", &route.add_prefix)?,
    };
    Ok((edit != PathEdit::default()).then_some(edit))
}

/// Compiles the valid edits, and adds a fault to `findings` for each other one. With `of_request`, values may contain
/// variables.
pub(super) fn edits(edits: &document::Edits, key: &str, of_request: bool, findings: &mut Findings) -> Edits {
    let mut compiled = Edits::default();
    for name in &edits.remove {
        compiled.remove.extend(findings.keep(field_name(name, &format!("{key}.remove"))));
    }
    for (kind, fields) in [("set", &edits.set), ("add", &edits.add)] {
        for (name, value) in fields {
            let edit = edit(kind, name, value, &format!("{key}.{kind}.{name}"), of_request);
            let Some((name, value)) = findings.keep(edit) else { continue };
            if kind == "set" {
                compiled.remove.push(name.clone());
            }
            compiled.add.push((name, value));
        }
    }
    if of_request
        && compiled.drops_name(b"host")
        && !edits.set.keys().any(|name| name.eq_ignore_ascii_case("host"))
    {
        let why = "a request has a Host: expected `set` with another one";
        findings.fault(Fault::new(format!("{key}.remove"), why));
    }
    compiled
}

/// Compiles a field to set or to add.
pub(super) fn edit(
    kind: &str,
    name: &str,
    value: &str,
    key: &str,
    of_request: bool,
) -> Result<(Box<[u8]>, Template), Fault> {
    let bytes = field_name(name, key)?;
    let value: Template = value.parse().map_err(|why| Fault::new(key, why))?;
    if !of_request && !value.is_constant() {
        return Err(Fault::new(key, "variables are for requests and redirects: expected a fixed value"));
    }
    if kind == "add" && name.eq_ignore_ascii_case("host") {
        return Err(Fault::new(key, "a request has one Host: expected `set` in place of `add`"));
    }
    Ok((bytes, value))
}

/// Checks the names of the request trailers to forward. They must not include a field that `request`, the route's edits
/// of request heads, changes, since servers may merge trailers into the head.
pub(super) fn trailers(
    names: &[String],
    request: Option<&Edits>,
    key: &str,
) -> Result<Option<FieldNames>, Fault> {
    for (at, name) in names.iter().enumerate() {
        if !is_token(name.as_bytes()) || !may_be_trailer(name.as_bytes()) {
            let why = format!(
                "`{name}` cannot be a trailer: expected a field that does not frame, route, authenticate or describe the message"
            );
            return Err(Fault::new(format!("{key}.request_trailers.{at}"), why));
        }
        if request.is_some_and(|request| request.owns(name.as_bytes())) {
            let why = format!(
                "`{name}` is set, added or removed in heads, and a client's trailer of that name would be forwarded: remove it from `request_trailers`, or from `request_headers`"
            );
            return Err(Fault::new(format!("{key}.request_trailers.{at}"), why));
        }
        if is_imitation(name.as_bytes(), false) {
            let why = format!(
                "`{name}` identifies the client, and servers trust proxies to set it: expected a field that clients may send"
            );
            return Err(Fault::new(format!("{key}.request_trailers.{at}"), why));
        }
    }
    Ok((!names.is_empty()).then(|| names.iter().map(|name| name.as_bytes().into()).collect()))
}

/// Adds the tracing fields, except those that the route sets or removes.
fn traced(config: &Config, mut edits: Edits) -> Result<Edits, Fault> {
    let document::Tracing { request_id, traceparent } = &config.tracing;
    let request_id = request_id.as_ref().map(|name| ("tracing.request_id", name.as_str(), "{request_id}"));
    let traceparent = traceparent.then_some(("tracing.traceparent", "traceparent", "{traceparent}"));
    for (key, name, value) in request_id.into_iter().chain(traceparent) {
        let name = field_name(name, key)?;
        let value = value.parse().map_err(|why: String| Fault::new(key, why))?;
        if !edits.drops_name(&name) {
            edits.remove.push(name.clone());
            edits.add.push((name, value));
        }
    }
    Ok(edits)
}

/// Checks that a field may be edited: it neither frames the message nor belongs to one connection.
fn field_name(name: &str, key: &str) -> Result<Box<[u8]>, Fault> {
    if !is_token(name.as_bytes()) {
        return Err(Fault::new(key, format!("invalid field name `{name}`")));
    }
    let known = FieldName::of(name.as_bytes());
    if known.is_hop_by_hop() || matches!(known, FieldName::ContentLength | FieldName::Expect) {
        let why = format!("`{name}` frames the message or belongs to one connection: expected another field");
        return Err(Fault::new(key, why));
    }
    Ok(name.as_bytes().into())
}
