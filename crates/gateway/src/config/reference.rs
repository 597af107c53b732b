//! The tables of docs/gateway/configuration.md, generated from the schema.

use super::schema::described;
use super::schema::tables::{Table, tables};
use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;

const REWRITE: &str = "WEIR_REWRITE=1 cargo test -p weir-gateway --lib the_reference_is_generated";

/// Compares the page with its generated tables, or rewrites it.
#[test]
fn the_reference_is_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateway/configuration.md");
    let page = fs::read_to_string(&path).unwrap();
    let schema = described();
    let generated = Page::new(&page, tables(&schema)).generated();
    if env::var_os("WEIR_REWRITE").is_some() {
        fs::write(&path, generated).unwrap();
        return;
    }
    let differing = page.lines().zip(generated.lines()).find(|(old, new)| old != new);
    assert!(
        page == generated,
        "docs/gateway/configuration.md is out of date: run `{REWRITE}`\n{differing:#?}"
    );
}

/// The line before a generated table, such as `<!-- keys of listener.* -->`.
const BEGIN: &str = "<!-- keys of ";
/// The line before a bare list of keys, which another section describes.
const NAMES: &str = "<!-- names of ";
/// The name of the top-level table, whose path is empty.
const FILE: &str = "the file";
/// The line after a generated table or list.
const END: &str = "<!-- end of keys -->";

struct Page<'a> {
    text: &'a str,
    tables: BTreeMap<String, Table<'a>>,
    /// The anchors of sections, by the path of their table.
    sections: BTreeMap<&'a str, String>,
}

impl<'a> Page<'a> {
    fn new(text: &'a str, tables: BTreeMap<String, Table<'a>>) -> Self {
        let (mut sections, mut heading) = (BTreeMap::new(), "");
        for line in text.lines() {
            heading = line.strip_prefix("## ").unwrap_or(heading);
            for path in paths(line) {
                assert!(tables.contains_key(path), "unknown table `{path}`");
                sections.insert(path, anchor(heading));
            }
        }
        Self { text, tables, sections }
    }

    /// The page with all tables generated anew.
    fn generated(&self) -> String {
        let (mut page, mut is_old) = (String::new(), false);
        for line in self.text.lines() {
            is_old &= line != END;
            if is_old {
                continue;
            }
            page.push_str(line);
            page.push('\n');
            if let Some(path) = paths(line).first() {
                is_old = true;
                page.push_str(&match line.starts_with(NAMES) {
                    true => self.names(path),
                    false => self.table(path, paths(line).len() == 1),
                });
            }
        }
        assert!(!is_old, "missing `{END}`");
        page
    }

    fn names(&self, path: &str) -> String {
        let names: Vec<_> = self.tables[path].keys.iter().map(|key| format!("`{key}`")).collect();
        format!("\n{}\n\n", names.join(", "))
    }

    /// Returns the rows of a table of the page. With `is_only`, the section describes only this table, so the table's
    /// name precedes the keys, as in `limits.head`.
    fn table(&self, path: &str, is_only: bool) -> String {
        let prefix = if is_only && !path.contains('*') && !path.is_empty() { path } else { "" };
        let mut rows = vec!["", "| key | type | default | meaning |", "| --- | --- | --- | --- |"]
            .into_iter()
            .map(str::to_owned)
            .collect();
        self.rows(path, prefix, &mut rows);
        rows.push(String::new());
        rows.join("\n") + "\n"
    }

    /// Adds a row for each key of a table and of its inner tables.
    fn rows(&self, path: &str, prefix: &str, rows: &mut Vec<String>) {
        let joined = |before: &str, key: &str| match before {
            "" => key.to_owned(),
            before => format!("{before}.{key}"),
        };
        let table = &self.tables[path];
        for key in &table.keys {
            let (name, inner) = (joined(prefix, key), joined(path, key));
            let inner =
                [inner.clone(), format!("{inner}.*")].into_iter().find(|it| self.tables.contains_key(it));
            let section = inner.as_deref().and_then(|inner| self.sections.get(inner));
            let value = &table.schema["properties"][key];
            let mut meaning = meaning(value);
            if let Some(anchor) = section {
                meaning.push_str(&format!(" [Its keys](#{anchor})."));
            }
            let is_required =
                table.schema["required"].as_array().is_some_and(|all| all.contains(&key.as_str().into()));
            let default = if is_required { "required".to_owned() } else { default(value) };
            rows.push(format!("| `{name}` | {} | {default} | {meaning} |", kind(value)));
            if let (Some(inner), None) = (inner, section) {
                self.rows(&inner, &name, rows);
            }
        }
    }
}

/// The paths of the tables that a marker line of the page names.
fn paths(line: &str) -> Vec<&str> {
    let named = [BEGIN, NAMES]
        .iter()
        .find_map(|begin| line.strip_prefix(begin))
        .and_then(|rest| rest.strip_suffix(" -->"));
    let names = named.into_iter().flat_map(|names| names.split(" and "));
    names.map(|name| if name == FILE { "" } else { name }).collect()
}

/// The anchor of a heading, as GitHub forms it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Describes the type of a key's value.
fn kind(schema: &Value) -> String {
    if let Some(title) = schema["title"].as_str() {
        return title.to_owned();
    }
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let (last, others) = names.split_last().expect("an enum has a value");
        return if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) };
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let (lists, others): (Vec<_>, Vec<_>) = choices.iter().partition(|choice| choice["type"] == "array");
        let others: Vec<_> = others.into_iter().map(kind).collect();
        let list = if lists.is_empty() { "" } else { "; or a list" };
        return format!("{}{list}", others.join(", or "));
    }
    let end = |name: &str| schema[name].as_f64();
    let range = match (end("minimum"), end("maximum")) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) if least > 0.0 => format!(", at least {least}"),
        _ => String::new(),
    };
    match schema["type"].as_str() {
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => format!("whole number{range}"),
        Some("number") => format!("number{range}"),
        Some("array") => format!("list: {}", kind(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => match &schema["additionalProperties"]
        {
            inner if inner["properties"].is_object() => "named tables".to_owned(),
            inner => format!("table: {} by name", kind(inner)),
        },
        Some("object") => "table".to_owned(),
        Some(other) => other.to_owned(),
        None => panic!("a schema without a type: {schema}"),
    }
}

/// The meaning of a key, without its default, and with the meanings of its enum values.
fn meaning(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    let mut meaning = text.split_once(" Default: ").map_or(text, |(meaning, _)| meaning).to_owned();
    for choice in std::iter::once(schema).chain(schema["anyOf"].as_array().into_iter().flatten()) {
        let meanings = choice["x-taplo"]["docs"]["enumValues"].as_array();
        for (name, text) in
            choice["enum"].as_array().into_iter().flatten().zip(meanings.into_iter().flatten())
        {
            let text = text.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            meaning.push_str(&format!(" `{name}`: {}.", text.trim_end_matches('.')));
        }
    }
    // An unescaped bar would end the table cell.
    meaning.replace('|', "\\|")
}

fn default(schema: &Value) -> String {
    let in_words = schema["description"].as_str().and_then(|text| text.split_once(" Default: "));
    match (schema.get("default"), in_words) {
        (Some(Value::Number(number)), _) => format!("{}", number.as_f64().unwrap_or_default()),
        (Some(Value::Array(items)), _) => {
            let items: Vec<_> = items.iter().map(Value::to_string).collect();
            format!("`[{}]`", items.join(", "))
        }
        (Some(value), _) => format!("`{value}`"),
        (None, Some((_, words))) => words.trim_end_matches('.').to_owned(),
        (None, None) => String::new(),
    }
}
