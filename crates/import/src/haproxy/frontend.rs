//! Frontends as routes: their rules, and those of the backends that they lead to, evaluated for each host and path.

use super::acl::{Atom, Condition};
use super::format::PORT;
use super::parser::Section;
use super::region::{Entry, Found, Region, host_covers};
use super::rules::{Rule, Then, rules};
use super::{Config, backend, bind};
use crate::model::{Action, Conditions, Document, Handler, Route, Table as Keys};
use crate::note::{At, Notes};
use crate::pattern::Pattern;
use crate::values;
use std::collections::{BTreeMap, BTreeSet};

/// A listener, with the frontend that it is of.
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
    let entries = bind::listeners(section, config, document, notes);
    if entries.is_empty() && section.lines.iter().any(|line| line.word(0) == "bind") {
        notes.loss(
            &section.at,
            format!("{} {}", section.kind, section.name),
            "it has no address; write a [listener.NAME]",
        );
    }
    entries.into_iter().map(|entry| Prepared { entry, section }).collect()
}

/// What the rules of a frontend lead to.
struct Program<'a> {
    name: &'a str,
    rules: Vec<Rule>,
    default: Option<&'a str>,
    at: &'a At,
}

/// A backend, as rules see it.
struct Target {
    service: Option<String>,
    rules: Vec<Rule>,
    timeouts: Keys,
    at: At,
}

/// A route to be, without host and path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Leaf {
    when: Conditions,
    then: Handler,
    from: String,
}

/// More than these, and the configuration is no longer one that a person could read.
const MOST_REGIONS: usize = 20_000;
const MOST_LEAVES: usize = 200;

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
        let has_servers = section.lines.iter().any(|line| line.word(0) == "server");
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
        programs.insert(&section.name, Program { name: &section.name, rules, default, at: &section.at });
    }
    let all = || {
        programs
            .values()
            .flat_map(|program| &program.rules)
            .chain(targets.values().flat_map(|target| &target.rules))
    };
    let (mut hosts, mut paths) = (BTreeSet::new(), BTreeSet::from([Pattern::all()]));
    for literal in all().filter_map(|rule| rule.condition.as_ref()).flatten().flatten() {
        for atom in literal.any.iter().flatten() {
            match atom {
                Atom::Host(host) => drop(hosts.insert(host.clone())),
                Atom::Path(pattern) => drop(paths.insert(pattern.clone())),
                _ => {}
            }
        }
    }
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
    let service = backend::service(section, config, false, document, notes);
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

/// Listeners with the same routes, in their order.
type Groups<'a> = Vec<(Vec<usize>, &'a [Leaf])>;

/// The routes of a host: paths with the same groups.
type Table<'a> = Vec<(Vec<usize>, Groups<'a>)>;

/// The routes of each host, path and listener.
struct Evaluated {
    /// Exact names, then domains from the longest, then any host.
    hosts: Vec<Option<String>>,
    paths: Vec<Pattern>,
    listeners: Vec<String>,
    /// By host, path and listener.
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
        // The deepest first, so that what is above a path comes behind it.
        paths.sort_by_key(|path| {
            std::cmp::Reverse((path.path().matches('/').count(), matches!(path, Pattern::Exact(_))))
        });
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

    /// The host that a request falls to when this one has no route: the longest domain around it, else any.
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

    /// Whether a host has the same routes as the one that its requests fall to otherwise.
    fn is_host_redundant(&self, host: usize, listener: usize) -> bool {
        self.outer_host(host).is_some_and(|outer| {
            (0..self.paths.len())
                .all(|path| self.get(host, path, listener) == self.get(outer, path, listener))
        })
    }

    /// Writes one route for all hosts, paths and listeners that it is alike for.
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
            // Any host cannot be in a list of hosts.
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
                            || document.listeners.len() > self.listeners.len()
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

/// An evaluation for one region.
struct Run<'a> {
    program: &'a Program<'a>,
    targets: &'a BTreeMap<String, Target>,
    entry: &'a Entry,
    out: Vec<Leaf>,
    document: &'a mut Document,
    notes: &'a mut Notes,
}

