//! Rules of a frontend or a backend, in HAProxy's order of evaluation.

use super::acl::{Atom, Condition, Literal, Meaning, condition};
use super::format::template;
use super::{Config, rate};
use crate::model::{Action, Rate};
use crate::note::Notes;
use crate::pattern::Pattern;
use crate::values::{is_framing, is_token};
use weir_syntax::At;
use weir_syntax::haproxy::{Line, Section};

/// A rule that has a counterpart.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub condition: Option<Condition>,
    pub then: Then,
    /// Whether the rule rejects requests.
    pub denies: bool,
    pub at: At,
}

#[derive(Clone, Debug)]
pub(super) enum Then {
    SetRequest(String, String),
    AddRequest(String, String),
    DropRequest(String),
    SetResponse(String, String),
    AddResponse(String, String),
    DropResponse(String),
    /// Replaces a path prefix with another.
    Path(String, String),
    /// Rejects clients above a request rate.
    Limit(Rate),
    Answer(Action, Vec<String>),
    Use(String),
}

/// Rule keywords in the order of evaluation: connections, fields and responses, redirects, choice of a backend.
pub(super) const KEYWORDS: [&[&str]; 5] = [
    &["tcp-request"],
    &["monitor-uri"],
    &[
        "block",
        "http-request",
        "http-response",
        "http-after-response",
        "tcp-response",
        "reqadd",
        "reqdel",
        "reqdeny",
        "reqidel",
        "reqideny",
        "reqitarpit",
        "reqtarpit",
        "rspadd",
        "rspdel",
        "rspidel",
    ],
    &["redirect"],
    &["use_backend"],
];

/// The rules of a section, preceded by those of the defaults that it inherits.
pub(super) fn rules(section: &Section, config: &Config<'_>, notes: &mut Notes) -> Vec<Rule> {
    let mut rules = Vec::new();
    for keywords in KEYWORDS {
        for part in config.lineage(section) {
            for line in part.lines.iter().filter(|line| keywords.contains(&line.word(0))) {
                rules.extend(rule(line, part, config, notes));
            }
        }
    }
    rules
}

/// Whether a line rejects connections.
pub(super) fn rejects_connections(line: &Line) -> bool {
    line.word(0) == "tcp-request" && matches!(line.word(2), "reject" | "silent-drop")
}

/// Whether a line rejects requests, or runs code that may reject them.
pub(super) fn keeps_out(line: &Line) -> bool {
    match (line.word(0), line.word(1)) {
        ("http-request", "deny" | "tarpit" | "reject" | "silent-drop" | "auth") => true,
        ("http-request", action) => action.starts_with("lua."),
        ("http-response" | "http-after-response", "deny") | ("tcp-response", "content") => true,
        ("block" | "reqdeny" | "reqideny" | "reqtarpit" | "reqitarpit", _) => true,
        _ => rejects_connections(line),
    }
}

fn rule(line: &Line, section: &Section, config: &Config<'_>, notes: &mut Notes) -> Option<Rule> {
    if line.word(0) == "monitor-uri" {
        let means = Pattern::exact(line.word(1)).map(|pattern| Meaning::exact(vec![Atom::Path(pattern)]));
        let literal = Literal { means: means.unwrap_or_default(), ..Literal::unknown(&line.text()) };
        let condition = Some(known(vec![vec![literal]], false, line, notes)?);
        let then = Then::Answer(Action::status(200), Vec::new());
        return Some(Rule { condition, then, denies: false, at: line.at.clone() });
    }
    let words = &line.words;
    let at_if = words.iter().position(|word| matches!(word.as_str(), "if" | "unless")).unwrap_or(words.len());
    let (said, asked) = words.split_at(at_if);
    let mut then = match translated(said, section, config, notes, line) {
        Ok(then) => then?,
        Err(why) => {
            notes.loss(&line.at, line.text(), why);
            return None;
        }
    };
    let asked = condition(asked, section, config, notes, line);
    let mut denies =
        keeps_out(line) || matches!(&then, Then::Answer(Action::Respond { status: 400..=499, .. }, _));
    if !denies && asked.as_ref().is_some_and(|asked| guards(&then, asked, config)) {
        let message = "it may keep requests out, SO ALL THAT IT COULD BE ABOUT IS DENIED; write a [[route]]";
        notes.loss(&line.at, line.text(), message);
        let note = format!("HAProxy may send these elsewhere: {}", line.text());
        (then, denies) = (Then::Answer(Action::status(403), vec![note]), true);
    }
    let limit = asked.as_ref().filter(|_| denies).and_then(|asked| rate::limit(asked, section, config));
    let asked = match limit {
        Some((rate, rest)) => {
            notes.remark("limits of rates apply to each route, and requests beyond them get 429");
            then = Then::Limit(rate);
            Some(vec![rest])
        }
        None => asked,
    };
    let condition = match asked {
        None => None,
        Some(condition) => Some(known(condition, denies, line, notes)?),
    };
    Some(Rule { condition, then, denies, at: line.at.clone() })
}

