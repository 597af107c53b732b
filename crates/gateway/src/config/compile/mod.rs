//! Compilation of the document into a snapshot. The compiler finds all faults before the configuration affects any
//! request.

mod beside;
mod certificates;
mod endpoints;
mod limits;
mod listeners;
mod listening_addresses;
mod pages;
mod reach;
mod redirects;
mod routes;
mod server_addresses;
mod services;
mod split;
mod sticky;
mod tcp;
mod validity;
mod warnings;

use super::document::{self, ClientField, Config, Log, OwnLimits};
use super::log_format::LogFormat;
use super::policy::{Forms, InterimLimits, MAX_PENDING, MinRate, MinRates, Policy};
use super::snapshot::{AccessLog, Snapshot, Tracing, Via};
use super::{Fault, Findings, Overrides};
use certificates::Certificates;
pub(crate) use certificates::KnownCertificates;
pub(crate) use endpoints::with_endpoints;
use services::ServicePlaces;
use std::fmt::Display;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
pub(crate) use validity::why_invalid;
use weir_http::{Authority, is_token};
use weir_http1::Limits;
use weir_reactor::cores;
use weir_tls::Curves;

/// Checks a configuration, reads the files that it names and resolves its names. Returns `None` if the findings include
/// a fault.
pub(crate) fn compile(config: &Config, findings: &mut Findings) -> Option<Snapshot> {
    compile_with(config, &KnownCertificates::new(), findings)
}

/// As [`compile`], but takes unchanged certificates from `known`.
pub(crate) fn compile_with(
    config: &Config,
    known: &KnownCertificates<'_>,
    findings: &mut Findings,
) -> Option<Snapshot> {
    at_least_one(config, findings);
    watched(config, findings);
    if let Some(cores) = &config.cores {
        findings.keep(cores.check().map_err(|error| Fault::new("cores", error)));
    }
    listening_addresses::check(config, findings);
    let limits = findings.keep(limits::compile(&config.limits, &OwnLimits::default(), "limits"));
    let policy = findings.keep(policy(config, limits.as_ref()));
    let services = services::compile(config, findings);
    let places = ServicePlaces::new(config);
    let certificates = Certificates::compile(config, known, findings);
    let listeners = listeners::compile(config, &places, &certificates, findings);
    let redirects = redirects::of_listeners(config, findings);
    let routes = routes::compile(config, &places, policy.as_ref(), findings);
    reach::warn(config, findings);
    warnings::warn(config, findings);
    let access = findings.keep(access(&config.log));
    let pages = pages::compile(config, findings);
    let via = findings.keep(via(&config.via));
    let forms = Forms {
        x_forwarded: config.client_fields.contains(&ClientField::XForwarded),
        forwarded: config.client_fields.contains(&ClientField::Forwarded),
    };
    let read_size = findings.keep(size("buffers.read", config.buffers.read, document::Buffers::READ));
    let memory = |bytes| size("limits.memory", bytes, document::Limits::MEMORY);
    let memory = findings.keep(config.limits.memory.map(memory).transpose());
    let steps = u64::from(config.limits.handshakes_per_turn);
    let handshakes_per_turn =
        size("limits.handshakes_per_turn", steps, document::Limits::HANDSHAKES_PER_TURN);
    let handshakes_per_turn = findings.keep(handshakes_per_turn);
    if findings.faults().next().is_some() {
        return None;
    }
    let ((mut services, names), (routes, route_names, hosts)) = (services?, routes?);
    findings.keep(sticky::compile(config, &listeners, &mut services))?;
    Some(Snapshot {
        limits: limits?,
        certificates: certificates.served(config)?,
        listeners,
        services: services.into_iter().map(Arc::new).collect(),
        overrides: Overrides::default(),
        names,
        redirects,
        routes: routes.into(),
        route_names: route_names.into(),
        hosts: Arc::new(hosts),
        forms,
        tracing: tracing(config),
        via: via?,
        pages,
        access: access?,
        connections: config.limits.connections,
        memory: memory?,
        handshakes: config.limits.handshakes,
        handshakes_per_turn: handshakes_per_turn? as u32,
        connections_per_client: config.limits.connections_per_client,
        read_size: read_size?,
        policy: policy?,
    })
}

/// Checks the host names of the admin and metrics addresses.
fn watched(config: &Config, findings: &mut Findings) {
    for (rights, admin) in config.watched() {
        let key = format!("{}.hosts", rights.name());
        for (at, host) in admin.hosts.iter().enumerate() {
            if host.contains('*') || routes::host_name(host).is_none() {
                let why =
                    format!("invalid host `{host}`: expected a name without port, such as admin.example.org");
                findings.fault(Fault::new(format!("{key}.{at}"), why));
            }
        }
        if !admin.hosts.is_empty() && admin.own_hosts(rights).is_none() {
            let why = "requests on a Unix socket may be for any host: expected a port in `bind` beside it";
            findings.fault(Fault::new(key, why));
        }
    }
}

/// Checks the settings that must not be 0.
fn at_least_one(config: &Config, findings: &mut Findings) {
    for (key, is_zero) in [
        ("workers", config.workers == Some(0)),
        ("limits.connections", config.limits.connections == Some(0)),
        ("limits.handshakes", config.limits.handshakes == Some(0)),
        ("limits.connections_per_client", config.limits.connections_per_client == Some(0)),
    ] {
        if is_zero {
            findings.fault(Fault::new(key, "invalid value `0`: expected at least 1"));
        }
    }
}