impl Run<'_> {
    /// From rule number `from` of the frontend.
    fn frontend(&mut self, region: Region<'_>, from: usize, mut handler: Handler) {
        let program = self.program;
        for (index, rule) in program.rules.iter().enumerate().skip(from) {
            match self.asked(&region, rule.condition.as_ref()) {
                Found::Fails => continue,
                Found::Depends(atom) => {
                    for part in region.split(&atom) {
                        self.frontend(part, index, handler.clone());
                    }
                    return;
                }
                Found::Holds => {}
            }
            match &rule.then {
                Then::Use(name) => return self.backend(region, name, 0, handler, &rule.at),
                then => {
                    if self.apply(then, &rule.at, &mut handler) {
                        return self.leaf(&region, handler, &rule.at);
                    }
                }
            }
        }
        match program.default {
            Some(name) => self.backend(region, name, 0, handler, program.at),
            None => {
                handler.action = Action::status(503);
                handler.notes.push("HAProxy has no backend for this".to_owned());
                self.leaf(&region, own(handler), program.at);
            }
        }
    }

    fn backend(&mut self, region: Region<'_>, name: &str, from: usize, mut handler: Handler, at: &At) {
        let targets = self.targets;
        let Some(target) = targets.get(name) else {
            handler.action = Action::status(503);
            return self.leaf(&region, own(handler), at);
        };
        // A `listen` has had its rules as a frontend.
        let rules = if name == self.program.name { &[] } else { &target.rules[..] };
        for (index, rule) in rules.iter().enumerate().skip(from) {
            match self.asked(&region, rule.condition.as_ref()) {
                Found::Fails => continue,
                Found::Depends(atom) => {
                    for part in region.split(&atom) {
                        self.backend(part, name, index, handler.clone(), at);
                    }
                    return;
                }
                Found::Holds => {}
            }
            if self.apply(&rule.then, &rule.at, &mut handler) {
                return self.leaf(&region, handler, &rule.at);
            }
        }
        match &target.service {
            Some(service) => {
                handler.action = Action::Service(service.clone());
                handler.timeouts = target.timeouts.clone();
                self.leaf(&region, handler, at);
            }
            None => {
                let message = "it has no server that is up, so this answers 503; set `service`";
                self.notes.loss(&target.at, format!("backend {name}"), message);
                handler.action = Action::status(503);
                self.leaf(&region, own(handler), &target.at);
            }
        }
    }

    fn asked(&mut self, region: &Region<'_>, condition: Option<&Condition>) -> Found {
        match region.evaluate(condition) {
            Found::Depends(_) if self.out.len() >= MOST_LEAVES => {
                let message = "its conditions are too many for routes; write [[route]]s by hand";
                self.notes.loss_once("too many conditions", self.program.at, "frontend", message);
                Found::Fails
            }
            found => found,
        }
    }

    fn leaf(&mut self, region: &Region<'_>, handler: Handler, at: &At) {
        if let Some(when) = region.conditions() {
            self.out.push(Leaf { when, then: handler, from: at.to_string() });
        }
    }

    /// Applies a rule; returns whether it answers.
    fn apply(&mut self, then: &Then, at: &At, handler: &mut Handler) -> bool {
        match then {
            Then::SetRequest(name, value) | Then::AddRequest(name, value) => {
                let Some(value) = self.with_port(value, at) else { return false };
                let scheme = if self.entry.is_tls { "https" } else { "http" };
                // What Weir sends anyway.
                let is_own = match name.to_ascii_lowercase().as_str() {
                    "x-forwarded-proto" => value == scheme || value == "{scheme}",
                    "x-forwarded-for" => value == "{client_ip}",
                    "x-forwarded-host" | "host" => value == "{authority}",
                    _ => false,
                };
                if value.contains("{request_id}") && self.document.request_id.is_none() {
                    self.document.request_id = Some("X-Request-Id".to_owned());
                }
                let is_set = matches!(then, Then::SetRequest(..)) || is_single(name);
                match (is_own, is_set) {
                    (true, _) => handler.request.forget(name),
                    (false, true) => handler.request.put(name, value),
                    (false, false) => drop(handler.request.add.insert(name.clone(), value)),
                }
                false
            }
            Then::DropRequest(name) if name.eq_ignore_ascii_case("host") => {
                self.notes.loss(at, "del-header host", "a request has a Host; set another one");
                false
            }
            Then::DropRequest(name) => {
                // Weir drops what the client says of these, and writes its own.
                let own = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded"];
                if !own.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                    handler.request.drop(name);
                }
                false
            }
            Then::SetResponse(name, value) => {
                handler.response.put(name, value.clone());
                false
            }
            Then::AddResponse(name, value) => {
                handler.response.add.insert(name.clone(), value.clone());
                false
            }
            Then::DropResponse(name) => {
                handler.response.drop(name);
                false
            }
            Then::Path(strip, add) => {
                let edit = |text: &str| (!text.is_empty()).then(|| text.to_owned());
                (handler.strip_prefix, handler.add_prefix) = (edit(strip), edit(add));
                false
            }
            Then::Answer(action, notes) => {
                handler.action = action.clone();
                handler.notes.extend(notes.iter().cloned());
                *handler = own(std::mem::take(handler));
                true
            }
            Then::Use(_) => false,
        }
    }

    /// With the listener's port in the place of its variable; `None`: it has several.
    fn with_port(&mut self, value: &str, at: &At) -> Option<String> {
        if !value.contains(PORT) {
            return Some(value.to_owned());
        }
        match self.entry.ports[..] {
            [port] => Some(value.replace(PORT, &port.to_string())),
            _ => {
                self.notes.loss(at, "dst_port", "the port has no variable; write it in request_headers");
                None
            }
        }
    }
}

/// Fields of which a request has one.
fn is_single(name: &str) -> bool {
    ["host", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-for"]
        .iter()
        .any(|single| name.eq_ignore_ascii_case(single))
}

/// An answer of the gateway's own has no request to change; HAProxy's rules about responses are not for it.
fn own(handler: Handler) -> Handler {
    Handler { action: handler.action, notes: handler.notes, ..Handler::default() }
}
