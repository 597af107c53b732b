//! Translation of regular expressions on paths into patterns, exact or enclosing.

use crate::pattern::{ANY, Pattern};
use std::collections::BTreeSet;

/// The maximum number of patterns per expression.
const MOST: usize = 64;

/// The patterns that match the same paths as a regular expression; `None` if it does not begin with `^` or contains
/// more than prefixes and whole paths.
pub(crate) fn of_regex(regex: &str) -> Option<Vec<Pattern>> {
    let inner = regex.strip_prefix('^')?;
    let (texts, rest) = sequence(inner, 0)?;
    if !rest.is_empty() {
        return None;
    }
    let mut found = BTreeSet::new();
    for Text { text, end } in &texts {
        let is_whole = *end == End::Whole;
        if !text.starts_with('/') && (!text.is_empty() || is_whole) {
            return None;
        }
        // `{any}` matches a whole segment only.
        if text.split('/').any(|segment| segment.contains(ANY) && segment != ANY) {
            return None;
        }
        found.insert(if is_whole { Pattern::exact(text)? } else { Pattern::prefix(text)? });
    }
    let covered = |pattern: &Pattern| found.iter().any(|other| other != pattern && other.covers(pattern));
    Some(found.iter().filter(|pattern| !covered(pattern)).cloned().collect())
}

/// Patterns that match at least all paths of an expression; with `ignores_case`, in upper and lower case. Most match
/// more: all paths that begin with the expression's literal prefix.
pub(crate) fn around_regex(regex: &str, ignores_case: bool) -> Vec<Pattern> {
    let (regex, ignores_case) = match regex.strip_prefix("(?i)") {
        Some(regex) => (regex, true),
        None => (regex, ignores_case),
    };
    let patterns = of_regex(regex).or_else(|| Some(vec![Pattern::prefix(&beginning(regex)?)?]));
    let patterns = patterns.unwrap_or_else(|| vec![Pattern::all()]);
    let patterns: BTreeSet<_> = match ignores_case {
        true => patterns.iter().flat_map(|pattern| pattern.in_any_case().0).collect(),
        false => patterns.into_iter().collect(),
    };
    match patterns.len() > MOST {
        true => vec![Pattern::all()],
        false => patterns.into_iter().collect(),
    }
}

/// The literal text that every match begins with; `None` if there is none.
fn beginning(regex: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = regex.strip_prefix('^').filter(|rest| !has_alternatives(rest))?;
    while let Some(c) = rest.chars().next() {
        let (literal, after) = match (c, rest[c.len_utf8()..].chars().next()) {
            ('\\', Some(escaped)) if !escaped.is_alphanumeric() => (escaped, &rest[1 + escaped.len_utf8()..]),
            ('\\' | '.' | '[' | '(' | '$' | '^' | '*' | '+' | '?' | '{', _) => break,
            (c, _) => (c, &rest[c.len_utf8()..]),
        };
        // An optional character ends the literal prefix.
        if after.starts_with(['?', '*', '{']) {
            break;
        }
        text.push(literal);
        rest = after;
    }
    text.starts_with('/').then_some(text)
}

/// Whether the expression contains a `|` outside all groups; true in doubtful cases.
fn has_alternatives(regex: &str) -> bool {
    let (mut depth, mut is_class) = (0_usize, false);
    let mut chars = regex.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class => depth += 1,
            ')' if !is_class => depth = depth.saturating_sub(1),
            '|' if !is_class && depth == 0 => return true,
            _ => {}
        }
    }
    // The loop above misreads a bracket that is the first character of a class.
    regex.contains("[]") || regex.contains("[^]")
}

/// One text that an expression matches.
#[derive(Clone, Debug)]
struct Text {
    text: String,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The expression continues after the text.
    None,
    /// Any text may follow: the expression has `.*` here.
    Open,
    /// The path ends here.
    Whole,
}

impl Text {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: End::None }
    }
}