/// Returns the number of workers. Fails if the system does not report the number of cores.
pub(crate) fn workers(config: &Config) -> Result<usize, Fault> {
    match (config.workers, &config.cores) {
        (Some(count), _) => Ok(count),
        (None, Some(cores)) => Ok(cores.0.len()),
        (None, None) => cores::worker_count().map_err(|error| Fault::new("workers", error)),
    }
}

fn via(via: &document::Via) -> Result<Via, Fault> {
    let name = |key: &str, name: &Option<String>| match name.as_deref() {
        Some(name) if !is_token(name.as_bytes()) && Authority::parse(name.as_bytes()).is_none() => {
            let why =
                format!("invalid value {name:?}: expected a name, or a host with its port, such as weir");
            Err(Fault::new(format!("via.{key}"), why))
        }
        name => Ok(name.map(Into::into)),
    };
    Ok(Via { requests: name("requests", &via.requests)?, responses: name("responses", &via.responses)? })
}

fn tracing(config: &Config) -> Option<Tracing> {
    let document::Tracing { request_id, traceparent } = &config.tracing;
    let request_id = request_id.as_ref().map(|name| name.as_bytes().into());
    (request_id.is_some() || *traceparent).then_some(Tracing { request_id })
}

fn access(log: &Log) -> Result<Option<AccessLog>, Fault> {
    let format = match log.format.as_deref() {
        None | Some("json") => LogFormat::Json,
        Some(text) => LogFormat::template(text).map_err(|why| Fault::new("log.format", why))?,
    };
    let Some(path) = log.access.clone() else {
        return match log.format {
            Some(_) => Err(Fault::new("log.format", "needs `access`, the file of the access log")),
            None => Ok(None),
        };
    };
    Ok(Some(AccessLog { path, format, when_full: log.when_full }))
}

/// The general policy of routes. `of_heads` is `None` if the limits on heads are at fault.
fn policy(config: &Config, of_heads: Option<&Limits>) -> Result<Policy, Fault> {
    let limits = &config.limits;
    let interims = InterimLimits {
        responses: size(
            "limits.interim_responses",
            limits.interim_responses as u64,
            document::Limits::INTERIM_RESPONSES,
        )?,
        bytes: match limits.interim_bytes {
            Some(bytes) => size("limits.interim_bytes", bytes, document::Limits::HEAD)?,
            None => of_heads.map_or(0, |limits| limits.head_bytes),
        },
    };
    Ok(Policy {
        interims,
        max_body: limits.body.unwrap_or(u64::MAX),
        timeouts: config.timeouts,
        min_rates: min_rates(config.min_rate, "min_rate")?,
        has_own_response_limits: false,
        retry: document::Retries::default(),
        request_buffer: 0,
        response_buffer: MAX_PENDING,
    })
}

/// The minimum data rates of clients.
fn min_rates(written: document::MinRate, key: &str) -> Result<MinRates, Fault> {
    // A client's kernel may accept this many bytes at once, even if the client reads steadily.
    const LUMP: u64 = 64 * 1024;
    let document::MinRate { request, response, window } = written;
    if !document::MinRate::WINDOW.contains(&window) {
        let why = format!("invalid value {window:?}: expected 100ms to 1h");
        return Err(Fault::new(format!("{key}.window"), why));
    }
    let rate = |name: &str, bytes: u64, lump: u64| {
        let bytes = size(format!("{key}.{name}"), bytes, document::MinRate::RATE)? as u64;
        Ok(NonZeroU64::new(bytes).map(|per_second| MinRate {
            per_second,
            window: window.max(Duration::from_millis(lump * 1000 / per_second)),
        }))
    };
    Ok(MinRates { request: rate("request", request, 0)?, response: rate("response", response, LUMP)? })
}

/// Converts a number of bytes. Fails if it is out of `range`.
fn size(key: impl Into<String>, bytes: u64, range: RangeInclusive<u64>) -> Result<usize, Fault> {
    match range.contains(&bytes) {
        true => Ok(bytes as usize),
        false => {
            let (least, most) = range.into_inner();
            Err(Fault::new(key, format!("invalid value `{bytes}`: expected {least} to {most}")))
        }
    }
}

/// The maximum number of plaintext bytes in a TLS record, as configured.
fn record_size(key: &str, bytes: Option<u64>, default: usize) -> Result<usize, Fault> {
    bytes.map_or(Ok(default), |bytes| size(format!("{key}.record_size"), bytes, document::RECORD_SIZE))
}

/// Returns the curves of the TLS table at `key`. Fails if this process does not support them.
fn usable_curves(curves: document::Curves, key: &str) -> Result<Curves, Fault> {
    let curves = Curves::from(curves);
    curves.check().map_err(|error| Fault::new(format!("{key}.curves"), error))?;
    Ok(curves)
}

/// The key of the file that an error names: the longest match, since one file name may be a prefix of another.
fn key_of_file<'a>(
    files: impl Iterator<Item = (String, Option<&'a PathBuf>)>,
    error: &str,
) -> Option<String> {
    let named = files.filter_map(|(key, file)| Some((key, file?.display().to_string())));
    let named = named.filter(|(_, file)| error.contains(file));
    // Of several longest matches, the first wins: a file that contains both chain and key is read as the chain first.
    let longest = named.reduce(|best, next| if next.1.len() > best.1.len() { next } else { best });
    longest.map(|(key, _)| key)
}

/// Checks a name that becomes part of keys, metrics and log lines.
fn check_name(key: &str, name: &str) -> Result<(), Fault> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Fault::new(key, format!("invalid name `{name}`: expected 1 to 64 letters, digits, `-` or `_`")))
}

/// Formats names as a list for a message: `a`, `b`.
fn listed(names: impl Iterator<Item = impl Display>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none is defined".to_owned() } else { names.join(", ") }
}
