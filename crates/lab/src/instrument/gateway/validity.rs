//! The validity of a run. An invalid run is stored and listed, and never averaged: a run of errors only can be
//! the fastest of all.

use super::levels::Place as _;
use super::run::{Seen, parts};
use super::values::HANDSHAKE_ONLY;
use crate::experiment::Level;
use crate::experiment::metric::Metric;
use crate::instrument::gateway::{Conditions, OriginKind, Side, Tls, TlsVersion, UpstreamConnections};
use crate::store::run::Run;
use weir_load::result::{Handshakes, LoadResult, Negotiated, Pacer, Tickets};
use weir_load::{ErrorClass, HttpVersion, exceeds_budget};

/// Connections to the origin beyond those of the clients: ready checks, and a gateway's races between two dials, more
/// frequent with more clients.
fn upstream_handful(clients: u64) -> u64 {
    (clients / 50).max(8)
}

/// The name of a full handshake in a result.
const FULL: &str = "full";

/// The window may be off by this share; more means that the engine did not get the processor.
const WINDOW_SHARE: f64 = 0.1;

/// The minimum share of their windows that the two of a duet have in common.
const LEAST_TOGETHER: f64 = 0.95;

/// The minimum share of its planned requests that an open loop must have sent, and its maximum lateness, for a cost per
/// request.
const LEAST_FOR_COST: f64 = 0.9;
const LATEST_FOR_COST_US: f64 = 5000.0;

/// The first rule that a run breaks.
pub(super) fn broken_rule(record: &Run<Seen>, conditions: &Conditions) -> Option<String> {
    if let Some(failure) = &record.seen.observation.failure {
        return Some(failure.clone());
    }
    if let Some(fault) = record.seen.observation.net.as_ref().and_then(|net| net.fault.as_ref()) {
        return Some(format!("network: {fault}"));
    }
    let Some(load) = &record.seen.observation.load else { return Some("no result".into()) };
    errors(load, conditions)
        .or_else(|| engine(load))
        .or_else(|| window(load, record.seen.window_ms))
        .or_else(|| together(record))
        .or_else(|| connections(record, load, conditions))
        .or_else(|| http_version(load, record.run.cell.mode().client()))
        .or_else(|| upstream_version(record))
        .or_else(|| negotiation(load, record.run.cell.mode().client(), &conditions.tls))
        .or_else(|| far_server(record, conditions))
        .or_else(|| tickets(record, load, &conditions.tls))
        .or_else(|| pacer(record, load))
        .or_else(|| accounting(record))
}

/// The budget is that of the conditions, whatever the engine was given.
fn errors(load: &LoadResult, conditions: &Conditions) -> Option<String> {
    if exceeds_budget(load, conditions.error_budget_percent()) {
        let seen = || load.errors.iter().filter(|(_, count)| **count > 0);
        let listed: Vec<String> = seen().map(|(class, count)| format!("{count} {class}")).collect();
        let is_wrong_answer =
            |class: &str| ErrorClass::of_name(class).is_some_and(ErrorClass::is_wrong_answer);
        let wrong = seen().any(|(class, _)| is_wrong_answer(class));
        let allowed = match conditions.error_budget_percent() {
            0.0 => String::new(),
            percent => format!("; expected at most {percent} % without a response"),
        };
        let example = load.error_examples.values().next();
        let example = example.map_or_else(String::new, |example| format!(" ({example})"));
        let kind = if wrong { "wrong responses" } else { "errors" };
        return Some(format!("{kind}: {}{allowed}{example}", listed.join(", ")));
    }
    (load.requests == 0).then(|| "no response was received".into())
}

/// Any verdict but `valid` is invalid, except for a late pacer: its effects are judged below.
fn engine(load: &LoadResult) -> Option<String> {
    let validity = load.validity.as_str();
    if validity == "valid" {
        return None;
    }
    let Some(reasons) = validity.strip_prefix("invalid: ") else {
        return Some(format!("load engine: `{validity}`"));
    };
    let is_other = |reason: &str| load.pacer.is_none() || !reason.starts_with("pacer (");
    reasons.split("; ").any(is_other).then(|| format!("load engine: {reasons}"))
}

fn window(load: &LoadResult, asked_ms: u64) -> Option<String> {
    let asked = asked_ms as f64 / 1000.0;
    let off = (load.window_s - asked).abs() > WINDOW_SHARE * asked + 0.005;
    off.then(|| format!("window: measured {:.0} ms, expected {asked_ms} ms", load.window_s * 1000.0))
}

/// A disturbance hits both of a duet only while both are measured.
fn together(record: &Run<Seen>) -> Option<String> {
    record.run.beside.as_ref()?;
    let Some(share) = record.seen.observation.common_share else {
        return Some("duet: the time of its window is unknown".into());
    };
    (share < LEAST_TOGETHER).then(|| {
        format!(
            "duet: measured together in {:.0} % of the window, expected {:.0} % or more",
            share * 100.0,
            LEAST_TOGETHER * 100.0
        )
    })
}