/// Parses a sequence up to its end or to an unmatched `)` or `|`; returns its texts and the rest.
fn sequence(regex: &str, depth: usize) -> Option<(Vec<Text>, &str)> {
    let mut texts = vec![Text::new("")];
    let mut rest = regex;
    loop {
        let first = match rest.chars().next() {
            None | Some(')' | '|') => return Some((texts, rest)),
            Some(first) => first,
        };
        if let Some(after) = rest.strip_prefix('$') {
            let ended = texts.iter_mut().filter(|text| text.end == End::None);
            ended.for_each(|text| text.end = End::Whole);
            rest = after;
            continue;
        }
        let (atoms, after) = match first {
            '(' => group(rest, depth)?,
            '[' => (vec![Text::new(ANY)], rest.strip_prefix("[^/]+")?),
            '\\' => {
                let escaped = rest[1..].chars().next().filter(|c| !c.is_alphanumeric())?;
                (vec![Text::new(escaped.to_string())], &rest[1 + escaped.len_utf8()..])
            }
            '.' => {
                let open = Text { text: String::new(), end: End::Open };
                (vec![open], rest.strip_prefix(".*")?)
            }
            '*' | '+' | '?' | '{' | '}' | ']' | '^' => return None,
            plain => (vec![Text::new(plain.to_string())], &rest[plain.len_utf8()..]),
        };
        let (is_optional, after) = match after.chars().next() {
            Some('?') => (true, &after[1..]),
            Some('*' | '+' | '{') => return None,
            _ => (false, after),
        };
        let mut next = Vec::new();
        for text in &texts {
            if text.end != End::None {
                return None;
            }
            for atom in &atoms {
                next.push(Text { text: format!("{}{}", text.text, atom.text), end: atom.end });
            }
            if is_optional {
                next.push(text.clone());
            }
        }
        if next.len() > MOST {
            return None;
        }
        (texts, rest) = (next, after);
    }
}

/// Parses a group: `(a|b)`, `(?:a|b)` or `(?<name>a|b)`.
fn group(regex: &str, depth: usize) -> Option<(Vec<Text>, &str)> {
    const DEEPEST: usize = 8;
    if depth > DEEPEST {
        return None;
    }
    let mut rest = regex.strip_prefix('(')?;
    if let Some(after) = rest.strip_prefix("?:") {
        rest = after;
    } else if let Some(named) = rest.strip_prefix("?<").or_else(|| rest.strip_prefix("?P<")) {
        rest = named.split_once('>').filter(|(name, _)| name.chars().all(char::is_alphanumeric))?.1;
    } else if rest.starts_with('?') {
        return None;
    }
    let mut all = Vec::new();
    loop {
        let (texts, after) = sequence(rest, depth + 1)?;
        all.extend(texts);
        match after.chars().next()? {
            '|' => rest = &after[1..],
            ')' => return Some((all, &after[1..])),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_expressions_become_patterns() {
        for (regex, patterns) in [
            ("^/api/", "/api/*"),
            ("^/api", "/api*"),
            ("^/api(/|$)", "/api/*"),
            ("^/(?:a|b)/", "/a/* /b/*"),
            ("^/health$", "/health"),
            ("^/v1\\.0/(x|y)?$", "/v1.0/ /v1.0/x /v1.0/y"),
            ("^/users/[^/]+/posts$", "/users/{any}/posts"),
            ("^/app/.*", "/app/*"),
            ("^/app.*", "/app*"),
            ("^/users/[^/]+", "/users/{any}/*"),
            ("^/app/(.*)$", "/app/*"),
            ("^", "/*"),
            ("^/?$", "?"),
            ("\\.php$", "?"),
            ("^/a[0-9]+", "?"),
            ("^/a.b", "?"),
            ("^/(a", "?"),
            ("^/a)", "?"),
            ("^/x[^/]+$", "?"),
            ("^/a$b", "?"),
            ("^/a+", "?"),
            ("^/\\d", "?"),
            ("^/(?=a)", "?"),
        ] {
            let found =
                of_regex(regex).map(|found| found.iter().map(Pattern::text).collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref().unwrap_or("?"), patterns, "{regex}");
        }
        // The maximum number of alternatives, then one group more.
        assert!(of_regex(&format!("^/{}", "(a|b)".repeat(6))).is_some());
        assert!(of_regex(&format!("^/{}", "(a|b)".repeat(60))).is_none());
        assert!(of_regex(&format!("^{}", "(".repeat(100_000))).is_none());
    }

    #[test]
    fn around_an_expression() {
        for (regex, patterns) in [
            ("^/a(/|$)", "/a/*"),
            ("^/a[0-9]+/x$", "/a*"),
            ("^/ab?c", "/abc* /ac*"),
            ("^/ab*c", "/a*"),
            ("^/x\\.[ab]", "/x.*"),
            ("^/(a|b)[0-9]", "/*"),
            ("^/a[0-9]|/b", "/*"),
            ("^/v/(a|b)[0-9]", "/v/*"),
            ("^/v/[(]a|b[)]", "/*"),
            ("\\.php$", "/*"),
            ("(?i)^/a$", "/A /a"),
            ("(?i)^/a\\d", "/A* /a*"),
        ] {
            let regex = regex.replace("\\\\", "\\");
            let found: Vec<_> = around_regex(&regex, false).iter().map(Pattern::text).collect();
            assert_eq!(found.join(" "), patterns, "{regex}");
        }
    }
}
