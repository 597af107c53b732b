//! Test helpers for HTML: well-formedness and attributes.

/// Void elements.
const VOID: [&str; 3] = ["meta", "br", "hr"];

/// Asserts that HTML is well formed.
///
/// # Panics
/// Where a tag is not closed, closed twice or closed in the wrong order, or an attribute has no quotes.
pub(crate) fn well_formed(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').unwrap_or_else(|| panic!("no end: {:.60}", &rest[start..]));
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<'), "a tag within a tag: {tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "a quote is open: {tag}");
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        if tag.starts_with('!') || tag.ends_with('/') || VOID.contains(&name) {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "before {rest:.60}");
        } else {
            open.push(name);
        }
        if name == "style" && !tag.starts_with('/') {
            rest = &rest[rest.find("</style>").expect("the style's end")..];
        }
    }
    assert_eq!(open, [""; 0], "are not closed");
}

/// The values of an attribute over all elements of a name.
pub(crate) fn attributes<'a>(html: &'a str, element: &str, attribute: &str) -> Vec<&'a str> {
    let (begin, key) = (format!("<{element} "), format!("{attribute}=\""));
    let tags = html.split(begin.as_str()).skip(1).filter_map(|rest| rest.split('>').next());
    tags.filter_map(|tag| tag.split(key.as_str()).nth(1)?.split('"').next()).collect()
}
