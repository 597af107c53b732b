//! The result of a frontend's rules, and of its backends' rules, for a part of all requests.

use super::acl::{Atom, Condition, Literal};
use super::format::PORT;
use super::region::{Entry, Found, Region};
use super::rules::{Rule, Then};
use crate::model::{Action, Conditions, Document, Edits, Handler, Rate, Table as Keys};
use crate::note::Notes;
use std::collections::BTreeMap;
use weir_syntax::At;

/// A frontend's rules and their targets.
pub(super) struct Program<'a> {
    pub name: &'a str,
    /// Whether the section is a `listen`, which is also its own backend.
    pub is_listen: bool,
    pub rules: Vec<Rule>,
    pub default: Option<&'a str>,
    pub at: &'a At,
}

/// A backend with its own rules, as the target of a frontend's rules.
pub(super) struct Target {
    pub service: Option<String>,
    pub rules: Vec<Rule>,
    pub timeouts: Keys,
    pub at: At,
}

/// A future route, without its host and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub when: Conditions,
    pub then: Handler,
    pub from: String,
}

/// The maximum number of routes per region: more would be unreadable.
const MOST_LEAVES: usize = 200;

/// Applies a frontend's rules to one region of requests, and collects the routes.
pub(super) struct Run<'a> {
    pub program: &'a Program<'a>,
    pub targets: &'a BTreeMap<String, Target>,
    pub entry: &'a Entry,
    pub out: Vec<Leaf>,
    pub document: &'a mut Document,
    pub notes: &'a mut Notes,
}

impl Run<'_> {
    /// Evaluates the frontend's rules from number `from` on.
    pub(super) fn frontend(&mut self, region: Region<'_>, from: usize, mut handler: Handler) {
        let program = self.program;
        for (index, rule) in program.rules.iter().enumerate().skip(from) {
            match self.asked(&region, rule, &handler) {
                Found::Fails => continue,
                Found::Unclear => return self.unclear(&region, rule),
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
        // The rules of a `listen` have already run as those of its frontend.
        let is_own = self.program.is_listen && name == self.program.name;
        let rules = if is_own { &[] } else { &target.rules[..] };
        for (index, rule) in rules.iter().enumerate().skip(from) {
            match self.asked(&region, rule, &handler) {
                Found::Fails => continue,
                Found::Unclear => return self.unclear(&region, rule),
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
                let message = "it has no server that is up, so requests get 503; set `service`";
                self.notes.loss(&target.at, format!("backend {name}"), message);
                handler.action = Action::status(503);
                self.leaf(&region, own(handler), &target.at);
            }
        }
    }

    fn asked(&mut self, region: &Region<'_>, rule: &Rule, handler: &Handler) -> Found {
        let sent = rule.condition.as_ref().filter(|_| rule.denies).map(|asked| as_sent(asked, handler));
        if sent.is_some() && sent != rule.condition {
            let message = "it is about what earlier rules have changed, and routes compare what clients send, SO MORE IS DENIED";
            self.notes.loss(&rule.at, "a rule that denies", message);
        }
        let found = region.evaluate(sent.as_ref().or(rule.condition.as_ref()));
        match found {
            Found::Depends(_) if self.out.len() >= MOST_LEAVES => {
                let message = "its conditions are too many for routes, so the remaining requests get 403; write [[route]]s by hand";
                self.notes.loss_once("too many conditions", self.program.at, "frontend", message);
                Found::Unclear
            }
            found => found,
        }
    }

    fn unclear(&mut self, region: &Region<'_>, rule: &Rule) {
        let then = Handler::new(Action::status(403)).noted("HAProxy has too many conditions for this");
        self.leaf(region, then, &rule.at);
    }

    fn leaf(&mut self, region: &Region<'_>, handler: Handler, at: &At) {
        if let Some(when) = region.conditions() {
            self.out.push(Leaf { when, then: handler, from: at.to_string() });
        }
    }

    /// Applies a rule; returns whether it generates the response.
    fn apply(&mut self, then: &Then, at: &At, handler: &mut Handler) -> bool {
        match then {
            Then::SetRequest(name, value) | Then::AddRequest(name, value) => {
                let Some(value) = self.with_port(value, at) else { return false };
                let scheme = if self.entry.is_tls { "https" } else { "http" };
                // Weir sets these fields to the same values.
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
                // Weir replaces the client's values of these fields.
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
            Then::Limit(rate) => {
                let is_stricter = |known: &Rate| known.requests * rate.per_ms <= rate.requests * known.per_ms;
                handler.rate = handler.rate.filter(is_stricter).or(Some(*rate));
                handler.notes.push(format!("limited by {at}"));
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

    /// Replaces the placeholder with the listener's port; `None` if the listener has several.
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

/// The condition of a rule that denies, without the parts that test a path or field changed by earlier rules: routes
/// test the request as the client sent it.
fn as_sent(condition: &Condition, handler: &Handler) -> Condition {
    let has_path = handler.strip_prefix.is_some() || handler.add_prefix.is_some();
    let has_field = |name: &String| {
        let Edits { set, add, remove } = &handler.request;
        set.keys().chain(add.keys()).chain(remove).any(|changed| changed.eq_ignore_ascii_case(name))
    };
    let is_sent = |atom: &Atom| match atom {
        Atom::Path(_) | Atom::Under(_) => !has_path,
        Atom::Header(name, _) => !has_field(name),
        _ => true,
    };
    let is_kept = |literal: &&Literal| literal.means.any.iter().flatten().all(is_sent);
    condition.iter().map(|list| list.iter().filter(is_kept).cloned().collect()).collect()
}

/// Whether a request contains this field only once.
fn is_single(name: &str) -> bool {
    ["host", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-for"]
        .iter()
        .any(|single| name.eq_ignore_ascii_case(single))
}

/// Removes the edits of a handler that generates the response: there is no upstream request, and HAProxy does not apply
/// response rules to such a response.
fn own(handler: Handler) -> Handler {
    Handler { action: handler.action, notes: handler.notes, ..Handler::default() }
}