/// Whether a rule with an untranslatable condition routes unauthorized requests elsewhere.
fn guards(then: &Then, asked: &Condition, config: &Config<'_>) -> bool {
    let lost = || asked.iter().flatten().filter(|literal| literal.means.any.is_none());
    let knows_client = ["var(", "http_auth", "ssl_c_", "_gpc", "_gpt", "in_table", "lua."];
    let asks_who = lost().any(|literal| knows_client.iter().any(|fetch| literal.asks.contains(fetch)));
    let is_closed = |text: &str| {
        let places = ["login", "signin", "auth", "sso", "denied", "deny", "forbidden", "block", "ban"];
        places.iter().any(|place| text.to_ascii_lowercase().contains(place))
    };
    lost().next().is_some()
        && match then {
            Then::Use(name) => {
                let target = config.section("backend", name);
                let is_guarded = |target| {
                    let serves = |line: &Line| line.word(0).starts_with("server");
                    config.all(target).any(keeps_out) || !config.all(target).any(serves)
                };
                asks_who || is_closed(name) || target.is_none_or(is_guarded)
            }
            Then::Answer(Action::Redirect { to, .. }, _) => asks_who || is_closed(to),
            _ => false,
        }
}

/// Translates a condition. If parts have no counterpart, a rule that denies covers more requests, and any other rule is
/// dropped.
fn known(condition: Condition, denies: bool, line: &Line, notes: &mut Notes) -> Option<Condition> {
    let mut lists: Condition = Vec::new();
    for list in condition {
        for literal in list.iter().filter(|literal| !literal.means.is_exact()) {
            let message = match (denies, &literal.means.any) {
                (true, _) => format!(
                    "routes have no condition like `{}`, SO MORE IS DENIED: all that the rest of the rule is about; write a [[route]]",
                    literal.text
                ),
                (false, None) => {
                    format!(
                        "routes have no condition like `{}`; the rule is left out; write a [[route]]",
                        literal.text
                    )
                }
                (false, Some(_)) => format!(
                    "`{}` is compared with its case, and whole names; write a [[route]] for others",
                    literal.text
                ),
            };
            notes.loss(&line.at, line.text(), message);
        }
        let atoms = |literal: &Literal| match (denies, literal.is_negated) {
            (false, _) => literal.means.any.clone(),
            (true, false) => literal.means.most.clone(),
            (true, true) => Some(literal.means.least.clone()),
        };
        if !denies && list.iter().any(|literal| literal.means.any.is_none()) {
            continue;
        }
        let known = list.into_iter().filter_map(|literal| {
            let means = Meaning::exact(atoms(&literal)?);
            Some(Literal { means, ..literal })
        });
        lists.push(known.collect());
    }
    (!lists.is_empty()).then_some(lists)
}

