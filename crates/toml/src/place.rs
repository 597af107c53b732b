//! Positions of keys and values in a TOML text.

use toml::de::{DeTable, DeValue};

/// The offset of a key: `tls.group` is a key of a table, `claims.2.cell` one of a table in a list. `None` if there is
/// no such key.
pub fn offset_of(table: &DeTable<'_>, key: &str) -> Option<usize> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let (found, value) = table.iter().find(|(found, _)| found.get_ref() == first)?;
    match (rest, value.get_ref()) {
        (None, _) => Some(found.span().start),
        (Some(rest), DeValue::Table(inner)) => offset_of(inner, rest),
        (Some(rest), DeValue::Array(items)) => {
            let (index, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let item = items.get(index.parse::<usize>().ok()?)?;
            let inside = item.get_ref().as_table().and_then(|table| offset_of(table, rest));
            Some(inside.unwrap_or(item.span().start))
        }
        // A single value in place of a list is also its first entry.
        (Some("0"), _) => Some(found.span().start),
        (Some(_), _) => None,
    }
}

/// The path of the key whose name or value is at this offset, such as `service.api.servers.1`; `None` if there is none.
pub fn key_at(table: &DeTable<'_>, offset: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        // Search inside the value first: the span of a table in several sections covers only the first section.
        match below(value.get_ref(), offset) {
            Some(below) => Some(format!("{}.{below}", key.get_ref())),
            None => {
                let is_here = key.span().contains(&offset) || value.span().contains(&offset);
                is_here.then(|| key.get_ref().to_string())
            }
        }
    })
}

fn below(value: &DeValue<'_>, offset: usize) -> Option<String> {
    match value {
        DeValue::Table(table) => key_at(table, offset),
        DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let below = below(item.get_ref(), offset);
            match below {
                Some(below) => Some(format!("{index}.{below}")),
                None => item.span().contains(&offset).then(|| index.to_string()),
            }
        }),
        _ => None,
    }
}

/// The line of a byte offset, counted from 1.
pub fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_key_and_a_key_by_its_value() {
        let text = "a = 1\n[b]\nc = [{ d = 2 }, { e = 3 }]\n[[f]]\ng = 4\n[[f]]\nh = 5\n[b.i]\nj = 6\n";
        let table = DeTable::parse(text).expect("is TOML");
        for (value, key) in
            [("1", "a"), ("2", "b.c.0.d"), ("3", "b.c.1.e"), ("4", "f.0.g"), ("5", "f.1.h"), ("6", "b.i.j")]
        {
            let at = text.find(value).expect("is there");
            assert_eq!(key_at(table.get_ref(), at).as_deref(), Some(key));
            let line = offset_of(table.get_ref(), key).map(|offset| line_at(text, offset));
            assert_eq!(line, Some(line_at(text, at)), "{key}");
        }
        assert_eq!(key_at(table.get_ref(), text.len()), None);
        // A single value in place of a list is also its first entry.
        assert_eq!(offset_of(table.get_ref(), "f.1.h.0"), offset_of(table.get_ref(), "f.1.h"));
        assert_eq!(offset_of(table.get_ref(), "f.2"), None);
    }

    #[test]
    fn a_fault_in_a_deep_table_is_found_at_once() {
        // Regression test: each level searched the next one twice, so a header of 32 names took a minute, and one of 42
        // exhausted a fuzzer's memory.
        let key = vec!["a"; 60].join(".");
        let text = format!("[{key}]\n");
        let table = DeTable::parse(&text).expect("is TOML");
        assert_eq!(key_at(table.get_ref(), text.len()), None);
        assert_eq!(key_at(table.get_ref(), 1), Some(key));
    }
}
