//! The tables of the schema, each with its keys as the parser lists them.

use crate::config::document::{Config, RouteDefaults};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use toml::Table as Toml;

/// A table of the configuration file.
pub(in crate::config) struct Table<'a> {
    /// The keys, in the order of the parser.
    pub(in crate::config) keys: Vec<String>,
    pub(in crate::config) schema: &'a Value,
}

/// A component of a table's path.
#[derive(Clone)]
enum Step {
    Key(String),
    /// Any name, as in `[listener.NAME]`.
    Name,
    /// Any item of a list, as in `[[route]]`.
    Item,
}

/// All tables by their path, such as `listener.*.tls`; the path of the file itself is empty.
pub(in crate::config) fn tables(schema: &Value) -> BTreeMap<String, Table<'_>> {
    let mut tables = BTreeMap::new();
    find(schema, &[], &mut tables);
    tables
}

fn find<'a>(schema: &'a Value, steps: &[Step], tables: &mut BTreeMap<String, Table<'a>>) {
    let with = |step: Step| [steps, &[step]].concat();
    if let Value::Object(properties) = &schema["properties"] {
        let words = steps.iter().map(|step| match step {
            Step::Key(key) => key.as_str(),
            Step::Name | Step::Item => "*",
        });
        let path = words.collect::<Vec<_>>().join(".");
        tables.insert(path, Table { keys: parsed_keys(steps), schema });
        for (key, value) in properties {
            find(value, &with(Step::Key(key.clone())), tables);
        }
    }
    // A key may accept a table or a list of such tables; visiting the table suffices.
    if let Some(choices) = schema["anyOf"].as_array() {
        choices
            .iter()
            .filter(|choice| choice["type"] != "array")
            .for_each(|choice| find(choice, steps, tables));
    }
    if schema["items"].is_object() {
        find(&schema["items"], &with(Step::Item), tables);
    }
    if schema["additionalProperties"].is_object() {
        find(&schema["additionalProperties"], &with(Step::Name), tables);
    }
}

/// The keys of a table, from the parser's error about an empty key.
fn parsed_keys(steps: &[Step]) -> Vec<String> {
    let mut value = toml::Value::Table(Toml::from_iter([(String::new(), 0.into())]));
    for step in steps.iter().rev() {
        value = match step {
            Step::Key(key) => toml::Value::Table(Toml::from_iter([(key.clone(), value)])),
            Step::Name => toml::Value::Table(Toml::from_iter([("name".to_owned(), value)])),
            Step::Item => toml::Value::Array(vec![value]),
        };
    }
    let error = match value.get("defaults") {
        Some(defaults) => RouteDefaults::deserialize(defaults.clone()).err(),
        None => Config::deserialize(value).err(),
    };
    let message = error.expect("an unknown key is an error").to_string();
    let (_, listed) = message.split_once("unknown field ``, expected ").expect(&message);
    let listed = listed.lines().next().unwrap_or_default();
    let listed = listed.split('`').skip(1).step_by(2).map(str::to_owned);
    // The loader removes these two keys before the file is converted.
    let of_text = if steps.is_empty() { &["include", "defaults"][..] } else { &[] };
    of_text.iter().map(|key| (*key).to_owned()).chain(listed).collect()
}
