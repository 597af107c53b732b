//! The JSON Schema of the configuration file, for editors, derived from the types that the file is parsed into.

use super::document::{Config, TextKeys, duration_text, size_text};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::time::Duration;

#[cfg(test)]
pub(super) mod tables;
#[cfg(test)]
mod tests;

type Object = Map<String, Value>;

/// The JSON Schema of the configuration file, as JSON.
///
/// It contains the parser's keys, types, names, ranges and patterns, and the defaults (except those described in
/// words). The schema accepts one spelling of case-insensitive names, and does not express which keys require or
/// exclude each other.
pub fn schema() -> String {
    let mut schema = described();
    each(&mut schema, &mut |schema| {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = without_links(text);
        }
        if let Some(Value::String(text)) = schema.get_mut("title") {
            *text = text.replace('`', "");
        }
        allow_variables(schema);
    });
    format!("{schema:#}\n")
}

/// As [`schema`], but with links to the documentation, and without environment variables in values.
pub(super) fn described() -> Value {
    // The schema is in draft 7, since editors support no later one, and contains no references, since a `$ref` hides
    // the description of the key beside it.
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut of_text = settings.clone().into_generator().into_root_schema_for::<TextKeys>();
    let mut schema = settings.into_generator().into_root_schema_for::<Config>();
    if let Some(Value::Object(all)) = schema.get_mut("properties")
        && let Some(Value::Object(of_text)) = of_text.remove("properties")
    {
        all.extend(of_text);
    }
    schema.insert("title".to_owned(), "Configuration of the gateway".into());
    schema.insert("description".to_owned(), "The configuration file of `weir serve`.".into());
    let mut schema = schema.to_value();
    each(&mut schema, &mut |schema| {
        drop_null(schema);
        merge_variants(schema);
        join_lines(schema);
        write_default(schema);
        write_range(schema);
        // `format` names Rust's integer types, whose ranges are in `minimum` and `maximum`.
        schema.remove("format");
    });
    schema
}

/// Applies `change` to all schemas within this one, and then to this one.
fn each(schema: &mut Value, change: &mut impl FnMut(&mut Object)) {
    let Value::Object(schema) = schema else { return };
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(all)) => all.values_mut().for_each(|inner| each(inner, change)),
            ("anyOf" | "oneOf", Value::Array(all)) => all.iter_mut().for_each(|inner| each(inner, change)),
            ("items" | "additionalProperties", inner) => each(inner, change),
            _ => {}
        }
    }
    change(schema);
}

/// Removes null from the types of a key, since TOML has no null: an optional key is left out.
fn drop_null(schema: &mut Object) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = &types[..] {
            let one = one.clone();
            schema.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(names)) = schema.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else { return };
    choices.retain(|choice| choice["type"] != "null");
    if let [Value::Object(one)] = &mut choices[..] {
        let one = std::mem::take(one);
        schema.remove("anyOf");
        for (key, value) in one {
            schema.entry(key).or_insert(value);
        }
    }
}

/// Merges the variants of an enum into one list of names, with their meanings in the form that TOML editors show.
fn merge_variants(schema: &mut Object) {
    let Some(Value::Array(variants)) = schema.remove("oneOf") else { return };
    let column = |name: &str| variants.iter().map(|variant| variant[name].clone()).collect::<Vec<_>>();
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), column("const").into());
    schema.insert("x-taplo".to_owned(), json!({ "docs": { "enumValues": column("description") } }));
}

/// Joins the lines of a doc comment.
fn join_lines(schema: &mut Object) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}

/// Writes a default in the notation of the configuration file. Removes null, which TOML lacks, and empty lists and
/// tables, which a file need not contain.
fn write_default(schema: &mut Object) {
    let Some(default) = schema.remove("default") else { return };
    let is_size = schema.get("type") == Some(&json!(["integer", "string"]));
    let written = match &default {
        Value::Null => return,
        Value::Array(items) if items.is_empty() => return,
        Value::Object(parts) => match (parts.get("secs"), parts.get("nanos")) {
            (Some(Value::Number(seconds)), Some(Value::Number(nanoseconds))) => {
                let [seconds, nanoseconds] = [seconds, nanoseconds].map(|part| part.as_u64().unwrap_or(0));
                duration_text(Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)).into()
            }
            _ => return,
        },
        Value::Number(bytes) if is_size => written_size(bytes.as_u64().unwrap_or(0)),
        _ => default,
    };
    schema.insert("default".to_owned(), written);
}

/// Writes a size with its unit, as a string, or a number of bytes as an integer.
fn written_size(bytes: u64) -> Value {
    let text = size_text(bytes);
    text.parse::<u64>().map_or(text.into(), Value::from)
}

/// Adds the range of a size to its title.
fn write_range(schema: &mut Object) {
    let end = |name: &str| schema.get(name).and_then(Value::as_u64).map(written_size);
    if schema.get("type") == Some(&json!(["integer", "string"]))
        && let (Some(least), Some(most)) = (end("minimum"), end("maximum"))
    {
        schema.insert("title".to_owned(), format!("bytes, `{least}` to `{most}`").into());
    }
}

/// Allows environment variables in any string.
fn allow_variables(schema: &mut Object) {
    const VARIABLE: &str = r"\$\{";
    if let Some(Value::String(pattern)) = schema.get_mut("pattern") {
        pattern.push('|');
        pattern.push_str(VARIABLE);
    }
    if schema.get("type").is_some_and(|name| name == "string") && schema.contains_key("enum") {
        let own = ["type", "enum", "x-taplo"];
        let own: Object = own.into_iter().filter_map(|key| schema.remove_entry(key)).collect();
        let choices = json!([own, { "type": "string", "pattern": VARIABLE }]);
        schema.insert("anyOf".to_owned(), choices);
    }
}

/// Replaces each link, `[text](page)`, with its text.
fn without_links(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(at) = text.find("](") {
        let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
        // The link's text may contain brackets.
        let mut depth = 0;
        let opens = text[..=at].char_indices().rev().find(|(_, c)| {
            depth += match c {
                ']' => 1,
                '[' => -1,
                _ => 0,
            };
            depth == 0
        });
        let start = opens.map_or(0, |(start, _)| start);
        text.replace_range(at..end, "");
        text.replace_range(start..=start, "");
    }
    text
}
