//! The part of `weir check --explain` about services.

use super::of_heads;
use crate::config::document::{Eject, EjectOn, HashOn, Health, Pool, Service as Written};
use crate::config::snapshot::Service;
use std::fmt::{self, Write};
use std::sync::Arc;
use weir_http1::Limits;

pub(super) fn write<'a>(
    services: &[Arc<Service>],
    written: impl Iterator<Item = &'a Written>,
    general: &Limits,
    out: &mut String,
) -> fmt::Result {
    writeln!(out, "\nServices")?;
    for (service, written) in services.iter().zip(written) {
        let mut name = service.name.as_str();
        for (server, set) in service.servers.iter().zip(&written.servers) {
            write!(out, "  {name:<16} {} at {}", server.place, server.address)?;
            if set.weight != 1 {
                write!(out, ", weight {}", set.weight)?;
            }
            if set.backup {
                write!(out, ", backup")?;
            }
            writeln!(out)?;
            name = "";
        }
        for line in lines(written) {
            writeln!(out, "  {:<16} {line}", "")?;
        }
        if service.limits != *general {
            writeln!(out, "  {:<16} responses with {}", "", of_heads(&service.limits))?;
        }
    }
    Ok(())
}

fn lines(service: &Written) -> Vec<String> {
    let mut lines = Vec::new();
    if service.servers.len() > 1 {
        let mut line = format!("balance {}", kebab(&service.balance));
        match &service.hash {
            Some(HashOn::Client) => line.push_str(" by client"),
            Some(HashOn::Header(name)) => line.push_str(&format!(" by header {name}")),
            Some(HashOn::Cookie(name)) => line.push_str(&format!(" by cookie {name}")),
            None => {}
        }
        if let Some(cookie) = &service.sticky {
            line.push_str(&format!(", sticky by cookie {cookie}"));
        }
        let Eject { on, failures, percent, period, slow_return, .. } = service.eject;
        let in_row = (failures > 0).then(|| format!("{failures} failures"));
        let share = percent.map(|percent| {
            let (window, requests) = (service.eject.window(), service.eject.min_requests());
            format!("{percent} % failures of {requests} requests or more in {window:?}")
        });
        let after: Vec<_> = in_row.into_iter().chain(share).collect();
        match after.is_empty() {
            true => line.push_str(", no ejection"),
            false => line.push_str(&format!(
                ", ejected for {period:?} after {}, slow return {slow_return:?}",
                after.join(" or ")
            )),
        }
        lines.push(line);
        if !after.is_empty() && on != EjectOn::default() {
            lines.push(format!("failures are {on}"));
        }
    }
    if let Some(Health { path, grpc, host, every, timeout, rise, fall, .. }) = &service.health {
        let check = match (path, grpc.as_deref()) {
            (Some(path), _) => format!("GET {path}"),
            (None, Some("")) => "gRPC".to_owned(),
            (None, Some(name)) => format!("gRPC about {name}"),
            (None, None) => "a connection".to_owned(),
        };
        let host = host.as_ref().map_or(String::new(), |host| format!(" for {host}"));
        lines.push(format!(
            "health by {check}{host} every {every:?} within {timeout:?}, up after {rise}, down after {fall}"
        ));
    }
    if service.http2 {
        lines.push(format!("HTTP/2, with {} requests on each connection", service.pool.max_streams()));
    }
    let Pool { max_idle, max_requests, max_age, max_streams: _ } = service.pool;
    let mut line = format!("pool of {max_idle} idle connections in each worker");
    if let Some(most) = max_requests {
        line.push_str(&format!(", {most} requests on each"));
    }
    if let Some(most) = max_age {
        line.push_str(&format!(", no older than {most:?}"));
    }
    lines.push(line);
    if let Some(most) = service.max_connections {
        let waiting = service.max_waiting.unwrap_or(Written::MAX_WAITING);
        lines.push(format!("{most} connections to each server, {waiting} waiting requests in each worker"));
    }
    let mut line = format!("retries for {} % of requests", service.retry_percent);
    if let Some(version) = service.proxy_protocol {
        line.push_str(&format!(", announced by PROXY protocol {}", kebab(&version)));
    }
    lines.push(line);
    if !service.accept.is_empty() {
        let names: Vec<_> = service.accept.iter().map(|rule| rule.0.name()).collect();
        lines.push(format!("accepts {}", names.join(" ")));
    }
    lines
}

/// The name of an enum variant as a configuration file writes it.
fn kebab(value: &impl fmt::Debug) -> String {
    let mut text = String::new();
    for c in format!("{value:?}").chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::{Balance, ProxyProtocol};

    #[test]
    fn variants_are_named_as_in_the_file() {
        assert_eq!(kebab(&Balance::LeastInFlight), "least-in-flight");
        assert_eq!(kebab(&Balance::Hash), "hash");
        assert_eq!(kebab(&ProxyProtocol::V2), "v2");
    }
}
