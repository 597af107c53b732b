//! Frontends as routes: evaluates their rules and those of their backends for each host and path.

use super::acl::Atom;
use super::region::{Entry, Region};
use super::rules::{Then, rules};
use super::run::{Leaf, Program, Run, Target};
use super::{Config, backend, bind};
use crate::model::{Document, Handler, Route, Table as Keys};
use crate::note::Notes;
use crate::pattern::Pattern;
use crate::values::{self, host_covers};
use std::collections::{BTreeMap, BTreeSet};
use weir_syntax::haproxy::Section;

/// A listener and its frontend.
pub(super) struct Prepared<'a> {
    entry: Entry,
    section: &'a Section,
}

/// The listeners of a frontend.
pub(super) fn prepare<'a>(
    section: &'a Section,
    config: &Config<'_>,
    document: &mut Document,
    notes: &mut Notes,
) -> Vec<Prepared<'a>> {
    let entries = bind::listeners(section, config, bind::Serves::Http, document, notes);
    if entries.is_empty() && section.lines.iter().any(|line| line.word(0) == "bind") {
        notes.loss(
            &section.at,
            format!("{} {}", section.kind, section.name),
            "it has no address; write a [listener.NAME]",
        );
    }
    entries.into_iter().map(|entry| Prepared { entry, section }).collect()
}

/// The maximum number of regions: a larger result would be unreadable.
const MOST_REGIONS: usize = 20_000;

pub(super) fn translate(
    prepared: &[Prepared<'_>],
    config: &Config<'_>,
    document: &mut Document,
    notes: &mut Notes,
) {
    let mut targets = BTreeMap::new();
    let mut programs: BTreeMap<&str, Program<'_>> = BTreeMap::new();
    for Prepared { section, .. } in prepared {
        if programs.contains_key(section.name.as_str()) {
            continue;
        }
        let rules = rules(section, config, notes);
        let is_listen = section.kind == "listen";
        let has_servers = is_listen && section.lines.iter().any(|line| line.word(0).starts_with("server"));
        let named = config.find(section, &["default_backend"]).map(|line| line.word(1));
        let default = named.or(has_servers.then_some(section.name.as_str()));
        let used = rules.iter().filter_map(|rule| match &rule.then {
            Then::Use(name) => Some(name.as_str()),
            _ => None,
        });
        for name in used.chain(default) {
            if !targets.contains_key(name)
                && let Some(target) = target(name, section, config, document, notes)
            {
                targets.insert(name.to_owned(), target);
            }
        }
        programs.insert(
            &section.name,
            Program { name: &section.name, is_listen, rules, default, at: &section.at },
        );
    }
    let all = || {
        programs
            .values()
            .flat_map(|program| &program.rules)
            .chain(targets.values().flat_map(|target| &target.rules))
    };
    let (mut hosts, mut paths) = (BTreeSet::new(), BTreeSet::from([Pattern::all()]));
    for literal in all().filter_map(|rule| rule.condition.as_ref()).flatten().flatten() {
        for atom in literal.means.any.iter().flatten() {
            match atom {
                Atom::Host(host) => drop(hosts.insert(host.clone())),
                Atom::Path(pattern) => drop(paths.insert(pattern.clone())),
                Atom::Under(pattern) => {
                    paths.extend([pattern.clone(), Pattern::Exact(pattern.path().to_owned())]);
                }
                _ => {}
            }
        }
    }
    common(&mut paths);
    if (hosts.len() + 1).saturating_mul(paths.len()).saturating_mul(prepared.len()) > MOST_REGIONS {
        if let Some(Prepared { section, .. }) = prepared.first() {
            let message = "too many hosts and paths; split the configuration, and import its parts";
            notes.loss(&section.at, format!("{} {}", section.kind, section.name), message);
        }
        return;
    }
    let table = Evaluated::new(prepared, &programs, &targets, &hosts, &paths, document, notes);
    table.write(prepared.len(), document);
}

/// Adds the patterns of paths that two patterns match, one of them with an `{any}` segment.
fn common(paths: &mut BTreeSet<Pattern>) {
    let all: Vec<_> = paths.iter().cloned().collect();
    let with_any = all.iter().filter(|path| path.path().contains('{'));
    paths.extend(with_any.flat_map(|path| all.iter().filter_map(|other| path.meet(other))));
}

fn target(
    name: &str,
    from: &Section,
    config: &Config<'_>,
    document: &mut Document,
    notes: &mut Notes,
) -> Option<Target> {
    let Some(section) = config.section("backend", name) else {
        notes.loss(&from.at, format!("backend {name}"), "there is no such backend");
        return None;
    };
    let service = backend::service(section, config, backend::Protocol::Http, document, notes);
    let rules = rules(section, config, notes);
    let mut timeouts = Keys::default();
    let time = config.find(section, &["timeout", "server"]).and_then(|line| values::time(line.word(2), 1));
    if let Some(ms) = time.filter(|ms| *ms > 0 && document.timeouts.get("response") != Some(*ms))
        && let Some(text) = values::duration(ms)
    {
        timeouts.text("response", text.clone());
        timeouts.text("stall", text);
    }
    Some(Target { service, rules, timeouts, at: section.at.clone() })
}

/// Groups of listeners with equal routes, in order. Each entry: the indexes of the listeners, and their routes.
type Groups<'a> = Vec<(Vec<usize>, &'a [Leaf])>;

/// A host's routes. Each entry: the indexes of the paths that have the same groups of listeners, and these groups.
type Table<'a> = Vec<(Vec<usize>, Groups<'a>)>;

