//! The effective configuration in words.

use super::file::Checked;
use super::snapshot::{Action, Names, Snapshot};
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

impl Checked {
    /// What listens, where requests go, and which limits hold: a table for people.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write(self, &mut text);
        text
    }
}

fn write(checked: &Checked, out: &mut String) -> std::fmt::Result {
    let Snapshot { listeners, services, names, routes, policy, .. } = &checked.snapshot;
    writeln!(out, "Listeners")?;
    for listener in listeners {
        writeln!(out, "  {:<16} {}", listener.name, listener.place)?;
    }
    let presented = listeners.iter().find_map(|listener| listener.tls.as_ref());
    for (index, certificate) in presented.iter().flat_map(|server| server.certificates()).enumerate() {
        if index == 0 {
            writeln!(out, "\nCertificates")?;
        }
        let names = certificate.names.join(" ");
        let until =
            httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(certificate.not_after.max(0) as u64));
        writeln!(out, "  {:<12} until {until}  {names}", certificate.key.to_string())?;
        writeln!(out, "               {}", certificate.origin)?;
    }
    writeln!(out, "\nServices")?;
    for service in services {
        let mut name = service.name.as_str();
        for server in &service.servers {
            writeln!(out, "  {name:<16} {} at {}", server.place, server.address)?;
            name = "";
        }
    }
    let mut servers = services.iter().flat_map(|service| &service.servers);
    if servers.any(|server| server.place.is_named()) {
        explain_names(names, out)?;
    }
    writeln!(out, "\nRoutes")?;
    for (index, (route, written)) in routes.iter().zip(&checked.config.routes).enumerate() {
        let hosts = if written.host.is_empty() { "any host".to_owned() } else { written.host.join(" ") };
        let paths: Vec<_> = written.path.iter().map(ToString::to_string).collect();
        let paths = if paths.is_empty() { "/*".to_owned() } else { paths.join(" ") };
        let action = match &route.action {
            Action::Pass { service } => format!("service {}", services[*service].name),
            Action::Redirect { status, .. } => {
                let to = written.redirect.as_ref().map_or("", |redirect| redirect.to.as_str());
                format!("redirect {status} to {to}")
            }
            Action::Respond { status, .. } => format!("respond {status}"),
        };
        writeln!(out, "  {index:<3} {hosts} {paths} -> {action}")?;
    }
    let limits = &policy.limits;
    let body = if policy.max_body == u64::MAX { "unlimited".to_owned() } else { policy.max_body.to_string() };
    writeln!(out, "\nLimits")?;
    writeln!(
        out,
        "  head {} bytes, {} fields, line {} bytes, body {body}",
        limits.head_bytes, limits.fields, limits.line_bytes
    )?;
    let t = &policy.timeouts;
    writeln!(out, "\nTimeouts")?;
    writeln!(
        out,
        "  handshake {:?}, head {:?}, idle {:?}, stall {:?}, connect {:?}, response {:?}",
        t.handshake, t.head, t.idle, t.stall, t.connect, t.response
    )?;
    writeln!(
        out,
        "  pooled {:?}, tunnel {:?}, linger {:?}, drain_idle {:?}, drain {:?}\n",
        t.pooled, t.tunnel, t.linger, t.drain_idle, t.drain
    )
}

fn explain_names(Names { dns, ttls }: &Names, out: &mut String) -> std::fmt::Result {
    let servers: Vec<_> = dns.servers.iter().map(ToString::to_string).collect();
    let by = match servers.as_slice() {
        [] => "/etc/hosts and /etc/resolv.conf".to_owned(),
        servers => format!("/etc/hosts and {}", servers.join(", ")),
    };
    writeln!(out, "\nNames")?;
    writeln!(out, "  by {by}, again after their TTL, {:?} to {:?}", dns.min_ttl, dns.max_ttl)?;
    for (name, ttl) in ttls {
        writeln!(out, "  {name:<16} TTL {ttl:?}")?;
    }
    Ok(())
}
