//! The costs of the TLS settings of listeners and services, and cheaper choices.

use super::costs::{Cost, Costs, KINDS, Of};
use super::document::{ClientCertificates, Config, ListenerTls, ServiceTls};
use std::fmt::{self, Write as _};
use weir_tls::{Group, KeyName, Offer, Presented, ServerSettings, Suite, Version};

/// Writes the costs of all listeners and services with TLS. `presented` has the listeners' certificates; `own` returns
/// the key type of a service's certificate, by service name.
pub(super) fn write(
    out: &mut String,
    config: &Config,
    presented: &[Presented],
    own: impl Fn(&str) -> Option<KeyName>,
) -> fmt::Result {
    let costs = Costs::read();
    let mut tables = Vec::new();
    for (name, listener) in &config.listeners {
        if let Some(tls) = &listener.tls {
            tables.push((format!("listener {name}"), of_listener(&costs, tls, presented)));
        }
    }
    for (name, service) in &config.services {
        if service.servers.iter().any(|server| server.url.tls()) {
            tables.push((format!("service {name}"), of_service(&costs, &service.tls, own(name))));
        }
    }
    if tables.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nTLS and what each choice costs")?;
    writeln!(
        out,
        "  CPU time of the gateway for a connection with one request, by a full handshake and resumed, and"
    )?;
    writeln!(out, "  for a body of 64 KiB, each with its ratio to the cheapest choice. Measured on")?;
    writeln!(out, "  {}.", costs.cpu)?;
    for (name, table) in tables {
        table.write(out, &name)?;
    }
    Ok(())
}

/// The choices of one listener or service, in order, and hints.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<(&'static str, String, [Option<Cost>; 3])>,
    hints: Vec<String>,
}

impl Table {
    fn add(&mut self, label: &'static str, value: impl Into<String>, costs: [Option<Cost>; 3]) {
        self.rows.push((label, value.into(), costs));
    }