/// The routes of each host, path and listener.
struct Evaluated {
    /// Names first, then domains from the longest to the shortest, then the catch-all.
    hosts: Vec<Option<String>>,
    paths: Vec<Pattern>,
    listeners: Vec<String>,
    /// The routes, by the indexes of host, path and listener.
    leaves: BTreeMap<(usize, usize, usize), Vec<Leaf>>,
}

impl Evaluated {
    fn new(
        prepared: &[Prepared<'_>],
        programs: &BTreeMap<&str, Program<'_>>,
        targets: &BTreeMap<String, Target>,
        hosts: &BTreeSet<String>,
        paths: &BTreeSet<Pattern>,
        document: &mut Document,
        notes: &mut Notes,
    ) -> Self {
        let mut names: Vec<Option<String>> = hosts.iter().cloned().map(Some).collect();
        names.sort_by_key(|name| {
            name.as_ref().map(|name| (name.starts_with("*."), std::cmp::Reverse(name.len())))
        });
        names.push(None);
        let mut paths: Vec<Pattern> = paths.iter().cloned().collect();
        // Sorts by Weir's precedence, so that the fallback of a path comes after the path.
        paths.sort_by_key(Pattern::rank);
        let mut leaves = BTreeMap::new();
        for (host, name) in names.iter().enumerate() {
            for (path, pattern) in paths.iter().enumerate() {
                for (listener, Prepared { entry, section }) in prepared.iter().enumerate() {
                    let Some(program) = programs.get(section.name.as_str()) else { continue };
                    let mut run = Run { program, targets, entry, out: Vec::new(), document, notes };
                    let region = Region::new(entry, name.as_deref(), pattern);
                    run.frontend(region, 0, Handler::default());
                    leaves.insert((host, path, listener), run.out);
                }
            }
        }
        let listeners = prepared.iter().map(|prepared| prepared.entry.listener.clone()).collect();
        Self { hosts: names, paths, listeners, leaves }
    }

    fn get(&self, host: usize, path: usize, listener: usize) -> &[Leaf] {
        self.leaves.get(&(host, path, listener)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The host whose routes apply if this one has none: the longest enclosing domain, else the catch-all.
    fn outer_host(&self, host: usize) -> Option<usize> {
        let own = self.hosts.get(host)?.as_ref()?;
        let is_outer = |(index, other): &(usize, &Option<String>)| {
            *index > host
                && other.as_ref().is_none_or(|other| other.starts_with("*.") && host_covers(other, own))
        };
        self.hosts.iter().enumerate().find(is_outer).map(|(index, _)| index)
    }

    fn outer_path(&self, path: usize) -> Option<usize> {
        let own = self.paths.get(path)?;
        let is_outer = |(index, other): &(usize, &Pattern)| *index > path && other.covers(own);
        self.paths.iter().enumerate().find(is_outer).map(|(index, _)| index)
    }

    /// Whether a host has the same routes as its fallback.
    fn is_host_redundant(&self, host: usize, listener: usize) -> bool {
        self.outer_host(host).is_some_and(|outer| {
            (0..self.paths.len())
                .all(|path| self.get(host, path, listener) == self.get(outer, path, listener))
        })
    }

    /// Writes each route once, for all hosts, paths and listeners that share it.
    fn write(&self, listeners: usize, document: &mut Document) {
        let mut tables: Vec<(Vec<usize>, Table<'_>)> = Vec::new();
        for host in 0..self.hosts.len() {
            let mut table: Table<'_> = Vec::new();
            for path in 0..self.paths.len() {
                let mut groups: Groups<'_> = Vec::new();
                for listener in 0..listeners {
                    let leaves = self.get(host, path, listener);
                    let outer = self.outer_path(path);
                    let is_redundant = outer.is_some_and(|outer| self.get(host, outer, listener) == leaves);
                    if is_redundant || self.is_host_redundant(host, listener) {
                        continue;
                    }
                    match groups.iter_mut().find(|(_, known)| *known == leaves) {
                        Some((members, _)) => members.push(listener),
                        None => groups.push((vec![listener], leaves)),
                    }
                }
                if groups.is_empty() {
                    continue;
                }
                match table.iter_mut().find(|(_, known)| *known == groups) {
                    Some((members, _)) => members.push(path),
                    None => table.push((vec![path], groups)),
                }
            }
            if table.is_empty() {
                continue;
            }
            // The catch-all cannot be part of a list of hosts.
            let is_any = self.hosts.get(host).is_some_and(Option::is_none);
            match tables.iter_mut().find(|(_, known)| !is_any && *known == table) {
                Some((members, _)) => members.push(host),
                None => tables.push((vec![host], table)),
            }
        }
        for (hosts, table) in &tables {
            for (paths, groups) in table {
                for (members, leaves) in groups {
                    for leaf in *leaves {
                        let mut when = leaf.when.clone();
                        if members.len() < self.listeners.len()
                            || document.listeners.iter().filter(|known| known.is_http()).count()
                                > self.listeners.len()
                        {
                            when.listener = members
                                .iter()
                                .filter_map(|index| self.listeners.get(*index))
                                .cloned()
                                .collect();
                        }
                        let host = hosts.iter().filter_map(|index| self.hosts.get(*index)?.clone()).collect();
                        let paths: Vec<_> = paths.iter().filter_map(|index| self.paths.get(*index)).collect();
                        let is_all = paths.len() == 1 && *paths[0] == Pattern::all();
                        let path =
                            if is_all { Vec::new() } else { paths.into_iter().map(Pattern::text).collect() };
                        document.routes.push(Route {
                            host,
                            path,
                            when,
                            then: leaf.then.clone(),
                            from: leaf.from.clone(),
                        });
                    }
                }
            }
        }
    }
}
