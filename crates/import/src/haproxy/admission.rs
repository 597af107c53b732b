//! The `tcp-request` rules of `mode tcp` that admit or reject connections.

use super::Config;
use super::acl::{Atom, Literal, condition};
use super::region::Entry;
use super::targets::{Targets, constant};
use super::tcp::LeftOut;
use crate::access::{Admitted, Clients, Rule, common};
use crate::note::Notes;
use weir_syntax::haproxy::{Line, Section};

/// Returns the clients that a listener admits. Fails if a rule may depend on more than the client, or Weir's lists of
/// networks cannot express the rules.
pub(super) fn admitted(
    section: &Section,
    entry: &Entry,
    targets: &Targets<'_>,
    config: &Config<'_>,
    notes: &mut Notes,
) -> Result<Admitted, LeftOut> {
    let mut all = Admitted::default();
    for stage in ["connection", "session", "content"] {
        let rules = rules(section, stage, entry, config, notes)?;
        let is_about_clients = rules.iter().any(|rule| rule.clients != Clients::All);
        if stage == "connection" && is_about_clients && announces(section, config) {
            let why = "its rules about connections are about the load balancer, and Weir's about the client in the PROXY \
                       protocol header";
            return Err(LeftOut::section(section, why));
        }
        all = all.and(&Admitted::of(&rules));
    }
    for (_, target) in targets.iter().filter(|(_, target)| target.at != section.at) {
        let rules = rules(target, "content", entry, config, notes)?;
        if targets.len() > 1 && rules.iter().any(|rule| !rule.admits) {
            let why = "it rejects connections, and a listener does so whatever their server name";
            return Err(LeftOut::section(target, why));
        }
        all = all.and(&Admitted::of(&rules));
    }
    let sections = targets.iter().map(|(_, target)| *target).chain([section]);
    let looks = |line: &&Line| line.begins(&["tcp-response", "content"]);
    if let Some(line) = sections.flat_map(|section| config.all(section)).find(looks) {
        return Err(LeftOut::line(line, "it looks at what servers send"));
    }
    if all.is_narrowed {
        let message = "`deny` of a listener has precedence over `allow`, SO MORE IS DENIED: all networks of a later reject";
        notes.loss(&section.at, format!("{} {}", section.kind, section.name), message);
    }
    Ok(all)
}

/// Whether a PROXY protocol header names the client.
fn announces(section: &Section, config: &Config<'_>) -> bool {
    let is_bind = |line: &Line| line.word(0) == "bind" && line.has("accept-proxy");
    section.lines.iter().any(is_bind) || expecting(section, config).next().is_some()
}

fn expecting<'a>(section: &'a Section, config: &Config<'a>) -> impl Iterator<Item = &'a Line> {
    config.all(section).filter(|line| line.begins(&["tcp-request", "connection", "expect-proxy"]))
}

/// Returns the networks of load balancers that send a PROXY protocol header, by `expect-proxy`. Fails if a rule depends
/// on more than the load balancer's address.
pub(super) fn announced_by(
    section: &Section,
    entry: &Entry,
    config: &Config<'_>,
    notes: &mut Notes,
) -> Result<Option<Vec<String>>, LeftOut> {
    let mut networks = Vec::new();
    for line in expecting(section, config) {
        for clients in clients(line, section, entry, config, notes) {
            match clients {
                Some(Clients::All) => networks.extend(["0.0.0.0/0", "::/0"].map(str::to_owned)),
                Some(Clients::In(own)) => networks.extend(own),
                Some(Clients::Except(_)) | None => {
                    return Err(LeftOut::line(line, "`proxy_protocol` of a listener is a list of networks"));
                }
            }
        }
    }
    Ok((!networks.is_empty()).then_some(networks))
}

/// The rules of a stage, those of `defaults` first.
fn rules(
    section: &Section,
    stage: &str,
    entry: &Entry,
    config: &Config<'_>,
    notes: &mut Notes,
) -> Result<Vec<Rule>, LeftOut> {
    let mut rules = Vec::new();
    for line in config.all(section).filter(|line| line.begins(&["tcp-request", stage])) {
        let admits = match line.word(2) {
            "accept" => true,
            "reject" | "silent-drop" => false,
            action if is_harmless(action) => continue,
            _ => return Err(LeftOut::line(line, "it may reject or change connections")),
        };
        for clients in clients(line, section, entry, config, notes) {
            match clients {
                Some(clients) => rules.push(Rule { clients, admits }),
                None if admits => {
                    let message = "listeners admit clients by network alone; the rule is left out, so more may be denied";
                    notes.loss(&line.at, line.text(), message);
                }
                None => return Err(LeftOut::line(line, "listeners reject clients by network alone")),
            }
        }
    }
    Ok(rules)
}

/// Whether an action neither rejects a connection nor changes its bytes or its client.
fn is_harmless(action: &str) -> bool {
    const ACTIONS: [&str; 7] =
        ["capture", "expect-proxy", "set-log-level", "set-mark", "set-nice", "set-tos", "unset-var"];
    let families = ["track-sc", "sc-", "set-var", "set-fc-", "set-bc-", "set-priority-"];
    let name = action.split('(').next().unwrap_or_default();
    ACTIONS.contains(&name) || families.iter().any(|family| name.starts_with(family))
}

/// The clients of each alternative of a line's condition; `None` for an alternative that depends on more than the
/// client.
fn clients(
    line: &Line,
    section: &Section,
    entry: &Entry,
    config: &Config<'_>,
    notes: &mut Notes,
) -> Vec<Option<Clients>> {
    let at = line.words.iter().position(|word| matches!(word.as_str(), "if" | "unless"));
    let words = at.and_then(|at| line.words.get(at..)).unwrap_or_default();
    match condition(words, section, config, notes, line) {
        None => vec![Some(Clients::All)],
        Some(lists) => {
            let found = lists.iter().map(|list| of_list(list, entry));
            let alternatives = found.filter_map(|found| match found {
                Found::None => None,
                Found::Clients(clients) => Some(Some(clients)),
                Found::Unknown => Some(None),
            });
            alternatives.collect()
        }
    }
}

/// The clients for which a conjunction of conditions holds.
enum Found {
    /// The conjunction never holds.
    None,
    Clients(Clients),
    Unknown,
}

fn of_list(list: &[Literal], entry: &Entry) -> Found {
    let mut all = Clients::All;
    for literal in list {
        match constant(literal, entry) {
            Some(true) => continue,
            Some(false) => return Found::None,
            None => {}
        }
        let Some(networks) = networks(literal) else { return Found::Unknown };
        all = match (all, literal.is_negated) {
            (Clients::All, false) => Clients::In(networks),
            (Clients::All, true) => Clients::Except(networks),
            (Clients::In(known), false) => Clients::In(common(&known, &networks)),
            (Clients::Except(known), true) => Clients::Except([known, networks].concat()),
            (Clients::In(_), true) | (Clients::Except(_), false) => return Found::Unknown,
        };
    }
    Found::Clients(all)
}

/// The networks of a condition on the client's address; `None` if it is another condition, or not exact.
fn networks(literal: &Literal) -> Option<Vec<String>> {
    let atoms = literal.means.any.as_ref().filter(|_| literal.means.is_exact())?;
    let networks = atoms.iter().map(|atom| match atom {
        Atom::Clients(networks) => Some(networks.clone()),
        _ => None,
    });
    Some(networks.collect::<Option<Vec<_>>>()?.concat())
}
