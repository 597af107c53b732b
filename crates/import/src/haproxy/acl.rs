//! Conditions: named and anonymous ACLs as route conditions.

use super::Config;
use crate::note::Notes;
use crate::pattern::Pattern;
use crate::regex::{around_regex, of_regex};
use crate::values;
use weir_syntax::haproxy::{Line, Section};

/// A condition that a route can express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Atom {
    /// A name, or `*.` and a domain.
    Host(String),
    Path(Pattern),
    /// Below a path, excluding the path itself.
    Under(Pattern),
    /// One of these methods.
    Methods(Vec<String>),
    /// A client address in one of these networks.
    Clients(Vec<String>),
    /// A field with this value, or with any value (`*`).
    Header(String, String),
    /// The connection uses TLS.
    Tls,
    /// The connection's local port.
    Port(u16),
    Always,
    Never,
}

/// A condition's translation: exact, or bounded from above and below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// The closest translation, a list of alternatives. It is exact if it equals `most`. `None`: no counterpart.
    pub any: Option<Vec<Atom>>,
    /// The upper bound: if the condition holds, at least one of these atoms holds. `None`: unbounded.
    pub most: Option<Vec<Atom>>,
    /// The lower bound: if at least one of these atoms holds, the condition holds.
    pub least: Vec<Atom>,
}

/// A condition, possibly negated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub means: Meaning,
    pub is_negated: bool,
    /// The condition as written.
    pub text: String,
    /// The condition as written, with named ACLs expanded.
    pub asks: String,
}

impl Literal {
    /// Creates a literal for a condition without a counterpart.
    pub(super) fn unknown(text: &str) -> Self {
        let [text, asks] = [text, text].map(str::to_owned);
        Self { means: Meaning::default(), is_negated: false, text, asks }
    }
}

impl Meaning {
    pub(super) fn exact(atoms: Vec<Atom>) -> Self {
        Self { any: Some(atoms.clone()), most: Some(atoms.clone()), least: atoms }
    }

    /// The meaning of a condition that holds if one of these atoms holds, and possibly in other cases.
    fn at_least(atoms: Option<Vec<Atom>>) -> Self {
        Self { least: atoms.clone().unwrap_or_default(), any: atoms, most: None }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.any.is_some() && self.any == self.most
    }

    /// The meaning of a condition that holds if either of the two holds.
    fn or(self, other: Self) -> Self {
        let both = |a: Option<Vec<Atom>>, b: Option<Vec<Atom>>| a.zip(b).map(|(a, b)| [a, b].concat());
        Self {
            any: both(self.any, other.any),
            most: both(self.most, other.most),
            least: [self.least, other.least].concat(),
        }
    }
}

/// A disjunction of conjunctions.
pub(super) type Condition = Vec<Vec<Literal>>;

/// Parses the condition of `if` or `unless`, the first of `words`; `None` without either.
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
                let means = meaning(inner, config, notes, line);
                push(&mut lists, means, negated != (word == "!{"), inner.join(" "), inner.join(" "));
                negated = false;
            }
            name => {
                let (name, is_not) = name.strip_prefix('!').map_or((name, false), |name| (name, true));
                let means = named(name, section, config, notes, line);
                let acls = section.lines.iter().filter(|acl| acl.word(0) == "acl" && acl.word(1) == name);
                let asks: Vec<_> = acls.map(Line::text).collect();
                push(&mut lists, means, negated != is_not, name.to_owned(), asks.join(" "));
                negated = false;
            }
        }
    }
    lists.retain(|list| !list.is_empty());
    Some(if keyword == "unless" { inverted(&lists) } else { lists })
}

fn push(lists: &mut Condition, means: Meaning, is_negated: bool, text: String, asks: String) {
    if let Some(list) = lists.last_mut() {
        list.push(Literal { means, is_negated, text, asks });
    }
}

/// The negation of a condition: in each list, at least one literal is false. With too many combinations, it has no
/// counterpart.
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
        if next.len() > MOST {
            return vec![vec![Literal::unknown("unless")]];
        }
        out = next;
    }
    out
}

