//! Conditions: ACLs, named and anonymous, as what a route can ask of a request.

use super::Config;
use super::parser::{Line, Section};
use crate::note::Notes;
use crate::pattern::{Pattern, of_regex};
use crate::values;

/// Something that a route can ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Atom {
    /// A name, or `*.` and a domain.
    Host(String),
    Path(Pattern),
    /// One of these.
    Methods(Vec<String>),
    /// In one of these networks.
    Clients(Vec<String>),
    /// A field, with this value or with any.
    Header(String, String),
    /// The connection has TLS.
    Tls,
    /// It came to this port.
    Port(u16),
    Always,
    Never,
}

/// One of its atoms holds; or none of them, if it is negated. `None`: it has no counterpart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub any: Option<Vec<Atom>>,
    pub is_negated: bool,
    /// As written.
    pub text: String,
}

/// One of its lists holds; within a list all do.
pub(super) type Condition = Vec<Vec<Literal>>;

/// The condition after `if` or `unless`; `None` without either. `words`: from there on.
pub(super) fn condition(
    words: &[String],
    section: &Section,
    config: &Config<'_>,
    notes: &mut Notes,
    line: &Line,
) -> Option<Condition> {
    let keyword = words.first().filter(|word| matches!(word.as_str(), "if" | "unless"))?;
    let mut lists: Condition = vec![Vec::new()];
    let mut negated = false;
    let mut rest = &words[1..];
    while let Some(word) = rest.first() {
        rest = &rest[1..];
        match word.as_str() {
            "or" | "||" => lists.push(Vec::new()),
            "!" => negated = !negated,
            "{" | "!{" => {
                let end = rest.iter().position(|word| word == "}").unwrap_or(rest.len());
                let (inner, after) = rest.split_at(end);
                rest = after.get(1..).unwrap_or_default();
                let any = atoms(inner, config, notes, line);
                push(&mut lists, any, negated != (word == "!{"), inner.join(" "));
                negated = false;
            }
            name => {
                let (name, is_not) = name.strip_prefix('!').map_or((name, false), |name| (name, true));
                let any = named(name, section, config, notes, line);
                push(&mut lists, any, negated != is_not, name.to_owned());
                negated = false;
            }
        }
    }
    lists.retain(|list| !list.is_empty());
    Some(if keyword == "unless" { inverted(&lists) } else { lists })
}

fn push(lists: &mut Condition, any: Option<Vec<Atom>>, is_negated: bool, text: String) {
    if let Some(list) = lists.last_mut() {
        list.push(Literal { any, is_negated, text });
    }
}

/// None of the lists holds: of each, one literal does not. Far more lists than a person writes are cut.
fn inverted(lists: &Condition) -> Condition {
    const MOST: usize = 256;
    let mut out: Condition = vec![Vec::new()];
    for list in lists {
        let mut next = Vec::new();
        for known in &out {
            for literal in list {
                let mut longer = known.clone();
                longer.push(Literal { is_negated: !literal.is_negated, ..literal.clone() });
                next.push(longer);
            }
        }
        next.truncate(MOST);
        out = next;
    }
    out
}

/// An ACL by name: those of one name are alternatives.
fn named(
    name: &str,
    section: &Section,
    config: &Config<'_>,
    notes: &mut Notes,
    line: &Line,
) -> Option<Vec<Atom>> {
    let lines: Vec<_> =
        section.lines.iter().filter(|acl| acl.word(0) == "acl" && acl.word(1) == name).collect();
    if lines.is_empty() {
        return match name {
            "TRUE" | "HTTP" | "HTTP_1.1" | "REQ_CONTENT" => Some(vec![Atom::Always]),
            "FALSE" => Some(vec![Atom::Never]),
            "LOCALHOST" => Some(vec![Atom::Clients(vec!["127.0.0.0/8".into(), "::1".into()])]),
            "METH_GET" => Some(vec![Atom::Methods(vec!["GET".into(), "HEAD".into()])]),
            name => {
                let method = name.strip_prefix("METH_").filter(|method| values::is_token(method))?;
                Some(vec![Atom::Methods(vec![method.to_owned()])])
            }
        };
    }
    let mut all = Vec::new();
    for acl in lines {
        all.extend(atoms(&acl.words[2..], config, notes, line)?);
    }
    Some(all)
}

