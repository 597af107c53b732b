//! `weir check --explain`: a description of the effective configuration, for people.

mod routes;
mod services;
mod tls;

use super::document::{HalfClose, MinRate, Underscores};
use super::file::Checked;
use super::snapshot::{Names, Snapshot, Via};
use crate::config::policy::InterimLimits;

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};
use weir_http1::Limits;

impl Checked {
    /// Describes listeners, routes, services and limits in tables for people.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write(self, &mut text);
        text
    }
}

fn write(checked: &Checked, out: &mut String) -> std::fmt::Result {
    let Snapshot {
        limits: general,
        // Described below from [`Checked::certificates`], which excludes those set at run time.
        certificates: _,
        listeners,
        services,
        names,
        redirects,
        routes,
        via,
        policy,
        connections,
        memory,
        connections_per_client,
        ..
    } = &*checked.snapshot;
    writeln!(out, "Listeners")?;
    for listener in listeners {
        writeln!(out, "  {:<16} {}", listener.name, listener.place)?;
    }
    for (name, listener) in &checked.config.listeners {
        let lists = [
            ("trusts proxies in", &listener.trusted_proxies),
            ("PROXY protocol from", &listener.proxy_protocol),
            ("allows", &listener.allow),
            ("denies", &listener.deny),
        ];
        for (what, networks) in lists.into_iter().filter(|(_, networks)| !networks.is_empty()) {
            let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
            writeln!(out, "  {name:<16} {what} {}", networks.join(" "))?;
        }
        if !listener.accept.is_empty() {
            let names: Vec<_> = listener.accept.iter().map(|rule| rule.0.name()).collect();
            writeln!(out, "  {name:<16} accepts {}", names.join(" "))?;
        }
        let half_close = match listener.half_close {
            HalfClose::Abort => None,
            HalfClose::Serve => Some("serves clients that close their sending side"),
        };
        let underscores = match listener.underscores_in_headers {
            Underscores::Drop => None,
            Underscores::Pass => Some("passes fields with underscores in their names"),
            Underscores::Reject => Some("rejects fields with underscores in their names"),
        };
        if let Some(names) = &listener.certificates {
            writeln!(out, "  {name:<16} presents {}", names.join(" "))?;
        }
        let http2 = (!listener.http2).then_some("speaks HTTP/1.1 only");
        let priorities = listener.http2_priorities.then_some("sends HTTP/2 responses by priority");
        for what in [half_close, underscores, http2, priorities].into_iter().flatten() {
            writeln!(out, "  {name:<16} {what}")?;
        }
        if let Some((_, redirect)) = redirects.iter().find(|(of, _)| **of == **name) {
            writeln!(out, "  {name:<16} redirects {} to {}", redirect.status, redirect.written)?;
        }
        let limits = listeners.iter().find(|of| *of.name == **name).map(|of| of.limits);
        if let Some(limits) = limits.filter(|own| own != general) {
            writeln!(out, "  {name:<16} requests with {}", of_heads(&limits))?;
        }
        if let Some(tcp) = &listener.tcp {
            let idle = tcp.idle.unwrap_or(checked.config.timeouts.tunnel);
            writeln!(out, "  {name:<16} bytes to service {}, idle {idle:?}", tcp.service)?;
        }
        for passthrough in &listener.passthrough {
            let (names, service) = (passthrough.name.join(" "), &passthrough.service);
            writeln!(out, "  {name:<16} {names} undecrypted to service {service}")?;
        }
    }
    let certificates = checked.certificates().iter().zip(&checked.config.certificates);
    for (index, (served, written)) in certificates.enumerate() {
        let certificate = served.certificate.presented();
        if index == 0 {
            writeln!(out, "\nCertificates")?;
        }
        let names = certificate.names.join(" ");
        let until =
            httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(certificate.not_after.max(0) as u64));
        writeln!(out, "  {:<12} until {until}  {names}", certificate.key.to_string())?;
        let file = &served.file;
        match &written.name {
            Some(name) => writeln!(out, "               {name}: {file}")?,
            None => writeln!(out, "               {file}")?,
        }
    }
    services::write(services, checked.config.services.values(), general, out)?;
    let mut servers = services.iter().flat_map(|service| &service.servers);
    if servers.any(|server| server.place.is_named()) {
        write_names(names, out)?;
    }
    routes::write(routes, &checked.config.routes, services, out)?;
    write_via(via, out)?;
    let body = if policy.max_body == u64::MAX { "unlimited".to_owned() } else { policy.max_body.to_string() };
    writeln!(out, "\nLimits")?;
    writeln!(out, "  {}, body {body}", of_heads(general))?;
    match connections {
        Some(most) => writeln!(out, "  {most} client connections, if the open-file limit allows them")?,
        None => writeln!(out, "  client connections by the open-file limit")?,
    }
    if let Some(most) = memory {
        writeln!(out, "  {most} bytes of memory for connections")?;
    }
    if let Some(most) = connections_per_client {
        writeln!(out, "  {most} connections for each client")?;
    }
    let InterimLimits { responses, bytes } = policy.interims;
    writeln!(out, "  interim responses {responses} with {bytes} bytes")?;
    writeln!(out, "  {}", min_rate(checked.config.min_rate))?;
    let t = &policy.timeouts;
    let unlimited = |time: Option<Duration>| time.map_or("unlimited".to_owned(), |time| format!("{time:?}"));
    writeln!(out, "\nTimeouts")?;
    writeln!(
        out,
        "  handshake {:?}, head {:?}, idle {:?}, stall {:?}, queue {:?}",
        t.handshake, t.head, t.idle, t.stall, t.queue,
    )?;
    writeln!(
        out,
        "  body {}, response body {}, exchange {}",
        unlimited(t.body),
        unlimited(t.response_body),
        unlimited(t.exchange)
    )?;
    writeln!(
        out,
        "  connect {:?}, upstream_handshake {:?}, response {:?}",
        t.connect, t.upstream_handshake, t.response
    )?;
    writeln!(
        out,
        "  pooled {:?}, tunnel {:?}, linger {:?}, drain_idle {:?}, drain {:?}\n  upgrade {:?}, upgrade_drain {:?}",
        t.pooled, t.tunnel, t.linger, t.drain_idle, t.drain, t.upgrade, t.upgrade_drain
    )?;
    let config = &checked.config;
    writeln!(out, "\nLog and admin")?;
    match &config.log.access {
        Some(path) => writeln!(out, "  access log {}", path.display())?,
        None => writeln!(out, "  no access log")?,
    }
    for (rights, admin) in config.watched() {
        writeln!(out, "  {} at {}", rights.name(), admin.bind(rights))?;
    }
    if config.admin.is_none() {
        writeln!(out, "  no admin address")?;
    }
    let own = |name: &str| {
        let service = services.iter().find(|service| service.name == name)?;
        service.tls.as_ref()?.client.certificate().map(|own| own.key)
    };
    tls::write(out, checked, own)?;
    writeln!(out)
}

