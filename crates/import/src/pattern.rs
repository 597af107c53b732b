//! Paths as Weir matches them, from prefixes and from regular expressions that are no more than that.

use std::collections::BTreeSet;

/// A path pattern of Weir: `/a` alone, or `/a` with everything below it. Segments may be `{any}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pattern {
    /// This path alone.
    Exact(String),
    /// This path, without a slash at its end, and all below it.
    Below(String),
}

impl Pattern {
    /// Every path.
    pub(crate) fn all() -> Self {
        Self::Below(String::new())
    }

    /// The path alone; `None` if it cannot be written.
    pub(crate) fn exact(path: &str) -> Option<Self> {
        let path = encoded(path)?;
        path.starts_with('/').then_some(Self::Exact(path))
    }

    /// A path and what is below it: a prefix, cut at its last segment.
    pub(crate) fn prefix(path: &str) -> Option<Self> {
        let path = encoded(path)?;
        let path = path.strip_suffix('/').unwrap_or(&path);
        (path.is_empty() || path.starts_with('/')).then(|| Self::Below(path.to_owned()))
    }

    /// Whether all paths of `other` are of this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a == b,
            (Self::Exact(_), Self::Below(_)) => false,
            (Self::Below(a), Self::Exact(b) | Self::Below(b)) => {
                b.strip_prefix(a.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        }
    }

    /// In Weir's spelling.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Exact(path) => path.clone(),
            Self::Below(path) => format!("{path}/*"),
        }
    }

    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Exact(path) | Self::Below(path) => path,
        }
    }
}

/// Percent-encodes what a pattern may not have. `None`: a segment `.` or `..`, or an empty one.
fn encoded(path: &str) -> Option<String> {
    let inner = path.strip_suffix('/').unwrap_or(path);
    let mut segments = inner.split('/').skip(1);
    if segments.any(|segment| matches!(segment, "" | "." | "..")) {
        return None;
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()+,;=:@%/".contains(&byte);
    let mut out = String::new();
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(ANY) {
            out.push_str(ANY);
            rest = after;
            continue;
        }
        let (this, after) = rest.split_at(c.len_utf8());
        match this.as_bytes() {
            [byte] if plain(*byte) => out.push(c),
            bytes => bytes.iter().for_each(|byte| out.push_str(&format!("%{byte:02X}"))),
        }
        rest = after;
    }
    Some(out)
}

/// Any segment.
const ANY: &str = "{any}";

/// The most patterns that an expression may become.
const MOST: usize = 64;

/// The patterns of a regular expression on the path that begins with `^`; `None` if it is more than prefixes and whole
/// paths.
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
        // `{any}` stands for a whole segment.
        if text.split('/').any(|segment| segment.contains(ANY) && segment != ANY) {
            return None;
        }
        found.insert(if is_whole { Pattern::exact(text)? } else { Pattern::prefix(text)? });
    }
    let covered = |pattern: &Pattern| found.iter().any(|other| other != pattern && other.covers(pattern));
    Some(found.iter().filter(|pattern| !covered(pattern)).cloned().collect())
}

/// What an expression matches.
#[derive(Clone, Debug)]
struct Text {
    text: String,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// More may follow.
    None,
    /// A path that begins with it, as `.*` came behind it.
    Open,
    /// A path that is no longer.
    Whole,
}

impl Text {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: End::None }
    }
}

/// The texts of a sequence up to its end, or to a `)` or `|` that is not its own; and the rest.
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

/// `(a|b)`, `(?:a|b)`, `(?<name>a|b)`.
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
            ("^/api", "/api/*"),
            ("^/api(/|$)", "/api/*"),
            ("^/(?:a|b)/", "/a/* /b/*"),
            ("^/health$", "/health"),
            ("^/v1\\.0/(x|y)?$", "/v1.0/ /v1.0/x /v1.0/y"),
            ("^/users/[^/]+/posts$", "/users/{any}/posts"),
            ("^/app/.*", "/app/*"),
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
        // As many alternatives as there may be, and more.
        assert!(of_regex(&format!("^/{}", "(a|b)".repeat(6))).is_some());
        assert!(of_regex(&format!("^/{}", "(a|b)".repeat(60))).is_none());
        assert!(of_regex(&format!("^{}", "(".repeat(100_000))).is_none());
    }

    #[test]
    fn patterns_are_encoded_and_compared() {
        assert_eq!(Pattern::prefix("/a b/").map(|pattern| pattern.text()).as_deref(), Some("/a%20b/*"));
        assert_eq!(Pattern::prefix("/").map(|pattern| pattern.text()).as_deref(), Some("/*"));
        assert_eq!(Pattern::exact("/").map(|pattern| pattern.text()).as_deref(), Some("/"));
        assert_eq!(
            (Pattern::exact("/a/../b"), Pattern::prefix("/a//b"), Pattern::exact("a")),
            (None, None, None)
        );
        let below = Pattern::Below("/a".into());
        assert!(below.covers(&Pattern::Exact("/a".into())) && below.covers(&Pattern::Below("/a/b".into())));
        assert!(!below.covers(&Pattern::Exact("/ab".into())) && Pattern::all().covers(&below));
    }
}