fn translated(
    words: &[String],
    section: &Section,
    config: &Config<'_>,
    notes: &mut Notes,
    line: &Line,
) -> Result<Option<Then>, String> {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let none = "no counterpart; see [[route]] in docs/GATEWAY.md";
    let mut denied = |why: &str| {
        notes.loss(&line.at, line.text(), why);
        Ok(Some(Then::Answer(Action::status(403), Vec::new())))
    };
    match (word(0), word(1)) {
        ("http-request", "set-header") => field(word(2), word(3), Then::SetRequest),
        ("http-request", "add-header") => field(word(2), word(3), Then::AddRequest),
        ("http-request", "del-header") => name(word(2), Then::DropRequest),
        ("http-response" | "http-after-response", "set-header") => {
            constant(word(2), word(3), Then::SetResponse)
        }
        ("http-response" | "http-after-response", "add-header") => {
            constant(word(2), word(3), Then::AddResponse)
        }
        ("http-response" | "http-after-response", "del-header") => name(word(2), Then::DropResponse),
        ("reqadd" | "rspadd", said) => {
            let (name, value) = said.split_once(':').ok_or("expected `Name: value`")?;
            match word(0) {
                "reqadd" => field(name, value.trim(), Then::AddRequest),
                _ => constant(name, value.trim(), Then::AddResponse),
            }
        }
        ("reqidel" | "reqdel", regex) => name(field_of(regex)?, Then::DropRequest),
        ("rspidel" | "rspdel", regex) => name(field_of(regex)?, Then::DropResponse),
        ("http-request", "redirect") => redirect(&words[2..]).map(Some),
        ("redirect", _) => redirect(&words[1..]).map(Some),
        ("tcp-request", _) if !rejects_connections(line) => Ok(None),
        ("tcp-response", said) if said != "content" => Ok(None),
        ("tcp-response", _) | ("http-response" | "http-after-response", "deny") => {
            denied("routes cannot match responses, SO ALL REQUESTS ARE DENIED; let the service respond so")
        }
        ("reqdeny" | "reqideny" | "reqtarpit" | "reqitarpit", _) => {
            denied("routes have no regular expressions, SO MORE IS DENIED; write a [[route]]")
        }
        ("http-request", script) if script.starts_with("lua.") => {
            denied("Weir runs no scripts, and this may deny, SO ALL IS DENIED; let a service do it")
        }
        ("block" | "tcp-request", _) | ("http-request", "deny" | "tarpit" | "reject" | "silent-drop") => {
            if !matches!((word(0), word(1)), ("block", _) | (_, "deny")) {
                let message = "Weir responds at once: with 403, or the status of the rule";
                notes.loss(&line.at, line.text(), message);
            }
            let status = after(words, &["deny_status", "status"]).and_then(|status| status.parse().ok());
            let status = status.filter(|status| (200..=599).contains(status)).unwrap_or(403);
            Ok(Some(Then::Answer(Action::status(status), Vec::new())))
        }
        ("http-request", "auth") => {
            let message =
                "Weir does not check credentials, so requests get 403; let the service ask for them";
            notes.loss(&line.at, line.text(), message);
            let note = "HAProxy asks for credentials here".to_owned();
            Ok(Some(Then::Answer(Action::status(403), vec![note])))
        }
        ("http-request", "return") => answer(words, notes, line).map(Some),
        ("http-request", "use-service") => {
            let message = "Weir has metrics at an address of their own; set [admin]";
            notes.loss(&line.at, line.text(), message);
            Ok(Some(Then::Answer(Action::status(404), Vec::new())))
        }
        ("http-request", "replace-path" | "replace-pathq" | "replace-uri") => {
            let replacement = word(3).replace("\\1", "$1").replace("\\2", "$2");
            let edit = crate::nginx::prefix_edit(word(2), &replacement);
            let why =
                "routes take a prefix off or put one before a path, no more; let the service do the rest";
            edit.map(|(strip, add)| Some(Then::Path(strip, add))).ok_or_else(|| why.to_owned())
        }
        ("http-request", "set-path" | "set-pathq") => set_path(word(2)).map(Some),
        (
            "http-request",
            "set-log-level" | "capture" | "disable-l7-retry" | "wait-for-handshake" | "cache-use",
        )
        | ("http-response", "cache-store" | "set-log-level" | "capture") => {
            notes.quiet(&format!("{} {}", word(0), word(1)));
            Ok(None)
        }
        // [`rate::limit`] reads these lines for the rules that check the rate.
        ("http-request", said) if said.starts_with("track-sc") && word(2) == "src" => Ok(None),
        ("http-request", said) if said.starts_with("track-sc") => {
            Err("Weir counts no rates; let the service limit them, or max_connections their number".into())
        }
        ("use_backend", backend) if backend.contains('%') => {
            Err("backends are not chosen by a value; write a [[route]] for each".into())
        }
        ("use_backend", backend) => {
            if config.section("backend", backend).is_none() {
                return Err(format!("`{}` has no backend `{backend}`", section.name));
            }
            Ok(Some(Then::Use(backend.to_owned())))
        }
        _ => Err(none.into()),
    }
}

fn after<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    let at = words.iter().position(|word| names.contains(&word.as_str()))?;
    words.get(at + 1).map(String::as_str)
}

/// The field name in an obsolete rule such as `^Server:.*`.
fn field_of(regex: &str) -> Result<&str, String> {
    let name = regex.trim_start_matches('^').split(':').next().unwrap_or_default();
    is_token(name).then_some(name).ok_or_else(|| "expected a field's name; see request_headers.remove".into())
}

fn name(name: &str, then: fn(String) -> Then) -> Result<Option<Then>, String> {
    checked(name)?;
    Ok(Some(then(name.to_owned())))
}

