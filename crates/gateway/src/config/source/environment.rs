//! Environment variables in values: `${NAME}` and `${NAME:-default}`. Replacing them in strings after parsing prevents
//! a value from adding keys.

use super::Variables;
use toml::de::{DeTable, DeValue};

/// Replaces variables in all strings of a table. Calls `fault` with the offset, the key and the message of each error.
pub(super) fn substitute(
    table: &mut DeTable<'_>,
    variables: Variables<'_>,
    fault: &mut dyn FnMut(usize, String, String),
) {
    // Only values change, so the map keeps its order.
    for (key, value) in table.iter_mut() {
        in_value(value.get_mut(), key.get_ref(), key.span().start, variables, fault);
    }
}

fn in_value(
    value: &mut DeValue<'_>,
    key: &str,
    offset: usize,
    variables: Variables<'_>,
    fault: &mut dyn FnMut(usize, String, String),
) {
    match value {
        DeValue::String(text) if text.contains("${") => match expanded(text, variables) {
            Ok(expanded) => *text = expanded.into(),
            Err(why) => fault(offset, key.to_owned(), why),
        },
        DeValue::Table(table) => {
            for (inner, value) in table.iter_mut() {
                let key = format!("{key}.{}", inner.get_ref());
                in_value(value.get_mut(), &key, inner.span().start, variables, fault);
            }
        }
        DeValue::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let offset = item.span().start;
                in_value(item.get_mut(), &format!("{key}.{index}"), offset, variables, fault);
            }
        }
        _ => {}
    }
}

/// Replaces the variables of a text; `$${` becomes `${`. Fails if a variable is invalid, or not set.
fn expanded(text: &str, variables: Variables<'_>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let Some((variable, after)) = after.split_once('}') else {
            return Err(format!("missing `}}` behind `${{{after}`: {EXPECTED}"));
        };
        expanded.push_str(&value(variable, variables)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The value of a variable, or its default. As in a shell, an empty variable takes the default, too.
fn value(variable: &str, variables: Variables<'_>) -> Result<String, String> {
    let (name, default) = match variable.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (variable, None),
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(format!("invalid variable `${{{variable}}}`: {EXPECTED}"));
    }
    match (variables(name), default) {
        (Some(value), default) if !value.is_empty() || default.is_none() => value
            .into_string()
            .map_err(|_| format!("the environment variable `{name}` is not UTF-8: expected text")),
        (_, Some(default)) => Ok(default.to_owned()),
        (_, None) => Err(format!(
            "the environment variable `{name}` is not set: set it, or write a default as in `${{{name}:-..}}`"
        )),
    }
}

const EXPECTED: &str = "expected ${NAME} or ${NAME:-default} from the environment, or $${ for a plain ${";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_in_a_shell() {
        let variables = |name: &str| match name {
            "HOST" => Some("a.example".into()),
            "QUOTE" => Some("\"\nworkers = 0 ${HOST}".into()),
            "EMPTY" => Some("".into()),
            _ => None,
        };
        for (text, expected) in [
            ("${HOST}", Ok("a.example")),
            ("http://${HOST}:80/${HOST}", Ok("http://a.example:80/a.example")),
            ("${NONE:-b}", Ok("b")),
            ("${NONE:-}", Ok("")),
            ("${HOST:-b}", Ok("a.example")),
            ("${EMPTY}", Ok("")),
            ("${EMPTY:-b}", Ok("b")),
            ("${NONE:-http://[::1]:80}", Ok("http://[::1]:80")),
            ("$${HOST}", Ok("${HOST}")),
            ("$$${HOST}", Ok("$${HOST}")),
            ("$HOST {host} $", Ok("$HOST {host} $")),
            // The value of a variable is not expanded again.
            ("${QUOTE}", Ok("\"\nworkers = 0 ${HOST}")),
            ("a ${NONE} b", Err("the environment variable `NONE` is not set")),
            ("${host", Err("missing `}` behind `${host`")),
            ("${}", Err("invalid variable `${}`")),
            ("${1A}", Err("invalid variable `${1A}`")),
            ("${A-b}", Err("invalid variable `${A-b}`")),
            ("${A B}", Err("invalid variable `${A B}`")),
        ] {
            match (expanded(text, &variables), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(found), Err(expected)) => assert!(found.starts_with(expected), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
