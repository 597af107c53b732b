//! Keys that have an effect only together with another key. Setting such a key alone is a fault, since the operator
//! expects an effect.

use super::{Fault, Findings, tcp};
use crate::config::Network;
use crate::config::document::{
    AmbiguousPaths, Bind, Curves, Edits, Eject, EjectOn, HalfClose, HashOn, Health, Listener, ListenerTls,
    OwnLimits, Pool, Respond, Retries, Route, RouteMinRate, RouteTimeouts, Service, ServiceTls, Target,
    Underscores,
};
use weir_tls::{Group, Version};

/// Checks a route's keys besides its conditions and action; most of them need a `service`.
pub(super) fn of_route(route: &Route, key: &str, findings: &mut Findings) {
    let Route {
        name: _,
        host: _,
        path: _,
        method: _,
        headers: _,
        client: _,
        listener: _,
        service,
        redirect,
        respond,
        sticky,
        strip_prefix,
        add_prefix,
        ambiguous_paths,
        request_headers,
        request_trailers,
        response_headers: _,
        trace,
        mirror,
        rate: _,
        retry,
        max_body,
        request_buffer,
        response_buffer,
        timeouts,
        min_rate,
    } = route;
    if let Some(Respond { status: status @ (204 | 304), body, content_type }) = respond {
        let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let set = [("body", is_set(body)), ("content_type", content_type.is_some())];
        let why = format!("beside `status = {status}`: such a response has no body");
        without_effect(&format!("{key}.respond"), &set, &why, findings);
    }
    if !matches!(service, Some(Target::Split(_))) {
        let set = [("sticky", sticky.is_some())];
        without_effect(
            key,
            &set,
            "without several services in `service`: a cookie for the servers of one belongs to the service",
            findings,
        );
    }
    if service.is_some() {
        return;
    }
    let set = [
        ("strip_prefix", strip_prefix.is_some()),
        ("add_prefix", add_prefix.is_some()),
        ("ambiguous_paths", *ambiguous_paths != AmbiguousPaths::default()),
        ("request_headers", *request_headers != Edits::default()),
        ("request_trailers", !request_trailers.is_empty()),
        ("trace", *trace),
        ("mirror", mirror.is_some()),
        ("retry", *retry != Retries::default()),
        ("max_body", max_body.is_some()),
        ("request_buffer", request_buffer.is_some()),
        ("response_buffer", response_buffer.is_some()),
        ("timeouts", *timeouts != RouteTimeouts::default()),
        ("min_rate", *min_rate != RouteMinRate::default()),
    ];
    let action = if redirect.is_some() { "redirect" } else { "respond" };
    without_effect(key, &set, &format!("beside `{action}`: it is for requests to a `service`"), findings);
}

/// Checks a listener's keys other than its addresses.
pub(super) fn of_listener(listener: &Listener, key: &str, findings: &mut Findings) {
    let Listener {
        bind,
        mode: _,
        trusted_proxies,
        proxy_field,
        proxy_protocol,
        allow,
        deny,
        half_close,
        underscores_in_headers,
        http2,
        http2_priorities,
        accept,
        limits,
        redirect,
        passthrough,
        tcp,
        certificates,
        tls,
    } = listener;
    let of_http = [
        ("trusted_proxies", !trusted_proxies.is_empty()),
        ("proxy_field", proxy_field.is_some()),
        ("half_close", *half_close != HalfClose::default()),
        ("underscores_in_headers", *underscores_in_headers != Underscores::default()),
        ("http2", !http2),
        ("http2_priorities", *http2_priorities),
        ("accept", !accept.is_empty()),
        ("limits", *limits != OwnLimits::default()),
    ];
    if tcp.is_some() {
        let why = "beside `tcp`: it is for HTTP, and all connections are forwarded as bytes";
        without_effect(key, &of_http, why, findings);
        for (name, is_set) in [("passthrough", !passthrough.is_empty()), ("redirect", redirect.is_some())] {
            if is_set {
                let why = "conflicts with `tcp`, which forwards all connections: expected one of both";
                findings.fault(Fault::new(format!("{key}.{name}"), why));
            }
        }
    } else if tls.is_none() && !passthrough.is_empty() {
        let why = "beside `passthrough` without `tls`: it is for HTTP, and all connections are forwarded undecrypted";
        without_effect(key, &of_http, why, findings);
    }
    if !http2 {
        let set = [("http2_priorities", *http2_priorities)];
        without_effect(key, &set, "beside `http2 = false`: all clients speak HTTP/1.1", findings);
    }
    if tls.is_none() {
        let set = [("certificates", certificates.is_some())];
        without_effect(key, &set, "without `tls`: the listener presents no certificate", findings);
    }
    if let Some(tls) = tls {
        of_tls(tls, &format!("{key}.tls"), findings);
    }
    let is_unix = |bind: &Bind| matches!(bind, Bind::Unix(_));
    let (some_unix, some_tcp) = (bind.iter().any(is_unix), !bind.iter().all(is_unix));
    // With PROXY protocol, the header decides whether a client has an address, so only the networks of the header's
    // senders can be checked.
    let lists = match proxy_protocol.is_empty() {
        true => vec![("trusted_proxies", trusted_proxies), ("allow", allow), ("deny", deny)],
        false => vec![("proxy_protocol", proxy_protocol)],
    };
    for (name, networks) in lists {
        for (at, network) in networks.iter().enumerate() {
            let why = match network {
                Network::Unix if !some_unix => "no client connects over a Unix socket, as `bind` has none",
                Network::Addresses { .. } if !some_tcp => {
                    "no client has an address, as `bind` has Unix sockets alone; write \"unix\" for all of them"
                }
                Network::Unix | Network::Addresses { .. } => continue,
            };
            let why = format!("invalid network `{network}`: {why}");
            findings.fault(Fault::new(format!("{key}.{name}.{at}"), why));
        }
    }
}

