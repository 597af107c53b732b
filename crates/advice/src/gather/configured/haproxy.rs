//! Facts from an HAProxy configuration.

use super::{bytes, is_address, seconds};
use crate::config::place;
use crate::fact::Facts;
use weir_syntax::haproxy::{Line, Section};

pub(super) fn add(facts: &mut Facts, sections: &[Section]) {
    for section in sections {
        for line in &section.lines {
            add_line(facts, line);
        }
    }
    server_names(facts, sections);
    let lines = || sections.iter().flat_map(|section| &section.lines);
    let has_tls_cache = !lines().any(|line| line.begins(&["tune.ssl.cachesize", "0"]));
    let mut binds = lines().filter(|line| is_tls_bind(line));
    if let Some(bind) = binds.find(|line| line.has("no-tls-tickets")).filter(|_| !has_tls_cache) {
        facts.add_no_sessions(&place(&bind.at));
    }
}

/// Counts servers that are named, use TLS and get no SNI. The SNI of health checks does not apply to requests.
fn server_names(facts: &mut Facts, sections: &[Section]) {
    let mut nameless = Vec::new();
    for section in sections {
        let lines = || section.lines.iter();
        let has_default = |word: &str| lines().any(|line| line.word(0) == "default-server" && line.has(word));
        let is_nameless = |line: &&Line| {
            line.word(0) == "server"
                && (line.has("ssl") || has_default("ssl"))
                && !(line.has("sni") || has_default("sni"))
                && !is_address(line.word(2))
        };
        nameless.extend(lines().filter(is_nameless));
    }
    if let Some(first) = nameless.first() {
        facts.add("config.upstreams_without_sni", nameless.len() as f64, &place(&first.at));
    }
}

fn add_line(facts: &mut Facts, line: &Line) {
    let place = &place(&line.at);
    match (line.word(0), line.word(1)) {
        ("option", "httpclose" | "forceclose") => facts.add_keep_alive(0.0, place),
        ("option", "http-server-close") => {
            facts.add_upstream_closed(&format!("{place}, http-server-close"));
        }
        ("http-reuse", "never") => facts.add_upstream_closed(&format!("{place}, http-reuse never")),
        ("timeout", "http-keep-alive") => {
            if let Some(seconds) = seconds(line.word(2), 1) {
                facts.add_keep_alive(seconds, place);
            }
        }
        ("nbthread", threads) => facts.add_known("process.workers", threads.parse::<f64>().ok(), place),
        ("tune.ssl.maxrecord", size) => {
            facts.add_known("config.record_bytes", bytes(size).filter(|size| *size > 0.0), place);
        }
        ("bind", _) if is_tls_bind(line) => {
            if let Some(curves) = line.after("curves").or(line.after("ecdhe")) {
                facts.add_curves(curves, place);
            }
            let newest = line.after("ssl-max-ver").unwrap_or("TLSv1.3");
            let version = newest.strip_prefix("TLSv").filter(|_| !line.has("no-tlsv13")).unwrap_or("1.2");
            facts.add("tls.offers_1_3", version == "1.3", place);
            facts.add("tls.version", version, place);
        }
        ("server" | "default-server", _) if line.has("no-ssl-reuse") => {
            facts.add("config.upstream_resumption_off", 1.0, place);
        }
        _ => {}
    }
}

fn is_tls_bind(line: &Line) -> bool {
    line.word(0) == "bind" && line.has("ssl")
}
