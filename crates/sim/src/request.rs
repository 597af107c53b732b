//! Checks of a request that arrives at an origin, in HTTP/1.1 or HTTP/2.

use crate::Invariant;
use crate::ledger::Ledger;
use crate::message::{Answer, name};
use crate::setting::VERSION;
use crate::switch::Switch;
use std::net::IpAddr;
use weir_http::Method;

/// The parts of a received request head that the origins check, in either HTTP version.
pub(crate) struct Received<'a> {
    pub(crate) method: Method,
    pub(crate) target: &'a str,
    /// The protocol that the request asks to switch to; empty if none.
    pub(crate) protocol: &'a str,
    /// The value of a field; empty if absent.
    pub(crate) field: &'a dyn Fn(&str) -> String,
}

/// The parts of a head that the response and further checks need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) id: usize,
    /// The length of the body.
    pub(crate) length: usize,
    pub(crate) answer: Answer,
    pub(crate) switch: Option<Switch>,
    /// The configuration that forwarded the request.
    pub(crate) version: u32,
}

/// Checks a head that the origin on this link received; `None` if no client sent the request. `is_mirror` and
/// `is_passed` are as in [`Site`](crate::origin::Site).
pub(crate) fn begin(
    link: usize,
    is_mirror: bool,
    is_passed: bool,
    received: &Received<'_>,
    ledger: &mut Ledger,
) -> Option<Begun> {
    let Received { method, target, protocol, field } = *received;
    let id = field("x-id").parse().unwrap_or(usize::MAX);
    let (body, answer) = (field("x-body").parse().ok(), Answer::parse(&field("x-answer")));
    let (Some(entry), Some(length), Some(answer)) = (ledger.entries.get_mut(id), body, answer) else {
        ledger.violation(Invariant::Owner, format!("origin {link} got a request that nobody sent: {target}"));
        return None;
    };
    let (ask, below, oldest, source) = (entry.ask.method, entry.ask.below, entry.oldest, entry.source);
    let (was_passed, switch) = (entry.is_passed, entry.ask.switch);
    entry.copies += u32::from(is_mirror);
    let copies = entry.copies;
    ledger.note(|| format!("origin {link} gets #{id} {}", name(method)));
    if method != ask || *target != format!("{below}/{id}") {
        ledger.violation(Invariant::Bytes, format!("#{id} arrived as {} {target}", name(method)));
    }
    Switch::check(switch, id, protocol, ledger);
    if copies > 1 {
        ledger.violation(Invariant::Once, format!("#{id} was copied {copies} times"));
    }
    if was_passed != is_passed {
        ledger.violation(Invariant::Owner, format!("#{id} came to another origin than its own"));
    }
    let said = field("x-forwarded-for").parse::<IpAddr>().ok();
    let known = source.filter(|_| !was_passed);
    if known.is_some_and(|known| said != Some(known.ip())) {
        ledger.violation(Invariant::Owner, format!("#{id} is of {source:?}, and arrived as of {said:?}"));
    }
    let version = field(VERSION).parse().unwrap_or(oldest);
    if version < oldest {
        ledger.violation(
            Invariant::Configuration,
            format!("#{id} follows configuration {version}, and {oldest} was in force"),
        );
    }
    Some(Begun { id, length, answer, switch, version })
}
