//! Parsers for the exports.

use std::collections::BTreeMap;

/// CSV (RFC 4180): each row by column name.
pub(crate) fn csv(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut rows: Vec<Vec<String>> = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = text.trim_end_matches('\n').chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => row.last_mut().unwrap().extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            c => row.last_mut().unwrap().push(c),
        }
    }
    assert!(!quoted, "{text}");
    let header = rows.remove(0);
    for row in &rows {
        assert_eq!(row.len(), header.len(), "{row:?}");
    }
    rows.into_iter().map(|row| header.iter().cloned().zip(row).collect()).collect()
}

/// The elements of a well-formed document, each with the text of its attributes; every tag must be closed.
pub(crate) fn xml(text: &str) -> Vec<(String, String)> {
    let mut rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    let (mut open, mut elements) = (Vec::new(), Vec::new());
    while let Some((before, tag)) = rest.split_once('<') {
        assert!(!before.contains('>'), "{before}");
        for entity in before.split('&').skip(1) {
            assert!(
                ["amp;", "lt;", "gt;", "quot;", "#"].iter().any(|known| entity.starts_with(known)),
                "{entity}"
            );
        }
        let (tag, after) = tag.split_once('>').unwrap();
        assert!(!tag.contains('<') && tag.matches('"').count() % 2 == 0, "{tag}");
        rest = after;
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None => {
                let is_empty = tag.ends_with('/');
                let (name, attributes) = tag.trim_end_matches('/').split_once(' ').unwrap_or((tag, ""));
                elements.push((name.to_owned(), attributes.to_owned()));
                if !is_empty {
                    open.push(name.to_owned());
                }
            }
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    elements
}
