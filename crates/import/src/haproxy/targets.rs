//! The backends of a section in `mode tcp`, by the server names of its connections.

use super::Config;
use super::acl::{Atom, Literal, condition};
use super::region::Entry;
use super::tcp::LeftOut;
use crate::note::Notes;
use weir_syntax::haproxy::{Line, Section};

/// Server names (`*` for all) with their backends, in the order of the rules.
pub(super) type Targets<'a> = Vec<(Vec<String>, &'a Section)>;

/// The connections to which a rule applies.
#[derive(Debug, PartialEq, Eq)]
enum About {
    None,
    All,
    Names(Vec<String>),
    /// Connections with server names that no pattern expresses.
    OtherNames,
    Unknown,
}

/// Returns the targets of a listener. Fails if a rule depends on more than the listener's port and, with `by_name`, the
/// server name, or if there is no backend.
pub(super) fn of<'a>(
    section: &'a Section,
    entry: &Entry,
    by_name: bool,
    config: &Config<'a>,
    notes: &mut Notes,
) -> Result<Targets<'a>, LeftOut> {
    let mut targets = Targets::new();
    for line in section.lines.iter().filter(|line| line.word(0) == "use_backend") {
        let target = backend(line, config)?;
        match about(line, section, entry, config, notes) {
            About::None => {}
            About::All => {
                targets.push((vec!["*".to_owned()], target));
                return Ok(targets);
            }
            About::Names(names) if by_name => targets.push((names, target)),
            About::OtherNames if by_name && serves(target) => {
                let message =
                    "names are plain, or begin with `*.`; name each in the listener's `passthrough`";
                notes.loss(&line.at, line.text(), message);
            }
            About::Names(_) | About::OtherNames | About::Unknown => {
                let why =
                    "Weir chooses a service by the address and the server name of TLS that stays encrypted";
                return Err(LeftOut::line(line, why));
            }
        }
    }
    let own = Some(section).filter(|section| serves(section));
    let rest = match config.find(section, &["default_backend"]) {
        Some(line) => Some(backend(line, config)?),
        None => own,
    };
    targets.extend(rest.map(|target| (vec!["*".to_owned()], target)));
    match targets.is_empty() {
        true => Err(LeftOut::section(section, "it has no backend")),
        false => Ok(targets),
    }
}

/// Returns the backend that a line names. Fails if the backend does not exist, or has rules for requests.
fn backend<'a>(line: &Line, config: &Config<'a>) -> Result<&'a Section, LeftOut> {
    let target = config
        .section("backend", line.word(1))
        .ok_or_else(|| LeftOut::line(line, "there is no such backend"))?;
    match config.find(target, &["mode"]) {
        Some(mode) if mode.word(1) == "http" => {
            Err(LeftOut::line(line, "its backend has `mode http`, whose rules are about requests"))
        }
        _ => Ok(target),
    }
}

fn serves(section: &Section) -> bool {
    section.lines.iter().any(|line| matches!(line.word(0), "server" | "server-template"))
}

fn about(line: &Line, section: &Section, entry: &Entry, config: &Config<'_>, notes: &mut Notes) -> About {
    let words = line.words.get(2..).unwrap_or_default();
    let Some(lists) = condition(words, section, config, notes, line) else { return About::All };
    let is_inexact =
        |literal: &&Literal| is_of_names(literal) && literal.means.any.is_some() && !literal.means.is_exact();
    let inexact = lists.iter().flatten().find(is_inexact);
    if let Some(literal) = inexact {
        let message =
            format!("`{}` is about whole names; name others in the listener's `passthrough`", literal.text);
        notes.loss(&line.at, line.text(), message);
    }
    let mut names = Vec::new();
    let mut is_lost = false;
    for list in lists {
        match of_list(&list, entry) {
            About::None => {}
            About::Names(found) => names.extend(found),
            About::OtherNames => is_lost = true,
            other => return other,
        }
    }
    match (is_lost, names.is_empty()) {
        (true, _) => About::OtherNames,
        (false, true) => About::None,
        (false, false) => About::Names(names),
    }
}

/// The connections to which a conjunction applies.
fn of_list(list: &[Literal], entry: &Entry) -> About {
    let mut all = About::All;
    for literal in list {
        let next = match constant(literal, entry) {
            Some(true) => continue,
            Some(false) => return About::None,
            None => names(literal),
        };
        all = match all {
            About::All => next,
            _ => About::Unknown,
        };
    }
    all
}

/// Whether a condition tests the server name in a ClientHello.
fn is_of_names(literal: &Literal) -> bool {
    ["req.ssl_sni", "req_ssl_sni"].iter().any(|fetch| literal.asks.contains(fetch))
}

fn names(literal: &Literal) -> About {
    let hosts = literal.means.any.iter().flatten().map(|atom| match atom {
        Atom::Host(host) => Some(host.clone()),
        _ => None,
    });
    match (is_of_names(literal), literal.is_negated, &literal.means.any) {
        (false, ..) | (_, true, _) => About::Unknown,
        (true, false, None) => About::OtherNames,
        (true, false, Some(_)) => hosts.collect::<Option<_>>().map_or(About::Unknown, About::Names),
    }
}

/// The value of a condition that depends only on the listener; `None`: it depends on more.
pub(super) fn constant(literal: &Literal, entry: &Entry) -> Option<bool> {
    let holds = |atom: &Atom| match atom {
        Atom::Always => Some(true),
        Atom::Never => Some(false),
        Atom::Tls => Some(entry.is_tls),
        Atom::Port(port) => Some(entry.ports.contains(port)),
        _ => None,
    };
    let atoms: Vec<_> = literal.means.any.as_ref()?.iter().map(holds).collect::<Option<_>>()?;
    Some(atoms.contains(&true) != literal.is_negated)
}