/// Translates a named ACL. Several lines with one name are alternatives.
fn named(name: &str, section: &Section, config: &Config<'_>, notes: &mut Notes, line: &Line) -> Meaning {
    let lines = section.lines.iter().filter(|acl| acl.word(0) == "acl" && acl.word(1) == name);
    let meanings = lines.map(|acl| meaning(&acl.words[2..], config, notes, line));
    if let Some(found) = meanings.reduce(Meaning::or) {
        return found;
    }
    let atom = match name {
        "TRUE" | "HTTP" | "REQ_CONTENT" | "WAIT_END" => Atom::Always,
        "FALSE" => Atom::Never,
        "LOCALHOST" => Atom::Clients(vec!["127.0.0.0/8".into(), "::1".into()]),
        "METH_GET" => Atom::Methods(vec!["GET".into(), "HEAD".into()]),
        name => match name.strip_prefix("METH_").filter(|method| values::is_token(method)) {
            Some(method) => Atom::Methods(vec![method.to_owned()]),
            None => return Meaning::default(),
        },
    };
    Meaning::exact(vec![atom])
}

/// Translates a fetch with its flags and values.
fn meaning(words: &[String], config: &Config<'_>, notes: &mut Notes, line: &Line) -> Meaning {
    let Some((fetch, rest)) = words.split_first() else { return Meaning::default() };
    let mut flags = Flags::default();
    let mut values: Vec<String> = Vec::new();
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-i" => flags.ignores_case = true,
            "-m" => flags.method = rest.next().cloned().unwrap_or_default(),
            "-f" => match rest.next().and_then(|name| file(name, config, notes, line)) {
                Some(lines) => values.extend(lines),
                None => return Meaning::default(),
            },
            "-n" | "-M" => {}
            "-u" => drop(rest.next()),
            "--" => values.extend(rest.by_ref().cloned()),
            value => values.push(value.to_owned()),
        }
    }
    let (name, argument, converters) = split(fetch);
    // Older configurations strip the port from a host in this way.
    let converters = converters.replace("field(1,:)", "host_only");
    for converter in converters.split(',').filter(|converter| !converter.is_empty()) {
        match converter {
            "lower" => flags.ignores_case = true,
            // Routes compare the same value without these converters.
            "host_only" | "url_dec" | "port_only" => {}
            _ => return Meaning::default(),
        }
    }
    let (base, suffix) = match name.rsplit_once('_') {
        Some((
            base,
            suffix @ ("beg" | "end" | "dom" | "reg" | "dir" | "sub" | "str" | "len" | "cnt" | "val"),
        )) if base != "req_len" => (base, suffix),
        _ => (name, ""),
    };
    let how = if suffix.is_empty() { flags.method.as_str() } else { suffix };
    let is_plain = matches!(how, "" | "str" | "ip" | "bool" | "int");
    let exact = |atoms: Option<Vec<Atom>>| atoms.map_or_else(Meaning::default, Meaning::exact);
    match base {
        "hdr" | "req.hdr" | "req.fhdr" | "hdr_host" if argument.eq_ignore_ascii_case("host") => {
            hosts(how, &values)
        }
        // A client may request another host than its SNI, so the SNI gives no upper bound.
        "req.ssl_sni" | "req_ssl_sni" => hosts(how, &values),
        "ssl_fc_sni" => Meaning { any: hosts(how, &values).any, ..Meaning::default() },
        "hdr" | "req.hdr" | "req.fhdr" if values::is_token(argument) => {
            headers(argument, how, &values, flags.ignores_case)
        }
        "path" | "url" | "uri" | "capture.req.uri" => paths(how, &values, flags.ignores_case),
        "method" if is_plain && values.iter().all(|value| values::is_token(value)) => {
            Meaning::exact(vec![Atom::Methods(values)])
        }
        "src" if is_plain => {
            let networks: Option<Vec<_>> = values.iter().map(|value| values::network(value)).collect();
            exact(networks.map(|networks| vec![Atom::Clients(networks)]))
        }
        "ssl_fc" => Meaning::exact(vec![Atom::Tls]),
        "dst_port" | "fc_dst_port" if is_plain => {
            exact(values.iter().map(|value| Some(Atom::Port(value.parse().ok()?))).collect())
        }
        "always_true" => Meaning::exact(vec![Atom::Always]),
        // Passthrough rejects connections that do not start with a ClientHello, which is type 1.
        "req_ssl_hello_type" | "req.ssl_hello_type" => match &values[..] {
            [kind] if kind == "1" => Meaning::exact(vec![Atom::Always]),
            [kind] if kind == "0" || kind == "2" => Meaning::exact(vec![Atom::Never]),
            _ => Meaning::default(),
        },
        "always_false" => Meaning::exact(vec![Atom::Never]),
        _ => Meaning::default(),
    }
}

