//! The part of `weir check --explain` about routes.

use crate::config::document::{
    AmbiguousPaths, Edits, Mirror, Rate, RateBy, Retry, Route as Written, RouteMinRate, RouteTimeouts,
};
use crate::config::snapshot::{Action, Redirect, Route, Service};
use std::fmt::{self, Display, Write};
use std::sync::Arc;

pub(super) fn write(
    routes: &[Route],
    written: &[Written],
    services: &[Arc<Service>],
    out: &mut String,
) -> fmt::Result {
    writeln!(out, "\nRoutes")?;
    for (index, (route, written)) in routes.iter().zip(written).enumerate() {
        let hosts = if written.host.is_empty() { "any host".to_owned() } else { written.host.join(" ") };
        let paths = if written.path.is_empty() { "/*".to_owned() } else { joined(&written.path) };
        let action = match &route.action {
            Action::Pass { service } => format!("service {}", services[*service].name),
            Action::Split(split) => {
                let services = written.service.as_ref().map(ToString::to_string).unwrap_or_default();
                match &split.cookie {
                    Some(cookie) => format!("services {services}, by cookie {}", cookie.escape_ascii()),
                    None => format!("services {services}"),
                }
            }
            Action::Redirect(Redirect { status, written, .. }) => format!("redirect {status} to {written}"),
            Action::Respond { status, .. } => format!("respond {status}"),
        };
        writeln!(out, "  {index:<3} {hosts} {paths} -> {action}")?;
        for line in [conditions(written), changes(written), limits(written)] {
            if !line.is_empty() {
                writeln!(out, "      {}", line.join(", "))?;
            }
        }
    }
    Ok(())
}

fn conditions(route: &Written) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(route.name.as_ref().map(|name| format!("named {name}")));
    if !route.method.is_empty() {
        parts.push(format!("only {}", route.method.join(" ")));
    }
    for (name, value) in &route.headers {
        parts.push(if value == "*" { format!("with {name}") } else { format!("with {name}: {value}") });
    }
    if !route.client.is_empty() {
        parts.push(format!("from {}", joined(&route.client)));
    }
    if !route.listener.is_empty() {
        parts.push(format!("by listener {}", route.listener.join(" ")));
    }
    parts
}

fn changes(route: &Written) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(prefix) = &route.strip_prefix {
        parts.push(format!("strips {prefix}"));
    }
    if let Some(prefix) = &route.add_prefix {
        parts.push(format!("adds {prefix}"));
    }
    match route.ambiguous_paths {
        AmbiguousPaths::Refuse => {}
        AmbiguousPaths::Pass => parts.push("ambiguous paths pass".to_owned()),
        AmbiguousPaths::Strict => parts.push("no unusual paths".to_owned()),
    }
    for (of, Edits { set, add, remove }) in
        [("request", &route.request_headers), ("response", &route.response_headers)]
    {
        let names =
            |fields: Vec<&String>| fields.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        for (what, fields) in [
            ("sets", set.keys().collect()),
            ("adds", add.keys().collect()),
            ("removes", remove.iter().collect::<Vec<_>>()),
        ] {
            if !fields.is_empty() {
                parts.push(format!("{of} {what} {}", names(fields)));
            }
        }
    }
    if !route.request_trailers.is_empty() {
        parts.push(format!("request trailers {}", route.request_trailers.join(" ")));
    }
    if let Some(Mirror { service, percent, .. }) = &route.mirror {
        parts.push(format!("{percent} % mirrored to {service}"));
    }
    parts
}

fn limits(route: &Written) -> Vec<String> {
    let mut parts = Vec::new();
    for (name, bytes) in [
        ("body", route.max_body),
        ("request buffer", route.request_buffer),
        ("response buffer", route.response_buffer),
    ] {
        if let Some(bytes) = bytes {
            parts.push(format!("{name} {bytes} bytes"));
        }
    }
    if let Some(Rate { requests, per, burst, by }) = route.rate {
        let whose = match by {
            RateBy::Client => "each client",
            RateBy::Route => "all clients together",
        };
        let burst = burst.unwrap_or(requests);
        parts.push(format!("{requests} requests in {per:?} and {burst} at once for {whose}"));
    }
    if route.trace {
        parts.push("TRACE passes".to_owned());
    }
    match route.retry.requests {
        Retry::Idempotent => {}
        Retry::Always => parts.push("all requests may be sent again".to_owned()),
        Retry::Never => parts.push("no request is sent again".to_owned()),
    }
    if !route.retry.on.is_empty() {
        parts.push(format!("sent again on {}", route.retry.on));
    }
    let RouteTimeouts { stall, body, response_body, response, exchange, tunnel } = route.timeouts;
    for (name, time) in [
        ("stall", stall),
        ("body", body),
        ("response_body", response_body),
        ("response", response),
        ("exchange", exchange),
        ("tunnel", tunnel),
    ] {
        if let Some(time) = time {
            parts.push(format!("{name} {time:?}"));
        }
    }
    let RouteMinRate { request, response, window } = route.min_rate;
    for (name, bytes) in [("request", request), ("response", response)] {
        if let Some(bytes) = bytes {
            parts.push(format!("min_rate {name} {bytes} bytes/s"));
        }
    }
    if let Some(window) = window {
        parts.push(format!("min_rate window {window:?}"));
    }
    parts
}

fn joined(items: &[impl Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
