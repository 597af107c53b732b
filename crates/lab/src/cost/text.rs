//! The cost report as text: five lines of at most 100 columns, and notes.

use super::answer::Cost;
use super::case::Case;
use super::figures::Figures;
use super::findings::{Findings, Negotiated, Resumption, Tenth};
use super::spread::Spread;
use std::fmt::Write as _;
use weir_load::figures::{count, percent, plural, time};
use weir_report::text::flow;

impl Cost {
    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = format!("Cost of TLS for {}:\n", self.url);
        for (at, line) in self.lines.iter().enumerate() {
            let _ = writeln!(text, "{}. {line}", at + 1);
        }
        for note in &self.notes {
            flow(&mut text, note, 0, 2);
        }
        text
    }
}

/// The five lines, without their numbers.
pub(super) fn lines(found: &Findings) -> [String; 5] {
    [negotiated(found), full(found), resumed(found), kept(found), advice(found)]
}

fn negotiated(found: &Findings) -> String {
    let Negotiated { version, suite, group, key, tickets, .. } = &found.negotiated;
    if version.is_empty() {
        return "Negotiated parameters unknown: no handshake completed.".into();
    }
    let mut facts = format!("TLS {version}");
    for fact in [group.as_ref(), Some(suite)].into_iter().flatten() {
        let _ = write!(facts, ", {fact}");
    }
    if let Some(key) = key {
        let _ = write!(facts, ", {key} key");
    }
    let resumes = match &found.resumption {
        Resumption::Always { kind } if kind == "resume-1.2-id" => "resumes by session ID".into(),
        Resumption::Always { .. } => {
            tickets.map_or("resumes by ticket".into(), |n| format!("resumes ({})", plural(n, "ticket")))
        }
        Resumption::Sometimes { tries, resumed } => {
            format!("{} resumed", percent(*resumed as f64 / *tries as f64))
        }
        Resumption::Never { .. } => "never resumes".into(),
        Resumption::Unknown => "resumption unknown".into(),
    };
    format!("{facts}; {resumes}.")
}

fn full(found: &Findings) -> String {
    let Some(new) = found.cases.get(&Case::NewFull) else { return not_measured("full handshakes") };
    let handshake = format!("A full handshake takes {}", median(new.handshake_us));
    let Some(beside) = found.cases.get(&Case::NewCleartext) else {
        return format!("{handshake}; a new connection with a request {}.", cost(new));
    };
    format!(
        "{handshake}{}; a new connection {}, in cleartext {}.",
        cpu(found.full_cpu_us),
        median(new.time_us),
        median(beside.time_us),
    )
}

/// From outside the number of workers is unknown.
const TICKET_KEYS: &str = "With several workers, use one ticket key.";

fn resumed(found: &Findings) -> String {
    match found.resumption {
        Resumption::Never { given: false } => {
            "Never resumed: the server issues no tickets. Enable session tickets.".into()
        }
        Resumption::Never { given: true } => {
            format!("Never resumed: the server rejects its tickets. {TICKET_KEYS}")
        }
        Resumption::Sometimes { tries, resumed } => {
            format!("Only {} of {} returning clients resumed. {TICKET_KEYS}", count(resumed), count(tries),)
        }
        Resumption::Always { .. } | Resumption::Unknown => match found.cases.get(&Case::NewResumed) {
            None => not_measured("resumed handshakes"),
            Some(new) => saving(found, new),
        },
    }
}

fn saving(found: &Findings, new: &Figures) -> String {
    let of_whole = match (found.resumed_cpu_us, new.cpu_us) {
        (None, Some(whole)) => format!("; its connection {} CPU", time(whole.median)),
        (added, _) => cpu(added),
    };
    let of = if new.cpu_us.is_some() { "CPU" } else { "time" };
    let saved = found.saved.map_or(String::new(), |saved| {
        let doubt = if saved.min > 0.0 { "" } else { ", if any" };
        format!(": {} less {of}{doubt}", shares(saved))
    });
    format!("A resumed one takes {}{of_whole}{saved}.", median(new.handshake_us))
}

fn kept(found: &Findings) -> String {
    let Some(tls) = found.cases.get(&Case::KeptTls) else { return not_measured("keep-alive requests") };
    let Some(cleartext) = found.cases.get(&Case::KeptCleartext) else {
        return format!("Keep-alive request: {} over TLS.", cost(tls));
    };
    let ratio = match (found.kept_cpu_ratio, found.kept_time_ratio) {
        (Some(ratio), _) => format!(": CPU x {}", ratio_of(ratio)),
        (None, Some(ratio)) => format!(": time x {}", ratio_of(ratio)),
        (None, None) => String::new(),
    };
    let beside = match cleartext.cpu_us.filter(|_| tls.cpu_us.is_some()) {
        Some(cpu) => format!("{}, {}", median(cleartext.time_us), time(cpu.median)),
        None => median(cleartext.time_us),
    };
    format!("Keep-alive request: {}; cleartext {beside}{ratio}.", cost(tls))
}