#[derive(Default)]
struct Flags {
    ignores_case: bool,
    method: String,
}

/// Splits `name(argument),converters`.
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

/// The lines of a pattern file.
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

fn hosts(how: &str, values: &[String]) -> Meaning {
    let (mut atoms, mut is_exact) = (Vec::new(), true);
    for value in values {
        let value = value.to_ascii_lowercase();
        let value = value.split_once(':').map_or(value.as_str(), |(host, _)| host);
        let names = match how {
            "" | "str" => Some(vec![value.to_owned()]),
            "end" if value.starts_with('.') => Some(vec![format!("*{value}")]),
            // `hdr_end` and `hdr_dom` may match more than the name and its subdomains.
            "end" | "dom" => {
                is_exact = false;
                Some(vec![value.to_owned(), format!("*.{value}")])
            }
            "reg" => {
                is_exact &= !value.contains("[^");
                crate::nginx::host_of_regex(value)
            }
            _ => None,
        };
        match names.filter(|names| names.iter().all(|name| values::is_host(name))) {
            Some(names) => atoms.extend(names.into_iter().map(Atom::Host)),
            None => return Meaning::at_least(None),
        }
    }
    match how {
        _ if is_exact => Meaning::exact(atoms),
        "reg" => Meaning { least: Vec::new(), ..Meaning::exact(atoms) },
        _ => Meaning::at_least(Some(atoms)),
    }
}

fn headers(name: &str, how: &str, values: &[String], ignores_case: bool) -> Meaning {
    let there = vec![Atom::Header(name.to_owned(), "*".to_owned())];
    match how {
        "found" => Meaning::exact(there),
        "" | "str" if !values.is_empty() && values.iter().all(|value| value != "*") => {
            let own: Vec<_> =
                values.iter().map(|value| Atom::Header(name.to_owned(), value.clone())).collect();
            match ignores_case {
                true => Meaning { any: Some(own.clone()), most: Some(there), least: own },
                false => Meaning::exact(own),
            }
        }
        // These comparisons do not match an absent field, but a comparison with a number or a length may.
        "beg" | "dir" | "dom" | "end" | "reg" | "sub" | "bool" => {
            Meaning { any: None, most: Some(there), least: Vec::new() }
        }
        _ => Meaning::default(),
    }
}

fn paths(how: &str, values: &[String], ignores_case: bool) -> Meaning {
    // In HAProxy, a prefix with a trailing slash does not match the path without it.
    let atom = |pattern: Pattern| match pattern {
        Pattern::Below(ref path) if !path.is_empty() => Atom::Under(pattern),
        pattern => Atom::Path(pattern),
    };
    let mut all = Meaning::exact(Vec::new());
    for value in values {
        let (own, most) = match how {
            "" | "str" => (Pattern::exact(value).map(|own| vec![own]), None),
            "beg" => (Pattern::prefix(value).map(|own| vec![own]), None),
            "reg" => (of_regex(value), Some(around_regex(value, ignores_case))),
            _ => return Meaning::default(),
        };
        let in_any_case = |own: &Vec<Pattern>| own.iter().flat_map(|own| own.in_any_case().0).collect();
        let most = match (&own, most) {
            (Some(own), _) if ignores_case => Some(in_any_case(own)),
            (Some(own), _) => Some(own.clone()),
            (None, most) => most,
        };
        // An expression with a trailing slash may match the path without it.
        let is_exact = own.is_some() && !ignores_case;
        let around = |patterns: Vec<Pattern>| patterns.into_iter().map(Atom::Path).collect::<Vec<_>>();
        let least: Vec<_> = own.clone().unwrap_or_default().into_iter().map(atom).collect();
        let own = own.map(|own| if how == "reg" { around(own) } else { least.clone() });
        all =
            all.or(Meaning { least, most: if is_exact { own.clone() } else { most.map(around) }, any: own });
    }
    all
}