/// Checks a listener's TLS for settings without effect: ticket secrets without tickets, stored sessions without TLS
/// 1.2, and curves that no handshake uses.
fn of_tls(tls: &ListenerTls, key: &str, findings: &mut Findings) {
    if tls.tickets == Some(0) {
        let set = [("ticket_secrets", tls.ticket_secrets.is_some())];
        without_effect(key, &set, "beside `tickets = 0`: there are no tickets", findings);
    }
    of_curves(tls.curves, &tls.groups, true, key, findings);
    let is_old = |version: &Version| *version == Version::Tls12;
    let has_old = match tls.versions.is_empty() {
        false => tls.versions.iter().any(is_old),
        true => tls.suites.is_empty() || tls.suites.iter().any(|suite| is_old(&suite.version())),
    };
    if !has_old {
        let set = [("sessions", tls.sessions.is_some())];
        without_effect(
            key,
            &set,
            "without TLS 1.2: clients of TLS 1.3 keep their sessions in tickets",
            findings,
        );
    }
}

/// Checks for curve settings that no handshake uses. `can_sign` says whether handshakes with a P-256 certificate
/// contain signatures.
fn of_curves(curves: Curves, groups: &[Group], can_sign: bool, key: &str, findings: &mut Findings) {
    let has_x25519 = groups.is_empty()
        || groups.iter().any(|group| matches!(group, Group::X25519 | Group::X25519Mlkem768));
    let signs = can_sign && curves == Curves::Ifma;
    if curves != Curves::default() && !has_x25519 && !signs {
        let set = [("curves", true)];
        without_effect(key, &set, "beside `groups` without X25519: AWS-LC computes the others", findings);
    }
}

/// Checks a service's keys other than those for balancing.
pub(super) fn of_service(service: &Service, key: &str, findings: &mut Findings) {
    if tcp::is_for_streams(service) {
        of_stream_service(service, key, findings);
    }
    if service.max_connections.is_none() {
        let set = [("max_waiting", service.max_waiting.is_some())];
        without_effect(key, &set, "without `max_connections`: no request waits", findings);
    }
    if service.proxy_protocol.is_some() {
        let set = [("pool", service.pool != Pool::default())];
        let why = "beside `proxy_protocol`: each request has its own connection";
        without_effect(key, &set, why, findings);
    }
    match service.http2 {
        true => {
            let set = [("accept", !service.accept.is_empty())];
            let why = "beside `http2`: its responses are not text";
            without_effect(key, &set, why, findings);
        }
        false => {
            let set = [("max_streams", service.pool.max_streams.is_some())];
            let why = "without `http2`: a connection has one request at a time";
            without_effect(&format!("{key}.pool"), &set, why, findings);
        }
    }
    let Eject { on, failures, percent, window, min_requests, .. } = service.eject;
    if percent.is_none() {
        let key = format!("{key}.eject");
        let set = [("window", window.is_some()), ("min_requests", min_requests.is_some())];
        without_effect(&key, &set, "without `percent`: no share of failures is counted", findings);
        let set = [("on", failures == 0 && on != EjectOn::default())];
        without_effect(&key, &set, "beside `failures = 0` without `percent`: no server is ejected", findings);
    }
    let ServiceTls { curves, groups, certificate, .. } = &service.tls;
    of_curves(*curves, groups, certificate.is_some(), &format!("{key}.tls"), findings);
    if let Some(health) = &service.health {
        of_health(health, &format!("{key}.health"), findings);
    }
}

/// Checks a service whose servers do not speak HTTP for keys that only affect HTTP.
fn of_stream_service(service: &Service, key: &str, findings: &mut Findings) {
    let of_requests = matches!(service.hash, Some(HashOn::Header(_) | HashOn::Cookie(_)));
    let set = [
        ("hash", of_requests),
        ("sticky", service.sticky.is_some()),
        ("max_waiting", service.max_waiting.is_some()),
        ("http2", service.http2),
        ("accept", !service.accept.is_empty()),
        ("limits", service.limits != OwnLimits::default()),
        ("pool", service.pool != Pool::default()),
    ];
    let why = "with `tcp` or `tls` servers: it is for HTTP, and these speak another protocol";
    without_effect(key, &set, why, findings);
    if let Some(Health { path, grpc, .. }) = &service.health {
        let set = [("path", path.is_some()), ("grpc", grpc.is_some())];
        without_effect(&format!("{key}.health"), &set, &format!("{why}; a check is a connection"), findings);
    }
}

fn of_health(health: &Health, key: &str, findings: &mut Findings) {
    let Health { path, grpc, host, status, .. } = health;
    let (host, status) = (("host", host.is_some()), ("status", *status != Health::default().status));
    match (path, grpc) {
        (None, None) => {
            let why = "without `path` or `grpc`: a check is no more than a connection";
            without_effect(key, &[host, status], why, findings);
        }
        (None, Some(_)) => {
            let why = "beside `grpc`: the status of gRPC decides";
            without_effect(key, &[status], why, findings);
        }
        (Some(_), Some(_)) => {
            let why = "conflicts with `path`: expected one of both";
            findings.fault(Fault::new(format!("{key}.grpc"), why));
        }
        (Some(_), None) => {}
    }
}

/// Adds a fault for each name in `set` whose flag is true, since that key has no effect. `why` completes the message.
pub(super) fn without_effect(key: &str, set: &[(&str, bool)], why: &str, findings: &mut Findings) {
    for (name, _) in set.iter().filter(|(_, is_set)| *is_set) {
        findings.fault(Fault::new(format!("{key}.{name}"), format!("no effect {why}; remove it")));
    }
}