/// Keep-alive connections are all open before the window, with as many to the origin; new ones each served no more
/// requests than they should.
fn connections(record: &Run<Seen>, load: &LoadResult, conditions: &Conditions) -> Option<String> {
    let opened = load.connections_opened;
    if let Some(most) = most_on_a_connection(load) {
        let answered = load.answered_in_all;
        return (opened.saturating_mul(most) < answered).then(|| {
            format!("connections: {opened} for {answered} responses, expected at most {most} on each")
        });
    }
    let wanted = u64::from(conditions.client_connections());
    if opened < wanted {
        return Some(format!("connections: {opened} opened, expected {wanted}"));
    }
    if conditions.upstream_connections == UpstreamConnections::Any {
        return None;
    }
    // With a smaller pool, closed connections are opened again.
    let pool = conditions.settings.get("pool").and_then(|pool| Level::of(pool).number());
    if pool.is_some_and(|pool| pool < f64::from(record.run.cell.connections())) {
        return None;
    }
    let upstream = record.seen.observation.upstream_connections?;
    // A stream needs a connection of its own where it becomes a request of HTTP/1.1.
    let users = opened.saturating_mul(u64::from(load.asked.streams.max(1)));
    let of =
        if users == opened { "the clients".to_owned() } else { format!("the clients, with {users} streams") };
    (upstream > users + upstream_handful(users))
        .then(|| format!("upstream connections: {upstream} to the origin for {opened} of {of}"))
}

/// The maximum of requests (or, without any, handshakes) on one connection, by the engine's flags; `None` for
/// keep-alive connections.
fn most_on_a_connection(load: &LoadResult) -> Option<u64> {
    match load.asked.requests_per_connection.as_str() {
        HANDSHAKE_ONLY => Some(1),
        range => range.rsplit('-').next()?.parse().ok(),
    }
}

/// The load engine spoke the version of the client's side, by its own account and by what each handshake agreed on.
fn http_version(load: &LoadResult, client: Side) -> Option<String> {
    let expected = if client.is_http2() { HttpVersion::Http2 } else { HttpVersion::Http1 };
    let spoken = if load.http2.is_some() { HttpVersion::Http2 } else { HttpVersion::Http1 };
    if spoken != expected {
        return Some(format!(
            "version: the load engine spoke HTTP/{}, expected HTTP/{}",
            spoken.word(),
            expected.word()
        ));
    }
    let is_http2 = |facts: &Negotiated| facts.alpn.as_deref() == Some(HttpVersion::Http2.alpn());
    let other = load.handshakes.negotiated.iter().find(|facts| is_http2(facts) != client.is_http2())?;
    let (count, alpn) = (other.count, other.alpn.as_deref().unwrap_or("no protocol"));
    Some(format!("version: {count} handshakes agreed on {alpn}, expected {}", expected.alpn()))
}

/// Each request reached the origin by HTTP/2, if the mode has it there. The origin refuses it in other modes.
fn upstream_version(record: &Run<Seen>) -> Option<String> {
    record.run.cell.mode().upstream().filter(|side| side.is_http2())?;
    match record.seen.observation.upstream_http1 {
        Some(0) => None,
        Some(count) => {
            Some(format!("version: {count} requests reached the origin by HTTP/1.1, expected HTTP/2"))
        }
        None => Some("version: the origin did not count the requests by HTTP/1.1".into()),
    }
}

/// Whether the right share was resumed is judged by the engine.
fn negotiation(load: &LoadResult, client: Side, tls: &Tls) -> Option<String> {
    let Handshakes { full, resumed, negotiated, .. } = &load.handshakes;
    let resumed: u64 = resumed.values().sum();
    if !client.is_tls() {
        return (full + resumed > 0).then(|| "negotiation: TLS in a cleartext mode".into());
    }
    let [version, suite, group] = [tls.version.to_string(), tls.suite.to_string(), tls.group.to_string()];
    let signature = tls.certificate.signature();
    let is = |facts: &Negotiated| {
        let is_full = facts.kind == FULL;
        // A resumption authenticates the server by the session, not by a signature (RFC 8446, section 2.2). In TLS 1.2
        // it has no key exchange either (RFC 5246, section 7.3).
        let has_group = is_full || tls.version == TlsVersion::V1_3;
        (facts.version == version && facts.suite == suite)
            && facts.group.as_ref() == has_group.then_some(&group)
            && facts.signature.as_deref() == is_full.then_some(signature)
    };
    if let Some(other) = negotiated.iter().find(|facts| !is(facts) && facts.count > 0) {
        let (count, asked) = (other.count, format!("{version} {suite} {group} {signature}"));
        return Some(format!("negotiation: {count} handshakes were `{other}`, expected `{asked}`"));
    }
    if negotiated.is_empty() || full + resumed == 0 {
        return Some("negotiation: no handshake was counted in a TLS mode".into());
    }
    if most_on_a_connection(load).is_none() && load.handshakes.in_window > 0 {
        return Some(format!("warm-up: {} handshakes fell into the window", load.handshakes.in_window));
    }
    (resumed > 0 && load.asked.resume_percent == 0.0)
        .then(|| format!("negotiation: {resumed} handshakes were resumed, expected none"))
}