/// A fetch with its flags and values.
fn atoms(words: &[String], config: &Config<'_>, notes: &mut Notes, line: &Line) -> Option<Vec<Atom>> {
    let (fetch, rest) = words.split_first()?;
    let mut flags = Flags::default();
    let mut values: Vec<String> = Vec::new();
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-i" => flags.ignores_case = true,
            "-m" => flags.method = rest.next().cloned().unwrap_or_default(),
            "-f" => values.extend(file(rest.next()?, config, notes, line)?),
            "-n" | "-u" | "-M" => {}
            "--" => values.extend(rest.by_ref().cloned()),
            value => values.push(value.to_owned()),
        }
    }
    let (name, argument, converters) = split(fetch);
    // A host without its port, of old.
    let converters = converters.replace("field(1,:)", "host_only");
    for converter in converters.split(',').filter(|converter| !converter.is_empty()) {
        // These change nothing that routes compare.
        if !matches!(converter, "lower" | "host_only" | "url_dec" | "port_only") {
            return None;
        }
    }
    let is_host = argument.eq_ignore_ascii_case("host") || name.contains("sni");
    if flags.ignores_case && !is_host {
        notes.remark("paths and values of fields are compared with their case, also where HAProxy has -i");
    }
    let (base, suffix) = match name.rsplit_once('_') {
        Some((
            base,
            suffix @ ("beg" | "end" | "dom" | "reg" | "dir" | "sub" | "str" | "len" | "cnt" | "val"),
        )) if base != "req_len" => (base, suffix),
        _ => (name, ""),
    };
    let how = if suffix.is_empty() { flags.method.as_str() } else { suffix };
    match base {
        "hdr" | "req.hdr" | "req.fhdr" | "hdr_host" if argument.eq_ignore_ascii_case("host") => {
            hosts(how, &values)
        }
        "req.ssl_sni" | "req_ssl_sni" | "ssl_fc_sni" => hosts(how, &values),
        "hdr" | "req.hdr" | "req.fhdr" if values::is_token(argument) => headers(argument, how, &values),
        "path" | "url" | "uri" | "capture.req.uri" => paths(how, &values, notes),
        "method" if values.iter().all(|value| values::is_token(value)) => Some(vec![Atom::Methods(values)]),
        "src" => {
            let networks: Option<Vec<_>> = values.iter().map(|value| values::network(value)).collect();
            Some(vec![Atom::Clients(networks?)])
        }
        "ssl_fc" => Some(vec![Atom::Tls]),
        "dst_port" | "fc_dst_port" => {
            values.iter().map(|value| Some(Atom::Port(value.parse().ok()?))).collect()
        }
        "always_true" | "req_ssl_hello_type" | "req.ssl_hello_type" => Some(vec![Atom::Always]),
        "always_false" => Some(vec![Atom::Never]),
        _ => None,
    }
}

#[derive(Default)]
struct Flags {
    ignores_case: bool,
    method: String,
}

/// `name(argument),converters`.
fn split(fetch: &str) -> (&str, &str, &str) {
    match fetch.split_once('(') {
        Some((name, rest)) if !name.contains(',') => match rest.split_once(')') {
            Some((argument, converters)) => {
                (name, argument.split(',').next().unwrap_or_default(), converters.trim_start_matches(','))
            }
            None => (name, rest, ""),
        },
        _ => {
            let (name, converters) = fetch.split_once(',').unwrap_or((fetch, ""));
            (name, "", converters)
        }
    }
}

/// The lines of a file of patterns.
fn file(name: &str, config: &Config<'_>, notes: &mut Notes, line: &Line) -> Option<Vec<String>> {
    let path = config.folder.join(name);
    match config.reader.read(&path) {
        Ok(text) => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            Some(lines.map(str::to_owned).collect())
        }
        Err(_) => {
            notes.loss(
                &line.at,
                format!("-f {name}"),
                "the file cannot be read; import it where the file is",
            );
            None
        }
    }
}

fn hosts(how: &str, values: &[String]) -> Option<Vec<Atom>> {
    let mut atoms = Vec::new();
    for value in values {
        let value = value.to_ascii_lowercase();
        let value = value.split_once(':').map_or(value.as_str(), |(host, _)| host);
        let names = match how {
            "" | "str" => vec![value.to_owned()],
            "end" => match value.strip_prefix('.') {
                Some(domain) => vec![format!("*.{domain}")],
                None => vec![value.to_owned(), format!("*.{value}")],
            },
            "dom" => vec![value.to_owned(), format!("*.{value}")],
            "reg" => crate::nginx::host_of_regex(value)?,
            _ => return None,
        };
        for name in names {
            if !values::is_host(&name) {
                return None;
            }
            atoms.push(Atom::Host(name));
        }
    }
    Some(atoms)
}

fn headers(name: &str, how: &str, values: &[String]) -> Option<Vec<Atom>> {
    match how {
        "found" => Some(vec![Atom::Header(name.to_owned(), "*".to_owned())]),
        "" | "str" if !values.is_empty() && values.iter().all(|value| value != "*") => {
            Some(values.iter().map(|value| Atom::Header(name.to_owned(), value.clone())).collect())
        }
        _ => None,
    }
}

fn paths(how: &str, values: &[String], notes: &mut Notes) -> Option<Vec<Atom>> {
    let mut atoms = Vec::new();
    for value in values {
        match how {
            "" | "str" => atoms.push(Atom::Path(Pattern::exact(value)?)),
            "beg" => {
                notes.remark(match value.ends_with('/') && value != "/" {
                    true => "a path such as /app/* is also for /app itself, as path_beg /app/ is not",
                    false => {
                        "a path such as /app/* is for /app and what is below it, by whole segments: not for /apple, as path_beg /app is"
                    }
                });
                atoms.push(Atom::Path(Pattern::prefix(value)?));
            }
            "reg" => atoms.extend(of_regex(value)?.into_iter().map(Atom::Path)),
            _ => return None,
        }
    }
    Some(atoms)
}