fn of_heads(limits: &Limits) -> String {
    let Limits { head_bytes, fields, line_bytes, extension_bytes } = limits;
    format!(
        "head {head_bytes} bytes, {fields} fields, line {line_bytes} bytes, chunk extensions {extension_bytes} bytes"
    )
}

fn min_rate(MinRate { request, response, window }: MinRate) -> String {
    let rate = |bytes| match bytes {
        0 => "any rate".to_owned(),
        bytes => format!("{bytes} bytes/s"),
    };
    format!("clients send at least {}, take {}, window {window:?}", rate(request), rate(response))
}

fn write_via(Via { requests, responses }: &Via, out: &mut String) -> std::fmt::Result {
    let parts: Vec<_> = [("requests", requests), ("responses", responses)]
        .into_iter()
        .filter_map(|(of, name)| Some(format!("{} in {of}", name.as_deref()?)))
        .collect();
    match parts.is_empty() {
        true => Ok(()),
        false => writeln!(out, "\nVia\n  {}", parts.join(", ")),
    }
}

fn write_names(Names { dns, ttls }: &Names, out: &mut String) -> std::fmt::Result {
    let servers: Vec<_> = dns.servers.iter().map(ToString::to_string).collect();
    let by = match servers.as_slice() {
        [] => "/etc/hosts and /etc/resolv.conf".to_owned(),
        servers => format!("/etc/hosts and {}", servers.join(", ")),
    };
    writeln!(out, "\nNames")?;
    writeln!(out, "  by {by}, again after their TTL, {:?} to {:?}", dns.min_ttl, dns.max_ttl)?;
    for (name, ttl) in ttls.iter() {
        writeln!(out, "  {name:<16} TTL {ttl:?}")?;
    }
    Ok(())
}
