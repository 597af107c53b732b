//! JSON values as text: the leaves of an object, the name of a variant.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Each leaf by its key path; `tls.group` is one.
pub(crate) fn leaves(value: &impl Serialize) -> BTreeMap<String, String> {
    let mut leaves = BTreeMap::new();
    flatten(String::new(), &serde_json::to_value(value).unwrap_or_default(), &mut leaves);
    leaves
}

/// The name of an enum's variant; empty for another value.
pub(crate) fn name(variant: impl Serialize) -> String {
    let value = serde_json::to_value(variant).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
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
