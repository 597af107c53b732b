//! `map $ssl_preread_server_name`: the servers of TLS connections by the requested server name.

use super::server::host_of_regex;
use crate::note::Notes;
use crate::values::{self, host_covers};
use weir_syntax::nginx::Directive;

/// Server names, their server or group, and the directive that maps them.
pub(super) type Targets<'a> = Vec<(Vec<String>, String, &'a Directive)>;

/// Returns the targets of a `proxy_pass` to a variable. Fails if the variable's value depends on more than the server
/// name, or if Weir would forward a name that nginx rejects.
pub(super) fn targets<'a>(
    pass: &'a Directive,
    block: &'a [Directive],
    notes: &mut Notes,
) -> Result<Targets<'a>, (&'a Directive, &'static str)> {
    let variable = pass.arg().trim_start_matches('$');
    let (variable, port) =
        variable.split_once(':').map_or((variable, None), |(name, port)| (name, Some(port)));
    let is_map = |map: &&Directive| {
        map.is("map")
            && map.arg() == "$ssl_preread_server_name"
            && map.args.get(1).is_some_and(|name| name.trim_start_matches('$') == variable)
    };
    let map = block.iter().find(is_map).filter(|_| pass.arg().starts_with('$'));
    let map = map.ok_or((pass, "the server depends on variables"))?;
    let (mut targets, mut rejected) = (Targets::new(), Vec::new());
    let has_masks = map.block().iter().any(|entry| entry.is("hostnames"));
    let is_entry = |entry: &&Directive| !entry.is("hostnames") && !entry.is("volatile");
    let (by_regex, by_name): (Vec<_>, Vec<_>) =
        map.block().iter().filter(is_entry).partition(|entry| entry.name.starts_with('~'));
    // nginx prefers a name to a regular expression, whatever their order, and the first of several expressions.
    for entry in by_name.into_iter().chain(by_regex) {
        let mut names = names(&entry.name.to_ascii_lowercase());
        if !has_masks && entry.name.starts_with(['.', '*']) {
            let message = "without `hostnames` in the map, no client has this name; remove it, or add `hostnames` there";
            notes.loss(&entry.at, entry.text(), message);
            continue;
        }
        if names.is_empty() {
            let message = "names are plain, or begin with `*.`; name each in the listener's `passthrough`";
            notes.loss(&entry.at, entry.text(), message);
            if entry.arg().is_empty() {
                return Err((entry, "it rejects names that no pattern expresses"));
            }
        }
        if entry.name.starts_with('~') {
            let known: Vec<_> =
                targets.iter().map(|(names, ..)| names).chain(&rejected).flatten().cloned().collect();
            names.retain(|name| !known.iter().any(|known| known != "*" && host_covers(known, name)));
        }
        // nginx closes connections for names with an empty value.
        match entry.arg() {
            "" => rejected.push(names),
            _ if names.is_empty() => {}
            target => {
                let target = port.map_or_else(|| target.to_owned(), |port| format!("{target}:{port}"));
                targets.push((names, target, entry));
            }
        }
    }
    let forwarded = || targets.iter().flat_map(|(names, ..)| names);
    let is_forwarded = |name: &String| forwarded().any(|known| known == "*" || host_covers(known, name));
    match rejected.iter().flatten().find(|name| *name != "*" && is_forwarded(name)) {
        Some(_) => Err((map, "it rejects names within those that it forwards")),
        None => Ok(targets),
    }
}

/// The names of an entry in the form of listeners; none without a counterpart.
fn names(entry: &str) -> Vec<String> {
    let names = match entry {
        "default" => vec!["*".to_owned()],
        regex if regex.starts_with('~') => {
            host_of_regex(regex[1..].trim_start_matches('*')).unwrap_or_default()
        }
        domain if domain.starts_with('.') => vec![domain[1..].to_owned(), format!("*{domain}")],
        name => vec![name.to_owned()],
    };
    names.into_iter().filter(|name| name == "*" || values::is_host(name)).collect()
}
