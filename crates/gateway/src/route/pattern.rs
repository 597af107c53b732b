//! Path patterns of the configuration.

use super::normal_path::normal;
use std::fmt;
use std::str::FromStr;

/// A path pattern. `/a` matches this path alone, `/a/*` also every path below it, `/a*` every path that begins with
/// `/a`, and `/a/{id}/b` any segment in place of `{id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    pub(crate) segments: Vec<Segment>,
    pub(crate) end: End,
}

/// The end of a pattern, after its whole segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// No more text: the pattern matches this path alone.
    Alone,
    /// `/*`: the pattern also matches every path below.
    Below,
    /// `/a*`: a segment with this start; the pattern also matches every path below it.
    Starts(Box<[u8]>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Literal(Box<[u8]>),
    Any,
}

impl PathPattern {
    /// The pattern `/*`, which matches every path.
    pub(crate) fn all() -> Self {
        Self { segments: Vec::new(), end: End::Below }
    }

    /// Whether all paths of the pattern are below the path with these segments.
    pub(crate) fn is_below(&self, segments: &[&[u8]]) -> bool {
        let is_literal = |(segment, text): (&Segment, &&[u8])| match segment {
            Segment::Literal(literal) => **literal == **text,
            Segment::Any => false,
        };
        self.segments.len() + usize::from(self.end != End::Alone) > segments.len()
            && self.segments.iter().zip(segments).all(is_literal)
    }
}

/// Checks that cause warnings.
impl PathPattern {
    /// The normal form of a pattern that is not in normal form. Such a pattern matches no request, since requests are
    /// normalised first.
    pub(crate) fn in_usual_form(&self) -> Option<String> {
        let text = self.to_string();
        let (path, end) = match self.end {
            End::Alone => (&*text, ""),
            End::Below => (text.strip_suffix("/*")?, "/*"),
            // The pattern ends within a segment, so its normal form is unknown.
            End::Starts(_) => return None,
        };
        let usual = normal(path.as_bytes());
        (!path.is_empty() && *usual != *path.as_bytes())
            .then(|| format!("{}{end}", String::from_utf8_lossy(&usual).trim_end_matches('/')))
    }

    /// Whether some paths of the pattern begin with the segments of `prefix`.
    pub(crate) fn may_begin_with(&self, prefix: &Self) -> bool {
        for (at, wanted) in prefix.segments.iter().enumerate() {
            match (self.segments.get(at), wanted, &self.end) {
                (Some(Segment::Any), ..) | (_, Segment::Any, _) => {}
                (Some(Segment::Literal(own)), Segment::Literal(wanted), _) if own == wanted => {}
                (Some(_), ..) | (None, _, End::Alone) => return false,
                (None, Segment::Literal(wanted), End::Starts(start)) => return wanted.starts_with(start),
                (None, _, End::Below) => return true,
            }
        }
        true
    }
}

impl FromStr for PathPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            // Regular expressions and modifiers of nginx and HAProxy contain these characters, and a valid path does
            // not.
            let is_regex =
                text.starts_with(['~', '^', '=']) || text.contains(['^', '\\', '|', '[', ']', '?', '*']);
            let why = if is_regex { "a path takes no regular expressions and no modifiers" } else { why };
            format!("invalid path `{text}`: {why}: expected one such as /a, /a/*, /a* or /a/{{id}}/b")
        };
        let rest = text.strip_prefix('/').ok_or_else(|| wrong("no `/` at its beginning"))?;
        let (rest, end) = match rest.strip_suffix('*') {
            Some("") => return Ok(Self::all()),
            Some(rest) => match (rest.strip_suffix('/'), rest.rsplit_once('/').unwrap_or(("", rest))) {
                (Some(rest), _) => (Some(rest), End::Below),
                (None, (_, start)) if !start.bytes().all(is_plain) => {
                    return Err(wrong(&format!("invalid segment `{start}*`")));
                }
                (None, (before, start)) => {
                    (rest.contains('/').then_some(before), End::Starts(start.as_bytes().into()))
                }
            },
            None => (Some(rest), End::Alone),
        };
        let segment = |segment: &str| match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}'))
        {
            Some(name) if !name.is_empty() && !name.contains(['{', '}']) => Ok(Segment::Any),
            None if is_literal(segment) => Ok(Segment::Literal(segment.as_bytes().into())),
            Some(_) | None => Err(wrong(&format!("invalid segment `{segment}`"))),
        };
        let segments = rest.into_iter().flat_map(|rest| rest.split('/')).map(segment);
        Ok(Self { segments: segments.collect::<Result<_, _>>()?, end })
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
        match &self.end {
            End::Alone => Ok(()),
            End::Below => f.write_str("/*"),
            End::Starts(start) => write!(f, "/{}*", String::from_utf8_lossy(start)),
        }
    }
}

/// Whether a text is a valid segment (RFC 3986 section 3.3). Dot segments are invalid, since requests are matched
/// without them.
fn is_literal(segment: &str) -> bool {
    segment.bytes().all(is_plain) && segment != "." && segment != ".."
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()+,;=:@%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let literal = |text: &str| Segment::Literal(text.as_bytes().into());
        let starts = |text: &str| End::Starts(text.as_bytes().into());
        for (text, segments, end) in [
            ("/", vec![literal("")], End::Alone),
            ("/*", vec![], End::Below),
            ("/a", vec![literal("a")], End::Alone),
            ("/a/", vec![literal("a"), literal("")], End::Alone),
            ("/a/*", vec![literal("a")], End::Below),
            ("/a*", vec![], starts("a")),
            ("/a/wp-*", vec![literal("a")], starts("wp-")),
            ("/{id}/.*", vec![Segment::Any], starts(".")),
            ("/a/{id}/b", vec![literal("a"), Segment::Any, literal("b")], End::Alone),
            ("/{any}/*", vec![Segment::Any], End::Below),
        ] {
            let pattern = PathPattern { segments, end };
            assert_eq!(text.parse(), Ok(pattern.clone()), "{text}");
            assert_eq!(pattern.to_string().replace("{..}", "{id}").parse(), Ok(pattern), "{text}");
        }
        for text in [
            "", "a", "*", "a*", "/**", "/*/b", "/a*b", "/{a}*", "/{}", "/{a", "/a/../b", "/a/../b*", "/a b",
            "/a?b", "/{a}{b}",
        ] {
            let error = text.parse::<PathPattern>().unwrap_err();
            assert!(error.starts_with(&format!("invalid path `{text}`")), "{error}");
        }
    }
}