    fn write(&self, out: &mut String, name: &str) -> fmt::Result {
        writeln!(out, "\n  {name:<51} {:>14} {:>14} {:>14}", "full", "resumed", "64 KiB")?;
        let mut last = "";
        for (label, value, costs) in &self.rows {
            let shown = if *label == last { "" } else { label };
            last = label;
            let mut line = format!("    {shown:<19} {value:<29}");
            for cost in costs {
                let text = cost.map_or_else(|| "-".to_owned(), shown_cost);
                let _ = write!(line, " {text:>14}");
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        for hint in &self.hints {
            write!(out, "    hint:")?;
            let mut column = INDENT;
            for word in hint.split(' ') {
                if column + 1 + word.len() > WIDTH {
                    write!(out, "\n{:INDENT$}", "")?;
                    column = INDENT;
                }
                write!(out, " {word}")?;
                column += 1 + word.chars().count();
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// The maximum width of a hint, in columns.
const WIDTH: usize = 100;
/// The width of the text before a hint.
const INDENT: usize = "    hint:".len();

fn shown_cost(Cost { us, ratio }: Cost) -> String {
    format!("{us:.1} us {ratio:>5.2}")
}

fn of_listener(costs: &Costs, tls: &ListenerTls, presented: &[Presented]) -> Table {
    let Offer { versions, suites, groups } = offer(&tls.versions, &tls.suites, &tls.groups);
    let newest = newest("server", &versions);
    let mut table = Table::default();
    add_versions(&mut table, costs, "server", &versions);
    add_certificates(&mut table, costs, newest, presented);
    add_groups(&mut table, costs, newest, &groups);
    let is_rsa = |presented: &Presented| matches!(presented.key, KeyName::Rsa(_));
    let (has_rsa, has_ecdsa) =
        (presented.iter().any(is_rsa), presented.iter().any(|presented| !is_rsa(presented)));
    let usable = |suite: &Suite| match suite.name() {
        name if name.starts_with("ecdhe-rsa") => has_rsa,
        name if name.starts_with("ecdhe-ecdsa") => has_ecdsa,
        _ => true,
    };
    add_suites(&mut table, costs, "server", suites.into_iter().filter(usable));
    add_tickets(&mut table, costs, &versions, tls.tickets);
    add_client_certificates(&mut table, costs, newest, tls);
    add_record_size(&mut table, costs, tls.record_size);
    table
}

fn of_service(costs: &Costs, tls: &ServiceTls, own: Option<KeyName>) -> Table {
    let Offer { versions, suites, groups } = offer(&tls.versions, &tls.suites, &tls.groups);
    let newest = newest("client", &versions);
    let mut table = Table::default();
    add_versions(&mut table, costs, "client", &versions);
    add_groups(&mut table, costs, newest, &groups);
    // The server's key, unknown here, decides which TLS 1.2 suites fit.
    add_suites(&mut table, costs, "client", suites.into_iter());
    let none = baseline(costs, newest);
    match own {
        None => table.add("certificate", "none", none),
        Some(key) => {
            let key = key.to_string();
            table.add("certificate", &*key, beside(costs, newest, "client certificate", &key, none));
            let cheaper = cheaper_key(costs, newest, "client certificate", &key);
            table.hints.extend(cheaper.map(|cheaper| format!("certificate: {cheaper}")));
        }
    }
    add_record_size(&mut table, costs, tls.record_size);
    table
}

fn offer(versions: &[Version], suites: &[Suite], groups: &[Group]) -> Offer {
    Offer { versions: versions.to_vec(), suites: suites.to_vec(), groups: groups.to_vec() }.complete()
}

/// The newest of these versions, which most peers negotiate.
fn newest(side: &'static str, versions: &[Version]) -> Of {
    let version = if versions.contains(&Version::Tls13) { Version::Tls13 } else { Version::Tls12 };
    Of { side, version: version.name() }
}

/// The costs of the first measured suite, without any choice that adds work.
fn baseline(costs: &Costs, of: Of) -> [Option<Cost>; 3] {
    let suite = costs.values(of, "full", "suite").next().unwrap_or_default();
    KINDS
        .map(|kind| costs.of(of, kind, "suite", suite))
        .map(|cost| cost.map(|Cost { us, .. }| Cost { us, ratio: 1.0 }))
}

/// The cost of a choice that adds work, relative to the cost `without` it.
fn beside(costs: &Costs, of: Of, aspect: &str, value: &str, without: [Option<Cost>; 3]) -> [Option<Cost>; 3] {
    let [full, resumed, _] = without;
    let [with_full, with_resumed] = ["full", "resumed"].map(|kind| costs.of(of, kind, aspect, value));
    let over = |with: Option<Cost>, without: Option<Cost>| {
        with.zip(without).map(|(with, without)| Cost { us: with.us, ratio: with.us / without.us })
    };
    [over(with_full, full), over(with_resumed, resumed), None]
}

fn add_versions(table: &mut Table, costs: &Costs, side: &'static str, versions: &[Version]) {
    let all = Version::ALL.map(|version| baseline(costs, Of { side, version: version.name() }));
    for (version, row) in Version::ALL.into_iter().zip(all) {
        if versions.contains(&version) {
            let mut row = row;
            for (at, cost) in row.iter_mut().enumerate() {
                let least = all.iter().filter_map(|other| other[at]).map(|other| other.us);
                let least = least.fold(f64::INFINITY, f64::min);
                *cost = cost.map(|Cost { us, .. }| Cost { us, ratio: us / least });
            }
            table.add("versions", version.name(), row);
        }
    }
}

fn add_certificates(table: &mut Table, costs: &Costs, of: Of, presented: &[Presented]) {
    let mut seen = Vec::new();
    for certificate in presented {
        let key = certificate.key.to_string();
        if seen.contains(&key) {
            continue;
        }
        table.add("certificates", &*key, [costs.of(of, "full", "certificate", &key), None, None]);
        seen.push(key);
    }
    for certificate in presented {
        let key = certificate.key.to_string();
        let Some(cheaper) = cheaper_key(costs, of, "certificate", &key) else { continue };
        let is_beside = |other: &Presented| {
            cheaper_key(costs, of, "certificate", &other.key.to_string()).is_none()
                && certificate.names.iter().all(|name| other.names.contains(name))
        };
        if !presented.iter().any(is_beside) {
            let origin = &certificate.origin;
            table.hints.push(format!(
                "certificates: {cheaper}: clients get one beside {origin} if they can verify it"
            ));
        }
    }
}

/// The usual cheap key, which every client can verify.
const CHEAP_KEY: &str = "ECDSA P-256";
/// The least ratio of costs for a hint: cheaper choices that save less are not worth a line.
const WORTH_A_HINT: f64 = 1.1;

/// A hint that compares the usual cheap key with `key`, if it saves enough.
fn cheaper_key(costs: &Costs, of: Of, aspect: &str, key: &str) -> Option<String> {
    let us = |key: &str| costs.of(of, "full", aspect, key).map(|cost| cost.us);
    let (now, then) = us(key).zip(us(CHEAP_KEY))?;
    (now > then * WORTH_A_HINT).then(|| {
        format!("with {CHEAP_KEY} a full handshake takes {then:.0} us instead of {now:.0} with {key}")
    })
}

fn add_groups(table: &mut Table, costs: &Costs, of: Of, groups: &[Group]) {
    let fits = |group: &&Group| {
        Version::ALL.iter().any(|version| version.name() == of.version && group.fits(*version))
    };
    let cost = |kind: &str, group: &Group| costs.of(of, kind, "group", group.name());
    for group in groups.iter().filter(fits) {
        table.add("groups", group.name(), [cost("full", group), cost("resumed", group), None]);
    }
    let first = groups.iter().find(fits).and_then(|group| Some((group, cost("full", group)?)));
    // The hybrid group is worth its cost: it protects traffic that is recorded today from future quantum computers.
    let is_worth_a_hint =
        |(group, cost): &(&Group, Cost)| **group != Group::X25519Mlkem768 && cost.ratio > WORTH_A_HINT;
    let Some((first, now)) = first.filter(is_worth_a_hint) else { return };
    let cheapest = costs
        .values(of, "full", "group")
        .find(|group| costs.of(of, "full", "group", group).is_some_and(|cost| cost.ratio == 1.0));
    if let Some(cheapest) = cheapest {
        let then = now.us / now.ratio;
        table.hints.push(format!(
            "groups: `{cheapest}` first takes {then:.0} us instead of {:.0} with `{}`",
            now.us,
            first.name()
        ));
    }
}

fn add_suites(table: &mut Table, costs: &Costs, side: &'static str, suites: impl Iterator<Item = Suite>) {
    let mut bodies: Vec<(Version, Suite, Cost)> = Vec::new();
    for suite in suites {
        let of = Of { side, version: suite.version().name() };
        // Records and resumptions cost the same with either kind of key; only the signature differs.
        let measured = suite.name().replace("ecdhe-rsa", "ecdhe-ecdsa");
        let is_same = measured == suite.name();
        let mut row = KINDS.map(|kind| costs.of(of, kind, "suite", &measured));
        if !is_same {
            row[0] = None;
        }
        table.add("suites", suite.name(), row);
        bodies.extend(row[2].map(|cost| (suite.version(), suite, cost)));
    }
    for version in Version::ALL {
        let of_version = bodies.iter().filter(|(of, ..)| *of == version);
        let least = of_version.min_by(|(.., a), (.., b)| a.us.total_cmp(&b.us));
        if let Some((_, suite, now)) = least.filter(|(.., cost)| cost.ratio > WORTH_A_HINT) {
            table.hints.push(format!(
                "suites: one with AES-128 takes {:.0} us for a body of 64 KiB in TLS {version}, `{}` {:.0}",
                now.us / now.ratio,
                suite.name(),
                now.us
            ));
        }
    }
}

fn add_tickets(table: &mut Table, costs: &Costs, versions: &[Version], tickets: Option<u32>) {
    let tickets = tickets.unwrap_or(ServerSettings::TICKETS);
    let has_13 = versions.contains(&Version::Tls13);
    let of = newest("server", versions);
    // TLS 1.2 has at most one ticket.
    let measured = if has_13 { tickets } else { tickets.min(1) };
    let cost = |kind: &str, tickets: u32| costs.of(of, kind, "tickets", &tickets.to_string());
    table.add("tickets", tickets.to_string(), [cost("full", measured), cost("resumed", measured), None]);
    let us = |kind: &str, tickets: u32| cost(kind, tickets).map(|cost| cost.us);
    if tickets == 0 && has_13 {
        if let Some((full, resumed)) = us("full", 0).zip(us("resumed", 1)) {
            let who = if versions.contains(&Version::Tls12) { "TLS 1.3 clients" } else { "clients" };
            table.hints.push(format!(
                "tickets: without any, {who} cannot resume: {full:.0} us each time instead of {resumed:.0} with one"
            ));
        }
    } else if tickets > 2
        && has_13
        && let Some((now, then)) = us("full", tickets).zip(us("full", 1))
    {
        table.hints.push(format!(
            "tickets: 1 takes {then:.0} us instead of {now:.0}, and each connection brings its successor's ticket"
        ));
    }
}

fn add_client_certificates(table: &mut Table, costs: &Costs, of: Of, tls: &ListenerTls) {
    let none = baseline(costs, of);
    let [full, resumed, _] = none;
    if tls.client_ca.is_none() {
        return table.add("client certificates", "none", [full, resumed, None]);
    }
    let how = match tls.client_certificates.unwrap_or_default() {
        ClientCertificates::Required => "required",
        ClientCertificates::Optional => "optional",
    };
    for key in costs.values(of, "full", "client certificate") {
        let value = format!("{how}: {key}");
        table.add("client certificates", value, beside(costs, of, "client certificate", key, none));
    }
}

/// Adds the row for the record size. Sealing costs the same on both sides.
fn add_record_size(table: &mut Table, costs: &Costs, size: Option<u64>) {
    let of = Of { side: "server", version: Version::Tls13.name() };
    let size = size.unwrap_or(LARGEST_RECORD);
    let measured = costs.values(of, "body", "record size").filter_map(|value| value.parse::<u64>().ok());
    let Some(below) = measured.filter(|measured| *measured <= size).max() else { return };
    let cost = costs.of(of, "body", "record size", &below.to_string());
    let value = match below == size {
        true => format!("{size} bytes"),
        false => format!("{size} bytes: as {below}, or less"),
    };
    table.add("record size", value, [None, None, cost]);
    if let Some(cost) = cost.filter(|cost| cost.ratio > WORTH_A_HINT) {
        let then = cost.us / cost.ratio;
        table.hints.push(format!(
            "record_size: 16 KiB takes {then:.0} us for a body of 64 KiB instead of {:.0}; smaller ones arrive sooner",
            cost.us
        ));
    }
}

const LARGEST_RECORD: u64 = 16_384;
