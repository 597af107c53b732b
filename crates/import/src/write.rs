//! Prints the translated document as TOML.

use crate::model::{
    Action, Destination, Document, Edits, Handler, Listener, Route, Server, Service, Share, Table, Tcp, Value,
};
use crate::note::{Notes, one_line};
use crate::values;
use std::fmt::Write as _;
use toml_writer::{ToTomlKey as _, ToTomlValue as _, TomlKeyBuilder, TomlStringBuilder};

/// Prints the configuration, with the losses as comments at its top.
pub(crate) fn document(document: &Document, notes: &Notes, file: &str) -> String {
    let mut out = String::new();
    head(notes, file, &mut out);
    if let Some(workers) = document.workers {
        section("", &["workers"], &mut out);
        key("workers", &Value::Number(workers), &mut out);
    }
    for listener in &document.listeners {
        write_listener(listener, &mut out);
    }
    for certificate in &document.certificates {
        section("[[certificate]]", &[&certificate.from], &mut out);
        if let Some(name) = &certificate.name {
            key("name", &Value::Text(name.clone()), &mut out);
        }
        key("chain", &Value::Text(certificate.chain.clone()), &mut out);
        key("key", &Value::Text(certificate.key.clone()), &mut out);
        if let Some(ocsp) = &certificate.ocsp {
            key("ocsp", &Value::Text(ocsp.clone()), &mut out);
        }
    }
    for service in &document.services {
        write_service(service, &mut out);
    }
    for route in &document.routes {
        write_route(route, &mut out);
    }
    let mut pages = Table::default();
    for (status, page) in &document.error_pages {
        pages.text(&status.to_string(), page.clone());
    }
    table("[error_pages]", &pages, &mut out);
    let mut tracing = Table::default();
    if let Some(name) = &document.request_id {
        tracing.text("request_id", name.clone());
    }
    table("[tracing]", &tracing, &mut out);
    table("[log]", &document.log, &mut out);
    table("[limits]", &document.limits, &mut out);
    table("[timeouts]", &document.timeouts.table(), &mut out);
    out
}

fn head(notes: &Notes, file: &str, out: &mut String) {
    comment(&format!("Weir's configuration, translated from {file} by `weir import`."), out);
    comment("Next: `weir check --config FILE --explain`, then `weir serve --config FILE`.", out);
    if !notes.losses().is_empty() {
        let _ = writeln!(out, "#");
        comment(&format!("Not translated ({}):", notes.losses().len()), out);
        for loss in notes.losses() {
            comment(&format!("  {loss}"), out);
        }
    }
    if !notes.remarks.is_empty() {
        let _ = writeln!(out, "#");
        comment("Different, and left so:", out);
        for remark in &notes.remarks {
            comment(&format!("- {remark}"), out);
        }
    }
    if !notes.quiet.is_empty() {
        let _ = writeln!(out, "#");
        let names: Vec<_> = notes.quiet.iter().map(String::as_str).collect();
        comment(&format!("Needs no counterpart: {}.", names.join(", ")), out);
    }
}

fn write_listener(listener: &Listener, out: &mut String) {
    let mut comments: Vec<&str> = listener.notes.iter().map(String::as_str).collect();
    comments.push(&listener.from);
    section(&format!("[listener.{}]", listener.name), &comments, out);
    key("bind", &Value::texts(listener.bind.clone()), out);
    keys(&listener.settings, out);
    if !listener.passthrough.is_empty() {
        out.push_str("passthrough = [\n");
        for passthrough in &listener.passthrough {
            let mut entry = Table::default();
            entry.texts("name", passthrough.names.clone());
            entry.text("service", passthrough.service.clone());
            let _ = writeln!(out, "    {},", inline(&Value::Table(entry)));
        }
        out.push_str("]\n");
    }
    if let Some(Tcp { service, idle_ms }) = &listener.tcp {
        let mut table = Table::default();
        table.text("service", service.clone());
        if let Some(idle) = idle_ms.and_then(values::duration) {
            table.text("idle", idle);
        }
        key("tcp", &Value::Table(table), out);
    }
    match &listener.tls {
        Some(tls) if tls.is_empty() => out.push_str("tls = {}\n"),
        Some(tls) => dotted("tls", tls, out),
        None => {}
    }
}