fn checked(name: &str) -> Result<(), String> {
    match is_token(name) && !is_framing(name) {
        true => Ok(()),
        false => Err("the field frames messages or belongs to a connection; Weir writes it itself".into()),
    }
}

fn field(name: &str, value: &str, then: fn(String, String) -> Then) -> Result<Option<Then>, String> {
    checked(name)?;
    let text = template(value)
        .map_err(|what| format!("`{what}` has no counterpart; see the variables in docs/GATEWAY.md"))?;
    Ok(Some(then(name.to_owned(), text)))
}

fn constant(name: &str, value: &str, then: fn(String, String) -> Then) -> Result<Option<Then>, String> {
    let is_constant = !value.replace("%%", "").contains('%');
    if !is_constant {
        return Err("fields of responses have no variables; let the service send it".into());
    }
    field(name, value, then)
}

/// Translates `scheme https code 301`, `prefix ..` and `location ..`.
fn redirect(words: &[String]) -> Result<Then, String> {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let text = template(word(1))
        .map_err(|what| format!("`{what}` has no counterpart; write a [[route]] for each"))?;
    if text.contains(super::format::PORT) {
        return Err("the port has no variable; write it in `redirect`".into());
    }
    let drops_query = words.iter().any(|word| word == "drop-query");
    let to = match word(0) {
        "scheme" => format!("{text}://{{authority}}{{target}}"),
        "prefix" if drops_query => format!("{}{{path}}", text.trim_end_matches('/')),
        "prefix" => format!("{}{{target}}", text.trim_end_matches('/')),
        "location" => text,
        _ => return Err("expected scheme, prefix or location".into()),
    };
    if ["append-slash", "set-cookie", "clear-cookie", "ignore-empty"]
        .iter()
        .any(|option| words.iter().any(|word| word == option))
    {
        return Err(
            "only scheme, prefix, location, code and drop-query are translated; write a [[route]]".into()
        );
    }
    let status = after(words, &["code"]).and_then(|code| code.parse().ok());
    let status = status.filter(|status| [301, 302, 303, 307, 308].contains(status)).unwrap_or(302);
    Ok(Then::Answer(Action::Redirect { to, status }, Vec::new()))
}

/// Translates `return status 200 content-type text/plain string "ok"`.
fn answer(words: &[String], notes: &mut Notes, line: &Line) -> Result<Then, String> {
    let status = after(words, &["status"]).and_then(|status| status.parse().ok());
    let status = status.filter(|status| (200..=599).contains(status)).unwrap_or(200);
    let text = after(words, &["string", "lf-string"]).map(str::to_owned);
    let is_lost = words
        .iter()
        .any(|word| matches!(word.as_str(), "file" | "lf-file" | "errorfile" | "errorfiles" | "hdr"))
        || (after(words, &["lf-string"]).is_some_and(|text| text.contains('%')));
    if is_lost {
        notes.loss(&line.at, line.text(), "only a fixed text is translated; see `respond` and error_pages");
    }
    let body = text.filter(|text| !(text.is_empty() || matches!(status, 204 | 304)));
    let content_type = after(words, &["content-type"])
        .filter(|kind| body.is_some() && !kind.contains(char::is_control))
        .map(str::to_owned);
    Ok(Then::Answer(Action::Respond { status, body, content_type }, Vec::new()))
}

/// Translates `/prefix%[path]` and `%[path,regsub(^/prefix/,/)]`.
fn set_path(text: &str) -> Result<Then, String> {
    let why = "routes take a prefix off or put one before a path, no more; let the service do the rest";
    let is_prefix = |prefix: &str| {
        prefix.starts_with('/') && prefix.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.~".contains(c))
    };
    for path in ["%[path]", "%[pathq]"] {
        if let Some(prefix) = text.strip_suffix(path).filter(|prefix| is_prefix(prefix)) {
            return Ok(Then::Path(String::new(), prefix.trim_end_matches('/').to_owned()));
        }
    }
    let inner = text.strip_prefix("%[path,regsub(").and_then(|text| text.strip_suffix(")]"));
    let (regex, by) = inner.and_then(|inner| inner.split_once(',')).ok_or(why)?;
    let prefix = regex.trim_matches(['"', '\'']).trim_start_matches('^');
    let by = by.trim_matches(['"', '\'']).trim_end_matches('/');
    let prefix = prefix.trim_end_matches('?').trim_end_matches('/');
    match is_prefix(prefix) && (by.is_empty() || is_prefix(by)) {
        true => Ok(Then::Path(prefix.to_owned(), by.to_owned())),
        false => Err(why.into()),
    }
}
