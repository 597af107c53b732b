//! Weir's path patterns.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A path pattern: `/a` matches this path, `/a/*` everything below it, `/a*` every path that begins with it. A segment
/// may be `{any}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pattern {
    /// This path only.
    Exact(String),
    /// This path, written without a trailing slash, and all paths below it.
    Below(String),
    /// All paths that begin with this text, within its last segment too.
    Starts(String),
}

impl Pattern {
    /// The pattern of all paths.
    pub(crate) fn all() -> Self {
        Self::Below(String::new())
    }

    /// The pattern of one path; `None` if no pattern expresses it.
    pub(crate) fn exact(path: &str) -> Option<Self> {
        let path = encoded(path)?;
        path.starts_with('/').then_some(Self::Exact(path))
    }

    /// The pattern of all paths that begin with `path`. A prefix with a trailing slash also matches the path without
    /// it, since `/a/*` matches `/a`.
    pub(crate) fn prefix(path: &str) -> Option<Self> {
        let path = encoded(path)?;
        match path.strip_suffix('/').or_else(|| path.ends_with(ANY).then_some(&path)) {
            Some(path) if path.is_empty() || path.starts_with('/') => Some(Self::Below(path.to_owned())),
            None if path.is_empty() => Some(Self::all()),
            None if path.starts_with('/') => Some(Self::Starts(path)),
            _ => None,
        }
    }

    /// Whether this pattern matches all paths of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let (mut own, mut theirs) =
            (self.path().split('/').skip(1).peekable(), other.path().split('/').skip(1).peekable());
        while let Some(segment) = own.next() {
            let Some(their) = theirs.next() else { return false };
            if matches!(self, Self::Starts(_)) && own.peek().is_none() {
                return their.starts_with(segment);
            }
            // A `Starts` pattern matches longer last segments.
            let goes_on = matches!(other, Self::Starts(_)) && theirs.peek().is_none();
            let is_covered = if segment == ANY { !their.is_empty() } else { segment == their && !goes_on };
            if !is_covered {
                return false;
            }
        }
        match self {
            Self::Exact(_) => theirs.next().is_none() && matches!(other, Self::Exact(_)),
            Self::Below(_) | Self::Starts(_) => true,
        }
    }

    /// The precedence in Weir: of two patterns that match a path, the one with the smaller rank wins. Ranks compare
    /// segment by segment; literal segments come first.
    pub(crate) fn rank(&self) -> (Vec<u8>, Reverse<usize>) {
        let count = self.path().matches('/').count();
        let mut ranks: Vec<_> =
            self.path().split('/').skip(1).map(|segment| if segment == ANY { 3 } else { 1 }).collect();
        match self {
            Self::Exact(_) => ranks.push(0),
            Self::Below(_) => ranks.push(4),
            Self::Starts(_) => ranks.splice(count.saturating_sub(1).., [2]).for_each(drop),
        }
        (ranks, Reverse(self.path().len()))
    }

    /// The pattern of the paths that both this and `other` match, possibly of a few more; `None` if there are no such
    /// paths.
    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        if self.covers(other) {
            return Some(other.clone());
        }
        if other.covers(self) {
            return Some(self.clone());
        }
        // Neither pattern covers the other, so both can match a path only if one has an `{any}` segment.
        let (mut a, mut b) =
            (self.path().split('/').skip(1).peekable(), other.path().split('/').skip(1).peekable());
        let mut path = String::new();
        loop {
            let (left, right) = (a.next(), b.next());
            let (one, next, is_last) = match (left, right) {
                (Some(left), Some(right)) => {
                    // A `Starts` pattern matches longer last segments.
                    let open_left = a.peek().is_none() && matches!(self, Self::Starts(_));
                    let open_right = b.peek().is_none() && matches!(other, Self::Starts(_));
                    let is_met = left == right
                        || left == ANY
                        || right == ANY
                        || (open_left && right.starts_with(left))
                        || (open_right && left.starts_with(right));
                    is_met.then_some(())?;
                    let segment = match (left, right) {
                        (ANY, segment) | (segment, ANY) => segment,
                        (left, right) if left.len() >= right.len() => left,
                        (_, right) => right,
                    };
                    (segment, None, open_left || open_right)
                }
                (Some(rest), None) => (rest, Some((self, other)), false),
                (None, Some(rest)) => (rest, Some((other, self)), false),
                (None, None) => break,
            };
            if let Some((_, shorter)) = next {
                matches!(shorter, Self::Below(_)).then_some(())?;
            }
            path.push('/');
            path.push_str(one);
            if is_last {
                return Some(Self::Starts(path));
            }
        }
        Some(match (self, other) {
            (Self::Exact(_), _) | (_, Self::Exact(_)) => Self::Exact(path),
            _ => Self::Below(path),
        })
    }

    /// Patterns for all spellings in upper and lower case, and whether they match only these. A long path yields
    /// prefixes.
    pub(crate) fn in_any_case(&self) -> (Vec<Self>, bool) {
        let (mut texts, mut rest) = (vec![String::new()], self.path());
        let mut is_whole = true;
        while let Some(c) = rest.chars().next() {
            let fixed = if rest.starts_with(ANY) { ANY.len() } else { 3 * usize::from(c == '%') };
            if let Some((fixed, after)) = rest.split_at_checked(fixed).filter(|(fixed, _)| !fixed.is_empty())
            {
                texts.iter_mut().for_each(|text| text.push_str(fixed));
                rest = after;
                continue;
            }
            if c.is_ascii_alphabetic() && texts.len() >= MOST_CASES {
                is_whole = false;
                break;
            }
            let cases = BTreeSet::from([c.to_ascii_lowercase(), c.to_ascii_uppercase()]);
            texts = texts.iter().flat_map(|text| cases.iter().map(move |c| format!("{text}{c}"))).collect();
            rest = &rest[c.len_utf8()..];
        }
        let pattern = |text: String| match self {
            _ if !is_whole && text.ends_with('/') => Self::Below(text.trim_end_matches('/').to_owned()),
            _ if !is_whole => Self::Starts(text),
            Self::Exact(_) => Self::Exact(text),
            Self::Below(_) => Self::Below(text),
            Self::Starts(_) => Self::Starts(text),
        };
        (texts.into_iter().map(pattern).collect(), is_whole)
    }

    /// The pattern as Weir writes it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Exact(path) => path.clone(),
            Self::Below(path) => format!("{path}/*"),
            Self::Starts(path) => format!("{path}*"),
        }
    }

    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Exact(path) | Self::Below(path) | Self::Starts(path) => path,
        }
    }
}