fn advice(found: &Findings) -> String {
    let Some(Tenth { of_cpu, full, resumed }) = found.tenth else {
        return "Break-even unknown: it needs valid loads of new and of keep-alive connections.".into();
    };
    let of = if of_cpu { "CPU" } else { "time" };
    if full == 1 {
        return format!(
            "The request dominates: even on a new connection the handshake is under 10 % of the {of}."
        );
    }
    let resumed = resumed.map_or(String::new(), |resumed| format!(" (resumed {})", some(resumed)));
    format!(
        "Reuse connections: from {} requests on{resumed} the handshake is under 10 % of the {of}.",
        some(full)
    )
}

/// The caveats, each with its remedy; last, the kind of evidence.
pub(super) fn notes(found: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |holds: bool, text: &str| {
        if holds {
            notes.push(text.to_owned());
        }
    };
    if let Some(url) = &found.found_cleartext {
        note(
            true,
            &format!("Compared with {url}, which responds in cleartext; --plain URL selects another."),
        );
    }
    if let Some(why) = &found.no_cleartext {
        note(true, &format!("Not compared with cleartext: {why}; pass --plain http://HOST:PORT."));
    }
    note(
        !found.accounted,
        "CPU is missing: run this on the server's machine with --pid PID of the server (pidof NAME).",
    );
    note(
        !found.not_served_by_pid.is_empty(),
        &format!(
            "No CPU for {}: a process other than that of --pid serves it; pass --pid for each.",
            names(&found.not_served_by_pid),
        ),
    );
    if let Some((tls, cleartext)) = found.different_answers {
        note(
            true,
            &format!(
                "The responses compared differ: {} bytes over TLS, {} in cleartext.",
                count(tls),
                count(cleartext),
            ),
        );
    }
    note(
        found.kept_cpu_ratio.is_some_and(|ratio| ratio.median < 1.0),
        "CPU below that of cleartext is an artefact of the load; compare at one rate (weir load --rate).",
    );
    note(
        found.kept_cpu_ratio.or(found.kept_time_ratio).is_some_and(|ratio| ratio.max > FAR * ratio.min),
        "The rounds vary widely; use a quieter machine or a longer -d.",
    );
    note(
        found.resumed_among_full,
        "A resumed session brings no new ticket, so only every second connection resumed.",
    );
    note(
        !found.engine_busy.is_empty(),
        &format!(
            "The times of {} include the load engine's own queue; -c 1 avoids it.",
            names(&found.engine_busy)
        ),
    );
    note(
        found.negotiated.hello_retry,
        "A full handshake needs a HelloRetryRequest, which costs an extra round trip.",
    );
    note(
        found.negotiated.varies,
        "Full handshakes did not all negotiate the same parameters; line 1 has the most frequent ones.",
    );
    note(
        true,
        &format!(
            "An estimate: medians of {} rounds (least..most), {}; for a verdict, run an experiment.",
            found.rounds,
            plural(found.connections.into(), "connection"),
        ),
    );
    notes
}

/// A wider range hides the cost that TLS adds to a request, which is seldom more.
const FAR: f64 = 1.5;

fn not_measured(what: &str) -> String {
    format!("Not measured: {what} (invalid load).")
}

/// Time, and CPU if known.
fn cost(figures: &Figures) -> String {
    format!("{}{}", median(figures.time_us), cpu(figures.cpu_us))
}

fn cpu(spread: Option<Spread>) -> String {
    spread.map_or(String::new(), |cpu| format!(", {} CPU", time(cpu.median)))
}

fn median(spread: Option<Spread>) -> String {
    spread.map_or("an unknown time".into(), |spread| time(spread.median))
}

fn names(cases: &[Case]) -> String {
    cases.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn ratio_of(ratio: Spread) -> String {
    let digits = |value: f64| if value < 9.995 { format!("{value:.2}") } else { format!("{value:.0}") };
    format!("{} ({}..{})", digits(ratio.median), digits(ratio.min), digits(ratio.max))
}

fn shares(share: Spread) -> String {
    let whole = |share: f64| format!("{:.0}", share * 100.0);
    format!("{} % ({}..{} %)", whole(share.median), whole(share.min), whole(share.max))
}

/// Two significant digits, rounded up: an estimate supports no more.
fn some(number: u64) -> String {
    let mut scale = 1;
    while number / scale >= 100 {
        scale *= 10;
    }
    count(number.div_ceil(scale).saturating_mul(scale))
}
