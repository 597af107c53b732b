//! Paths as operators write them.

use std::fmt;
use std::str::FromStr;

/// `/a` alone, `/a/*` for it and everything below, `/a/{id}/b` with any segment in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    pub(crate) segments: Vec<Segment>,
    /// Everything below belongs to it, too.
    pub(crate) is_prefix: bool,
}

/// A part between slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Literal(Box<[u8]>),
    Any,
}

impl PathPattern {
    /// Every path.
    pub(crate) fn all() -> Self {
        Self { segments: Vec::new(), is_prefix: true }
    }
}

impl FromStr for PathPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            |why: &str| format!("invalid path `{text}`: {why}: expected one such as /a, /a/* or /a/{{id}}/b");
        let rest = text.strip_prefix('/').ok_or_else(|| wrong("no `/` at its beginning"))?;
        let (rest, is_prefix) = match rest.strip_suffix('*') {
            Some("") => ("", true),
            Some(rest) => (rest.strip_suffix('/').ok_or_else(|| wrong("`*` beside a `/` only"))?, true),
            None => (rest, false),
        };
        if is_prefix && rest.is_empty() {
            return Ok(Self::all());
        }
        let segment = |segment: &str| match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}'))
        {
            Some(name) if !name.is_empty() && !name.contains(['{', '}']) => Ok(Segment::Any),
            None if is_literal(segment) => Ok(Segment::Literal(segment.as_bytes().into())),
            Some(_) | None => Err(wrong(&format!("invalid segment `{segment}`"))),
        };
        let segments = rest.split('/').map(segment).collect::<Result<_, _>>()?;
        Ok(Self { segments, is_prefix })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                Segment::Literal(text) => write!(f, "/{}", String::from_utf8_lossy(text))?,
                Segment::Any => f.write_str("/{..}")?,
            }
        }
        if self.is_prefix { f.write_str("/*") } else { Ok(()) }
    }
}

/// What a path may have between slashes (RFC 3986 section 3.3), in the form that requests are compared in.
fn is_literal(segment: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()+,;=:@%".contains(&byte);
    segment.bytes().all(allowed) && segment != "." && segment != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let literal = |text: &str| Segment::Literal(text.as_bytes().into());
        for (text, segments, is_prefix) in [
            ("/", vec![literal("")], false),
            ("/*", vec![], true),
            ("/a", vec![literal("a")], false),
            ("/a/", vec![literal("a"), literal("")], false),
            ("/a/*", vec![literal("a")], true),
            ("/a/{id}/b", vec![literal("a"), Segment::Any, literal("b")], false),
            ("/{any}/*", vec![Segment::Any], true),
        ] {
            assert_eq!(text.parse(), Ok(PathPattern { segments, is_prefix }), "{text}");
        }
        for text in ["", "a", "*", "/a*", "/*/b", "/{}", "/{a", "/a/../b", "/a b", "/a?b", "/{a}{b}"] {
            let error = text.parse::<PathPattern>().unwrap_err();
            assert!(error.starts_with(&format!("invalid path `{text}`")), "{error}");
        }
    }
}