fn write_service(service: &Service, out: &mut String) {
    let mut comments: Vec<&str> = service.notes.iter().map(String::as_str).collect();
    comments.push(&service.from);
    section(&format!("[service.{}]", service.name), &comments, out);
    let values: Vec<_> = service.servers.iter().map(server).collect();
    match &values[..] {
        [Value::Text(url)] => key("servers", &Value::Text(url.clone()), out),
        values => {
            out.push_str("servers = [\n");
            for value in values {
                let _ = writeln!(out, "    {},", inline(value));
            }
            out.push_str("]\n");
        }
    }
    for (name, value) in &service.settings.0 {
        match value {
            Value::Table(table) => dotted(name, table, out),
            value => key(name, value, out),
        }
    }
}

fn server(server: &Server) -> Value {
    let Server { url, weight, backup } = server;
    if *weight == 1 && !backup {
        return Value::Text(url.clone());
    }
    let mut table = Table::default();
    table.text("url", url.clone());
    if *weight != 1 {
        table.number("weight", *weight);
    }
    if *backup {
        table.flag("backup", true);
    }
    Value::Table(table)
}

fn share(share: &Share) -> Value {
    let mut table = Table::default();
    match &share.to {
        Destination::Service(name) => table.text("name", name.clone()),
        Destination::Status(status) => table.number("status", *status),
    }
    table.number("weight", share.weight);
    if let Some(host) = &share.host {
        let mut set = Table::default();
        set.text("Host", host.clone());
        table.set("request_headers", Value::Table(Table([("set".to_owned(), Value::Table(set))].into())));
    }
    Value::Table(table)
}

fn write_route(route: &Route, out: &mut String) {
    let Route { host, path, when, then, from } = route;
    let Handler { action, strip_prefix, add_prefix, request, response, max_body, rate, timeouts, notes } =
        then;
    let mut comments: Vec<&str> = notes.iter().map(String::as_str).collect();
    comments.push(from);
    section("[[route]]", &comments, out);
    for (name, values) in [
        ("listener", &when.listener),
        ("host", host),
        ("path", path),
        ("method", &when.method),
        ("client", &when.client),
    ] {
        if !values.is_empty() {
            key(name, &Value::texts(values.clone()), out);
        }
    }
    if !when.headers.is_empty() {
        key("headers", &Value::Table(map(&when.headers)), out);
    }
    match action {
        Action::Service(name) => key("service", &Value::Text(name.clone()), out),
        Action::Split { shares, sticky } => {
            out.push_str("service = [\n");
            for one in shares {
                let _ = writeln!(out, "    {},", inline(&share(one)));
            }
            out.push_str("]\n");
            if let Some(cookie) = sticky {
                key("sticky", &Value::Text(cookie.clone()), out);
            }
        }
        Action::Redirect { to, status } => {
            let mut table = Table::default();
            table.text("to", to.clone());
            table.number("status", *status);
            key("redirect", &Value::Table(table), out);
        }
        Action::Respond { status, body, content_type } => {
            let mut table = Table::default();
            table.number("status", *status);
            for (name, text) in [("body", body), ("content_type", content_type)] {
                if let Some(text) = text {
                    table.text(name, text.clone());
                }
            }
            key("respond", &Value::Table(table), out);
        }
    }
    for (name, prefix) in [("strip_prefix", strip_prefix), ("add_prefix", add_prefix)] {
        if let Some(prefix) = prefix {
            key(name, &Value::Text(prefix.clone()), out);
        }
    }
    edits("request_headers", request, out);
    edits("response_headers", response, out);
    if let Some(bytes) = max_body {
        key("max_body", &Value::Text(values::size(*bytes)), out);
    }
    if let Some(rate) = rate {
        let mut table = Table::default();
        table.number("requests", rate.requests);
        table.texts("per", values::duration(rate.per_ms));
        key("rate", &Value::Table(table), out);
    }
    dotted("timeouts", timeouts, out);
}

