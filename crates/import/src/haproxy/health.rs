//! Health checks: `check` of servers, `option httpchk` and `http-check`.

use super::Config;
use super::backend::Params;
use crate::model::Table;
use crate::note::Notes;
use crate::values;
use weir_syntax::haproxy::Section;

/// The health check of a service for requests, named `name`.
pub(super) fn of_requests(
    section: &Section,
    config: &Config<'_>,
    first: &Params,
    name: &str,
    notes: &mut Notes,
) -> Table {
    let mut health = Table::default();
    if let Some(line) = config.find(section, &["option", "httpchk"]) {
        // `METHOD URI VERSION`, or a URI alone.
        let (method, path) = match (line.word(2), line.word(3)) {
            ("", _) => ("GET", "/"),
            (path, "") if path.starts_with('/') => ("GET", path),
            (method, path) => (method, path),
        };
        let sends = section.lines.iter().find(|line| line.begins(&["http-check", "send"]));
        let sent = |name: &str| sends?.after(name);
        let path = sent("uri").unwrap_or(path);
        let method = sent("meth").unwrap_or(method);
        if !matches!(method, "GET" | "HEAD" | "OPTIONS" | "") {
            notes.loss(
                &line.at,
                line.text(),
                "health checks are GET requests; give them a path that responds to GET",
            );
        } else if matches!(method, "HEAD" | "OPTIONS") {
            notes.remark(format!("service {name}: health checks are GET requests in place of {method}"));
        }
        let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
        health.text("path", if is_path { path } else { "/" });
        let old = line.words.iter().find_map(|word| word.split_once("Host:").map(|(_, host)| host.trim()));
        let new = sends.and_then(|line| {
            let mut pairs = line.words.windows(3).filter(|three| three[0] == "hdr");
            pairs.find(|three| three[1].eq_ignore_ascii_case("host")).map(|three| three[2].as_str())
        });
        let host = new.or(old).map(|host| host.lines().next().unwrap_or_default());
        if let Some(host) =
            host.filter(|host| !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            health.text("host", host);
        }
        expect(section, &mut health, notes);
    }
    times(section, config, first, &mut health);
    health
}

/// Translates the health check of a service for other protocols: each check opens a connection.
pub(super) fn of_connections(
    section: &Section,
    config: &Config<'_>,
    first: &Params,
    notes: &mut Notes,
) -> Table {
    if let Some(line) = config.find(section, &["option", "httpchk"]) {
        notes.loss(
            &line.at,
            line.text(),
            "a check of a service for TCP is a connection, with `ssl` a handshake",
        );
    }
    let mut health = Table::default();
    times(section, config, first, &mut health);
    health
}

/// The times and counts of checks.
fn times(section: &Section, config: &Config<'_>, first: &Params, health: &mut Table) {
    let inter = first.get("inter").and_then(|time| values::time(time, 1)).unwrap_or(2000);
    if let Some(text) = values::duration(inter) {
        health.text("every", text);
    }
    let timeout = config.find(section, &["timeout", "check"]).and_then(|line| values::time(line.word(2), 1));
    if let Some(text) = timeout.and_then(values::duration) {
        health.text("timeout", text);
    }
    for name in ["rise", "fall"] {
        if let Some(count) =
            first.get(name).and_then(|count| count.parse::<u32>().ok()).filter(|count| *count > 0)
        {
            health.number(name, count.into());
        }
    }
}

fn expect(section: &Section, health: &mut Table, notes: &mut Notes) {
    for line in section.lines.iter().filter(|line| line.begins(&["http-check", "expect"])) {
        let words: Vec<_> = line.words.iter().skip(2).map(String::as_str).collect();
        let status = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let of = |text: &str| text.parse::<u16>().ok().filter(|status| (100..=599).contains(status));
            of(first).zip(of(last)).filter(|(first, last)| first <= last).map(|_| text.to_owned())
        };
        let statuses: Option<Vec<_>> = match words[..] {
            ["status", list] => list.split(',').map(status).collect(),
            ["rstatus", regex] => class_of(regex).map(|class| vec![class]),
            _ => None,
        };
        match statuses {
            Some(statuses) => health.texts("status", statuses),
            None => {
                notes.loss(
                    &line.at,
                    line.text(),
                    "health checks look at the status alone; set health.status",
                );
            }
        }
    }
}

/// The status classes of an expression: `^2`, `^[23]..`, `(2|3)[0-9][0-9]`.
fn class_of(regex: &str) -> Option<String> {
    let inner = regex.trim_start_matches('^').trim_end_matches('$');
    let inner = ["[0-9][0-9]", "..", "\\d\\d", "[0-9]{2}"]
        .iter()
        .find_map(|tail| inner.strip_suffix(tail))
        .unwrap_or(inner);
    match inner.trim_matches(['(', ')', '[', ']']) {
        "2" => Some("200-299".into()),
        "3" => Some("300-399".into()),
        "23" | "2|3" | "2-3" => Some("200-399".into()),
        "2-4" | "234" | "2|3|4" => Some("200-499".into()),
        _ => None,
    }
}