/// The test server on OpenSSL takes the target's version and suite, but its full handshakes have the experiment's chain,
/// and the experiment's group, or none by RSA key transport. Older results have no chain, which is known by its ` by `.
fn far_server(record: &Run<Seen>, conditions: &Conditions) -> Option<String> {
    let handshakes = record.seen.observation.upstream_handshakes.as_ref();
    let handshakes = handshakes.filter(|_| conditions.origin == OriginKind::Openssl)?;
    let (group, chain) = (conditions.tls.group.openssl(), conditions.tls.certificate.chain());
    let is_other = |name: &str| {
        let Some(rest) = name.strip_suffix(" full").filter(|rest| rest.contains(" by ")) else {
            return false;
        };
        // After version and suite.
        let with = rest.splitn(3, ' ').nth(2).unwrap_or_default();
        with != chain && with != format!("{group} {chain}")
    };
    let (name, count) = handshakes.negotiated.iter().find(|(name, _)| is_other(name))?;
    Some(format!("far server: {count} handshakes were `{name}`, expected {group} and {chain}"))
}

/// If the number is varied, full handshakes bring it. (A target that sends its own number has it in its title, or has no
/// cells with others; after a resumption OpenSSL sends one at most, whatever its setting.)
fn tickets(record: &Run<Seen>, load: &LoadResult, tls: &Tls) -> Option<String> {
    record.run.cell.levels.get("tls.tickets")?;
    let Tickets { least, most } = *load.handshakes.tickets.get(FULL)?;
    let asked = u32::from(tls.tickets);
    (least != asked || most != asked)
        .then(|| format!("tickets: {least} to {most} after a full handshake, expected {asked}"))
}

/// With so much late or unsent it is another load, for every metric.
fn pacer(record: &Run<Seen>, load: &LoadResult) -> Option<String> {
    record.seen.rate?;
    match &load.pacer {
        None => Some("pacer: an open loop without its report".into()),
        Some(pacer) => off_schedule(pacer, LEAST_FOR_COST, LATEST_FOR_COST_US),
    }
}

/// The metrics that the pacer spoilt in a valid run: times count from instants that it did not keep, and a burst of
/// requests saves context switches. The cost per request holds: its ratio between targets moved by less than the
/// noise floor (docs/decisions/0015-duets-and-noise.md).
pub(super) fn spoilt(metric: Metric, record: &Run<Seen>) -> Option<String> {
    let is_kept = metric.is_of_duets() || metric == Metric::Utilisation;
    let load = record.seen.observation.load.as_ref().filter(|_| record.seen.rate.is_some() && !is_kept)?;
    off_schedule(load.pacer.as_ref()?, Pacer::LEAST_ACHIEVED, Pacer::lag_bound_us(load.response.p50_us))
}

fn off_schedule(pacer: &Pacer, least: f64, latest_us: f64) -> Option<String> {
    if pacer.achieved_ratio < least {
        return Some(format!(
            "pacer: {:.1} % of the planned requests were sent, expected {:.0} % or more",
            pacer.achieved_ratio * 100.0,
            least * 100.0
        ));
    }
    (pacer.lag_p99_us > latest_us).then(|| {
        format!(
            "pacer: late by {:.0} us at the 99th percentile, expected {latest_us:.0} or less",
            pacer.lag_p99_us
        )
    })
}

fn accounting(record: &Run<Seen>) -> Option<String> {
    let parts = parts(record)?;
    let measured = |server: Option<&weir_load::result::ServerCost>| {
        server.is_some_and(|server| server.cost.cpu_us > 0.0)
    };
    if record.run.cell.mode().upstream().is_some() && !measured(parts.gateway) {
        return Some("no CPU time of the target was measured".into());
    }
    // With handshakes only the gateway terminates them, and the origin may be idle.
    let is_idle = parts.gateway.is_some() && parts.load.asked.requests_per_connection == HANDSHAKE_ONLY;
    let found = if is_idle { parts.origin.is_some() } else { measured(parts.origin) };
    (!found).then(|| "no CPU time of the origin was measured".into())
}

#[cfg(test)]
mod tests;
