//! `[defaults]`: route keys that apply to each route that does not set them.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Keys that apply to any route; all other default keys need a route with a `service`.
const OF_ALL: &[&str] = &["response_headers", "rate"];

/// Adds to each route the default keys that it does not set; to a route without a `service`, only those in [`OF_ALL`].
/// `[defaults]` itself remains, to be checked.
pub(super) fn apply(table: &mut DeTable<'_>) {
    let Some(DeValue::Table(defaults)) = table.get("defaults").map(|value| value.get_ref().clone()) else {
        return;
    };
    let Some(DeValue::Array(routes)) = table.get_mut("route").map(Spanned::get_mut) else { return };
    for route in routes.iter_mut() {
        let DeValue::Table(route) = route.get_mut() else { continue };
        let has_service = route.contains_key("service");
        for (key, value) in &defaults {
            if has_service || OF_ALL.contains(&key.get_ref().as_ref()) {
                add(route, key, value);
            }
        }
    }
}

/// Adds a key unless the route sets it. Merges tables key by key, and edits of fields by [`add_edits`].
fn add<'a>(route: &mut DeTable<'a>, key: &Spanned<DeString<'a>>, value: &Spanned<DeValue<'a>>) {
    let Some(own) = route.get_mut(key.get_ref().as_ref()) else {
        route.insert(key.clone(), value.clone());
        return;
    };
    let (DeValue::Table(own), DeValue::Table(defaults)) = (own.get_mut(), value.get_ref()) else { return };
    match key.get_ref().as_ref() {
        "request_headers" | "response_headers" => add_edits(own, defaults),
        _ => {
            for (key, value) in defaults {
                if !own.contains_key(key.get_ref().as_ref()) {
                    own.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

/// Adds the edits of fields that the route does not name, regardless of case.
fn add_edits<'a>(own: &mut DeTable<'a>, defaults: &DeTable<'a>) {
    let named = names(own);
    let is_named = |name: &str| named.iter().any(|named| named.eq_ignore_ascii_case(name));
    for (kind, value) in defaults {
        let value = match value.get_ref() {
            DeValue::Table(fields) => {
                let rest = fields.iter().filter(|(name, _)| !is_named(name.get_ref()));
                DeValue::Table(rest.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            DeValue::Array(fields) => {
                let rest = fields.iter().filter(|name| !name.get_ref().as_str().is_some_and(is_named));
                DeValue::Array(rest.cloned().collect())
            }
            DeValue::String(name) if is_named(name) => continue,
            other => other.clone(),
        };
        let value = Spanned::new(kind.span(), value);
        match own.get_mut(kind.get_ref().as_ref()).map(Spanned::get_mut) {
            None => drop(own.insert(kind.clone(), value)),
            Some(DeValue::Table(own)) => {
                if let DeValue::Table(fields) = value.into_inner() {
                    own.extend(fields);
                }
            }
            Some(own) => {
                let mut all: Vec<_> = listed(Spanned::new(kind.span(), own.clone()));
                all.extend(listed(value));
                *own = DeValue::Array(all.into_iter().collect());
            }
        }
    }
}

/// The items of a list; a single value needs no brackets.
fn listed(value: Spanned<DeValue<'_>>) -> Vec<Spanned<DeValue<'_>>> {
    match value.get_ref() {
        DeValue::Array(items) => items.iter().cloned().collect(),
        _ => vec![value],
    }
}

/// The names of the fields that edits change.
fn names(edits: &DeTable<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for value in edits.values() {
        match value.get_ref() {
            DeValue::Table(fields) => names.extend(fields.keys().map(|name| name.get_ref().to_string())),
            DeValue::Array(items) => {
                names.extend(items.iter().filter_map(|item| Some(item.get_ref().as_str()?.to_owned())));
            }
            DeValue::String(name) => names.push(name.to_string()),
            _ => {}
        }
    }
    names
}
