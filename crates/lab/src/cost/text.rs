//! The answer for people: five lines of at most 100 columns, and what is to be known beside them.

use super::{Case, Cost, Figures, Findings, Negotiated, Resumption, Spread, Tenth};
use std::fmt::Write as _;
use weir_load::figures::{count, time};

/// The whole answer.
pub(super) fn text(cost: &Cost) -> String {
    let mut text = format!("What TLS costs {}:\n", cost.url);
    for (at, line) in cost.lines.iter().enumerate() {
        let _ = writeln!(text, "{}. {line}", at + 1);
    }
    for note in &cost.notes {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// The five lines, without their numbers.
pub(super) fn lines(found: &Findings) -> [String; 5] {
    [negotiated(found), full(found), resumed(found), kept(found), advice(found)]
}

fn negotiated(found: &Findings) -> String {
    let Negotiated { version, suite, group, key, tickets, .. } = &found.negotiated;
    if version.is_empty() {
        return "What is negotiated could not be seen: no handshake came to its end.".into();
    }
    let mut facts = format!("TLS {version}");
    for fact in [group.as_ref(), Some(suite)].into_iter().flatten() {
        let _ = write!(facts, ", {fact}");
    }
    if let Some(key) = key {
        let _ = write!(facts, ", {key} certificate");
    }
    let tickets = tickets.map(|tickets| format!("{tickets} ticket{}", if tickets == 1 { "" } else { "s" }));
    let by = match &found.resumption {
        Resumption::Always { kind } if kind == "resume-1.2-id" => "resumes by session ids".into(),
        Resumption::Always { .. } => {
            tickets.map_or("resumes by ticket".into(), |tickets| format!("resumes ({tickets})"))
        }
        Resumption::Sometimes { tries, resumed } => {
            format!("resumes {} of clients", percent(*resumed as f64 / *tries as f64))
        }
        Resumption::Never { .. } => "resumes nothing".into(),
        Resumption::Unknown => "whether it resumes is unknown".into(),
    };
    format!("{facts}; {by}.")
}

fn full(found: &Findings) -> String {
    let Some(new) = found.cases.get(&Case::NewFull) else { return not_measured("full handshakes") };
    let handshake = new.handshake_us.map_or("an unknown time".into(), |handshake| time(handshake.median));
    match (found.cases.get(&Case::NewCleartext), new.cpu_us, found.full_cpu_us) {
        (Some(beside), _, Some(cpu)) if beside.cpu_us.is_some() => format!(
            "A full handshake takes {handshake} and {} CPU; a cleartext connection {}.",
            time(cpu.median),
            cost(beside),
        ),
        (Some(beside), ..) => format!(
            "A full handshake takes {handshake}; the same new connection in cleartext takes {}.",
            cost(beside),
        ),
        (None, ..) => format!("A new connection with one request takes {}; its full handshake {handshake}.", cost(new)),
    }
}

fn resumed(found: &Findings) -> String {
    match found.resumption {
        Resumption::Never { given: false } => {
            "Returning clients pay it again: no ticket is given. Turn session tickets on to resume.".into()
        }
        Resumption::Never { given: true } => {
            "Returning clients pay it again: no ticket is taken. Give all workers and hosts one ticket key.".into()
        }
        Resumption::Sometimes { tries, resumed } => format!(
            "Only {} of {} returning clients resumed. Give all workers and hosts one ticket key.",
            count(resumed),
            count(tries),
        ),
        Resumption::Unknown => not_measured("resumed handshakes"),
        Resumption::Always { .. } => match found.cases.get(&Case::NewResumed) {
            None => not_measured("resumed handshakes"),
            Some(new) => saving(found, new),
        },
    }
}

fn saving(found: &Findings, new: &Figures) -> String {
    let handshake = new.handshake_us.map_or("an unknown time".into(), |handshake| time(handshake.median));
    let cpu = found.resumed_cpu_us.map_or(String::new(), |cpu| format!(" and {} CPU", time(cpu.median)));
    let of = if cpu.is_empty() { "its time" } else { "its CPU" };
    let saved = match found.saved {
        None => String::new(),
        Some(saved) if saved.min > 0.0 => format!(": resumption saves {} of {of}", shares(saved)),
        Some(saved) => format!(": resumption saves {of} hardly or not, {}", shares(saved)),
    };
    format!("A resumed one takes {handshake}{cpu}{saved}.")
}

fn kept(found: &Findings) -> String {
    let Some(tls) = found.cases.get(&Case::KeptTls) else { return not_measured("kept connections") };
    let Some(cleartext) = found.cases.get(&Case::KeptCleartext) else {
        return format!("A request on a kept connection takes {} over TLS.", cost(tls));
    };
    let compared = match (tls.cpu_us, cleartext.cpu_us, found.kept_cpu_ratio) {
        (Some(cpu), Some(beside), Some(ratio)) => format!(
            "{} ({}) and {} CPU ({}), {}",
            time(tls.time_us.median),
            time(cleartext.time_us.median),
            time(cpu.median),
            time(beside.median),
            times(ratio),
        ),
        _ => format!(
            "{} ({}), {}",
            time(tls.time_us.median),
            time(cleartext.time_us.median),
            found.kept_time_ratio.map_or(String::new(), times),
        ),
    };
    format!("Kept, a request takes {compared} cleartext.")
}

fn advice(found: &Findings) -> String {
    let Some(Tenth { of_cpu, full, resumed }) = found.tenth else {
        return "What dominates cannot be said without both new and kept connections.".into();
    };
    let of = if of_cpu { "CPU" } else { "time" };
    if full == 1 {
        return format!("The request dominates: even on a new connection TLS's handshake is under 10 % of the {of}.");
    }
    let resumed = resumed.map_or(String::new(), |resumed| format!(" ({} when resumed)", some(resumed)));
    format!(
        "Keep connections: from {} requests on each{resumed} the handshake is under 10 % of the {of}.",
        some(full),
    )
}

/// What the lines leave out, and how to get it; last, what kind of evidence this is.
pub(super) fn notes(found: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(url) = &found.found_cleartext {
        notes.push(format!("Cleartext is {url}, which answers; --plain URL names another one."));
    }
    if let Some(why) = &found.no_cleartext {
        notes.push(format!("Not compared with cleartext: {why}; --plain http://HOST:PORT/PATH names it."));
    }
    if !found.accounted {
        notes.push(
            "CPU is missing: run this on the server's machine with --pid PID of the server (pidof NAME).".into(),
        );
    }
    if !found.not_served_by_pid.is_empty() {
        notes.push(format!(
            "CPU is missing for {}: the process of --pid does not serve it; name both: --pid A --pid B.",
            names(&found.not_served_by_pid),
        ));
    }
    if let Some((tls, cleartext)) = found.different_answers {
        notes.push(format!(
            "Not the same answer: {} bytes over TLS, {} in cleartext; the ratio compares two things.",
            count(tls),
            count(cleartext),
        ));
    }
    if found.negotiated.hello_retry {
        notes.push("Each full handshake takes a HelloRetryRequest first, a round trip more.".into());
    }
    if found.negotiated.varies {
        notes.push("Not all handshakes were negotiated alike; the first line has what most were.".into());
    }
    notes.push(format!(
        "An estimate: medians of {} rounds (least..most), {} connections; for a verdict: an experiment.",
        found.rounds, found.connections,
    ));
    notes
}

fn not_measured(what: &str) -> String {
    format!("Not measured: {what}; why is said below.")
}

/// Time, and CPU where it is known.
fn cost(figures: &Figures) -> String {
    let cpu = figures.cpu_us.map_or(String::new(), |cpu| format!(" and {} CPU", time(cpu.median)));
    format!("{}{cpu}", time(figures.time_us.median))
}

fn names(cases: &[Case]) -> String {
    cases.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn times(ratio: Spread) -> String {
    let digits = |value: f64| if value < 9.995 { format!("{value:.2}") } else { format!("{value:.0}") };
    format!("{} ({}..{}) times", digits(ratio.median), digits(ratio.min), digits(ratio.max))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn shares(share: Spread) -> String {
    let whole = |share: f64| format!("{:.0}", share * 100.0);
    format!("{} % ({}..{} %)", whole(share.median), whole(share.min), whole(share.max))
}

/// Two digits: more would claim what an estimate does not know.
fn some(number: u64) -> String {
    let mut scale = 1;
    while number / scale >= 100 {
        scale *= 10;
    }
    count(number.div_ceil(scale).saturating_mul(scale))
}