/// The limit of case variants per path: the variants of five letters.
const MOST_CASES: usize = 32;

/// Percent-encodes characters that a pattern cannot contain. `None`: an empty segment, `.` or `..`.
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

/// The pattern segment that matches any segment.
pub(crate) const ANY: &str = "{any}";

#[cfg(test)]
mod tests {
    use super::*;

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
        for (a, b, covers) in [
            ("/a*", "/ab/*", true),
            ("/a*", "/a", true),
            ("/a/*", "/a*", false),
            ("/a/*", "/a/b*", true),
            ("/a", "/a/*", false),
            ("/{any}/*", "/a", true),
            ("/{any}/*", "/wp-*", true),
            ("/{any}/b", "/a/b", true),
            ("/{any}/b", "/a/b*", false),
            ("/a/{any}", "/a/", false),
            ("/a/b", "/{any}/b", false),
        ] {
            assert_eq!(pattern(a).covers(&pattern(b)), covers, "{a} {b}");
        }
    }

    fn pattern(text: &str) -> Pattern {
        match (text.strip_suffix("/*"), text.strip_suffix('*')) {
            (Some(path), _) => Pattern::Below(path.into()),
            (None, Some(path)) => Pattern::Starts(path.into()),
            (None, None) => Pattern::Exact(text.into()),
        }
    }

    #[test]
    fn patterns_meet_where_both_match() {
        for (a, b, both) in [
            ("/*", "/a", "/a"),
            ("/a/*", "/a*", "/a/*"),
            ("/a*", "/ab/*", "/ab/*"),
            ("/a*", "/ab*", "/ab*"),
            ("/a/*", "/ab*", "-"),
            ("/a", "/a/*", "/a"),
            ("/a", "/b", "-"),
            ("/a", "/a/b", "-"),
            ("/{any}/b", "/a/*", "/a/b"),
            ("/{any}/*", "/a", "/a"),
            ("/{any}/*", "/wp-*", "/wp-*"),
            ("/{any}/b", "/wp-*", "/wp-*"),
            ("/u/{any}/c", "/u/me/*", "/u/me/c"),
            ("/u/{any}", "/u/me/c", "-"),
        ] {
            for (a, b) in [(a, b), (b, a)] {
                let found = pattern(a).meet(&pattern(b)).map_or("-".into(), |both| both.text());
                assert_eq!(found, both, "{a} {b}");
            }
        }
    }

    #[test]
    fn letters_are_in_any_case_up_to_a_number() {
        let texts = |text: &str| {
            let (patterns, is_whole) = pattern(text).in_any_case();
            let texts: Vec<_> = patterns.iter().map(Pattern::text).collect();
            (texts.len(), texts.first().cloned().unwrap_or_default(), is_whole)
        };
        assert_eq!(texts("/1/ab/*"), (4, "/1/AB/*".into(), true));
        assert_eq!(texts("/admin*"), (32, "/ADMIN*".into(), true));
        assert_eq!(texts("/wp-login.php"), (32, "/WP-LOG*".into(), false));
        assert_eq!(texts("/hello/there/*"), (32, "/HELLO/*".into(), false));
        assert_eq!(texts("/{any}/%c3/*"), (1, "/{any}/%c3/*".into(), true));
    }
}
