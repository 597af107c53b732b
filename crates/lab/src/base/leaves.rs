//! A JSON value as its leaves.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Each leaf by its key path; `tls.group` is one.
pub(crate) fn leaves(value: &impl Serialize) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    flatten(String::new(), &serde_json::to_value(value).unwrap_or_default(), &mut leaves);
    leaves
}

fn flatten(key: String, value: &Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(inner) => {
            for (name, value) in inner {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                flatten(key, value, leaves);
            }
        }
        Value::String(text) => drop(leaves.insert(key, text.clone())),
        other => drop(leaves.insert(key, other.to_string())),
    }
}
