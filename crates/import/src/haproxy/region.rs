//! Evaluation of rules for a part of all requests, so that a sequence of rules becomes independent routes.
//!
//! Weir selects the most specific host, then the path, then the first route whose conditions hold. So the translation
//! evaluates the rules for each host and path that the rules name, and for all others, and splits these regions by
//! conditions that are still unknown.

use super::acl::{Atom, Condition, Literal};
use crate::access::common;
use crate::model::Conditions;
use crate::pattern::Pattern;
use crate::values::host_covers;

/// The properties of a listener that conditions may test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub listener: String,
    pub is_tls: bool,
    pub ports: Vec<u16>,
}

/// A part of all requests: one listener, host and path.
#[derive(Clone, Debug)]
pub(super) struct Region<'a> {
    pub entry: &'a Entry,
    /// A name, `*.` and a domain, or `None` for hosts that no rule names.
    pub host: Option<&'a str>,
    pub path: &'a Pattern,
    known: Vec<(Atom, bool)>,
}

/// The value of a condition in a region.
pub(super) enum Found {
    Holds,
    Fails,
    /// Unknown: the region must be split by this condition.
    Depends(Atom),
    /// Unknown, and routes cannot express the condition.
    Unclear,
}

impl<'a> Region<'a> {
    pub(super) fn new(entry: &'a Entry, host: Option<&'a str>, path: &'a Pattern) -> Self {
        Self { entry, host, path, known: Vec::new() }
    }

    /// Splits the region into the parts where the atom holds and where it does not.
    pub(super) fn split(&self, atom: &Atom) -> [Self; 2] {
        [true, false].map(|holds| {
            let mut part = self.clone();
            part.known.push((atom.clone(), holds));
            part
        })
    }

    /// The conditions of the region's routes; `None` if the region is empty. Earlier routes handle the negated
    /// conditions.
    pub(super) fn conditions(&self) -> Option<Conditions> {
        let mut conditions = Conditions::default();
        for (atom, _) in self.known.iter().filter(|(_, holds)| *holds) {
            match atom {
                Atom::Methods(methods) => {
                    let known = std::mem::take(&mut conditions.method);
                    let is_known = |method: &&String| known.is_empty() || known.contains(method);
                    conditions.method = methods.iter().filter(is_known).cloned().collect();
                    (!conditions.method.is_empty()).then_some(())?;
                }
                Atom::Clients(networks) => {
                    let known = std::mem::take(&mut conditions.client);
                    conditions.client = match known.is_empty() {
                        true => networks.clone(),
                        false => common(&known, networks),
                    };
                    (!conditions.client.is_empty()).then_some(())?;
                }
                Atom::Header(name, value) => match conditions.headers.get(name) {
                    Some(known) if value == "*" || known == value => {}
                    Some(known) if known != "*" => return None,
                    _ => drop(conditions.headers.insert(name.clone(), value.clone())),
                },
                _ => {}
            }
        }
        Some(conditions)
    }

    pub(super) fn evaluate(&self, condition: Option<&Condition>) -> Found {
        let Some(lists) = condition else { return Found::Holds };
        let mut depends = None;
        for list in lists {
            match self.all(list) {
                Found::Holds => return Found::Holds,
                Found::Fails | Found::Unclear => {}
                Found::Depends(atom) => depends = depends.or(Some(atom)),
            }
        }
        depends.map_or(Found::Fails, Found::Depends)
    }

    fn all(&self, list: &[Literal]) -> Found {
        let mut depends = None;
        for literal in list {
            match self.literal(literal) {
                Found::Holds => {}
                Found::Fails | Found::Unclear => return Found::Fails,
                Found::Depends(atom) => depends = depends.or(Some(atom)),
            }
        }
        depends.map_or(Found::Holds, Found::Depends)
    }

    fn literal(&self, literal: &Literal) -> Found {
        let mut depends = None;
        let mut holds = false;
        for atom in literal.means.any.iter().flatten() {
            match self.atom(atom) {
                Some(true) => holds = true,
                Some(false) => {}
                None => depends = depends.or_else(|| Some(atom.clone())),
            }
        }
        match (holds, depends) {
            (false, Some(atom)) => Found::Depends(atom),
            (holds, _) if holds != literal.is_negated => Found::Holds,
            _ => Found::Fails,
        }
    }

    /// Whether the atom holds; `None`: for some of the region's requests.
    fn atom(&self, atom: &Atom) -> Option<bool> {
        match atom {
            Atom::Always => Some(true),
            Atom::Never => Some(false),
            Atom::Tls => Some(self.entry.is_tls),
            Atom::Port(port) => Some(self.entry.ports.contains(port)),
            Atom::Host(host) => Some(self.host.is_some_and(|own| host_covers(host, own))),
            Atom::Path(pattern) => Some(pattern.covers(self.path)),
            Atom::Under(pattern) => {
                let is_alone = matches!(self.path, Pattern::Exact(path) if path == pattern.path());
                Some(pattern.covers(self.path) && !is_alone)
            }
            atom => {
                if let Some((_, holds)) = self.known.iter().find(|(known, _)| known == atom) {
                    return Some(*holds);
                }
                // A list of methods excludes disjoint lists, and implies longer ones. A field's value excludes other
                // values, and implies that the field exists.
                let excludes = |known: &Atom| match (known, atom) {
                    (Atom::Methods(a), Atom::Methods(b)) => !a.iter().any(|method| b.contains(method)),
                    (Atom::Header(a, x), Atom::Header(b, y)) => a == b && x != "*" && y != "*",
                    _ => false,
                };
                let implies = |known: &Atom| match (known, atom) {
                    (Atom::Methods(a), Atom::Methods(b)) => a.iter().all(|method| b.contains(method)),
                    (Atom::Header(a, _), Atom::Header(b, y)) => a == b && y == "*",
                    _ => false,
                };
                let held = || self.known.iter().filter(|(_, holds)| *holds);
                if held().any(|(known, _)| excludes(known)) {
                    return Some(false);
                }
                held().any(|(known, _)| implies(known)).then_some(true)
            }
        }
    }
}