fn edits(name: &str, edits: &Edits, out: &mut String) {
    for (kind, fields) in [("set", &edits.set), ("add", &edits.add)] {
        if !fields.is_empty() {
            key(&format!("{name}.{kind}"), &Value::Table(map(fields)), out);
        }
    }
    if !edits.remove.is_empty() {
        key(&format!("{name}.remove"), &Value::texts(edits.remove.clone()), out);
    }
}

fn map(fields: &std::collections::BTreeMap<String, String>) -> Table {
    Table(fields.iter().map(|(name, value)| (name.clone(), Value::Text(value.clone()))).collect())
}

/// Prints an empty line, comments and a header.
fn section(header: &str, comments: &[&str], out: &mut String) {
    out.push('\n');
    for text in comments.iter().filter(|text| !text.is_empty() && !(header.is_empty())) {
        comment(text, out);
    }
    if !header.is_empty() {
        let _ = writeln!(out, "{header}");
    }
}

fn table(header: &str, table: &Table, out: &mut String) {
    if !table.is_empty() {
        section(header, &[], out);
        keys(table, out);
    }
}

fn keys(table: &Table, out: &mut String) {
    for (name, value) in &table.0 {
        key(name, value, out);
    }
}

fn dotted(prefix: &str, table: &Table, out: &mut String) {
    for (name, value) in &table.0 {
        key(&format!("{prefix}.{name}"), value, out);
    }
}

fn comment(text: &str, out: &mut String) {
    let _ = writeln!(out, "# {}", one_line(text));
}

/// Prints a key with its value. `name` may be dotted; callers quote it where necessary.
fn key(name: &str, value: &Value, out: &mut String) {
    let _ = writeln!(out, "{name} = {}", inline(value));
}

fn inline(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(&text.replace("${", LITERAL)),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::List(values) => {
            let values: Vec<_> = values.iter().map(inline).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Table(Table(entries)) => {
            let entries: Vec<_> =
                entries.iter().map(|(name, value)| format!("{} = {}", bare(name), inline(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// Writes a key, quoted if necessary.
fn bare(name: &str) -> String {
    let key = TomlKeyBuilder::new(name);
    key.as_unquoted().unwrap_or_else(|| key.as_basic()).to_toml_key()
}

/// An escaped `${`. In values, `${` starts a reference to an environment variable; in keys it does not.
const LITERAL: &str = "$${";

/// Writes a TOML basic string.
fn quoted(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a\"b\\c\n\u{7}é"), "\"a\\\"b\\\\c\\n\\u0007é\"");
        assert_eq!(bare("X-A"), "X-A");
        assert_eq!(bare("a b"), "\"a b\"");
    }

    #[test]
    fn values_name_no_variables_of_the_environment() {
        let text = |text: &str| Value::Text(text.to_owned());
        let table = Value::Table(Table([("${A}".to_owned(), text("${A}"))].into()));
        for (value, expected) in [
            (text("${A}"), r#""$${A}""#),
            (text("a ${A:-b} ${"), r#""a $${A:-b} $${""#),
            (text("$${A}"), r#""$$${A}""#),
            (text("$A {b} $"), r#""$A {b} $""#),
            (Value::texts(vec!["${A}".to_owned(), "b".to_owned()]), r#"["$${A}", "b"]"#),
            (table, r#"{ "${A}" = "$${A}" }"#),
        ] {
            assert_eq!(inline(&value), expected);
        }
    }
}
