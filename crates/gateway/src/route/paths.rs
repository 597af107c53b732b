//! Routes of one host by path: a tree of segments, so that ten thousand cost little more than one.

use super::pattern::{End, PathPattern, Segment};
use std::borrow::Cow;
use std::collections::HashMap;

/// Routes by path. The deepest that fits comes first; a literal segment comes before the beginning of one (of those, the
/// longest first) and that before any segment; a path alone comes before everything below it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    literal: HashMap<Box<[u8]>, Node>,
    /// Routes for all that begins so, the longest beginning first.
    starts: Vec<(Box<[u8]>, Vec<usize>)>,
    any: Option<Box<Node>>,
    /// Routes for this path alone, in their order.
    exact: Vec<usize>,
    /// Routes for this path and everything below it.
    prefix: Vec<usize>,
}

impl Paths {
    /// Adds a route; of several for one path the first comes first.
    pub(crate) fn insert(&mut self, pattern: &PathPattern, route: usize) {
        let mut node = &mut self.root;
        for segment in &pattern.segments {
            node = match segment {
                Segment::Literal(text) => node.literal.entry(text.clone()).or_default(),
                Segment::Any => node.any.get_or_insert_default(),
            };
        }
        match &pattern.end {
            End::Alone => &mut node.exact,
            End::Below => &mut node.prefix,
            End::Starts(start) => node.starting(start),
        }
        .push(route);
    }

    /// The route for a path in normal form that `fits`.
    pub(crate) fn find(&self, path: &[u8], fits: &impl Fn(usize) -> bool) -> Option<usize> {
        let below = path.strip_prefix(b"/").unwrap_or(path);
        self.root.find(Some(below), fits)
    }

    /// Whether every request takes the same look here, whatever its path.
    pub(crate) fn ignores_path(&self) -> bool {
        self.root.literal.is_empty() && self.root.starts.is_empty() && self.root.any.is_none()
    }
}

impl Node {
    /// The routes for all that begins so.
    fn starting(&mut self, start: &[u8]) -> &mut Vec<usize> {
        let at = match self.starts.iter().position(|(known, _)| **known == *start) {
            Some(at) => at,
            None => {
                let at = self.starts.partition_point(|(known, _)| known.len() > start.len());
                self.starts.insert(at, (start.into(), Vec::new()));
                at
            }
        };
        &mut self.starts[at].1
    }

    /// `rest`: the segments that follow; `None` after the last one.
    fn find(&self, rest: Option<&[u8]>, fits: &impl Fn(usize) -> bool) -> Option<usize> {
        let first = |routes: &[usize]| routes.iter().copied().find(|route| fits(*route));
        let Some(below) = rest else { return first(&self.exact).or_else(|| first(&self.prefix)) };
        let (segment, rest) = match memchr::memchr(b'/', below) {
            Some(at) => (&below[..at], Some(&below[at + 1..])),
            None => (below, None),
        };
        let literal = if self.literal.is_empty() { None } else { self.literal.get(segment) };
        literal
            .and_then(|node| node.find(rest, fits))
            .or_else(|| {
                self.starts
                    .iter()
                    .filter(|(start, _)| below.starts_with(start))
                    .find_map(|(_, routes)| first(routes))
            })
            .or_else(|| self.any.as_ref().filter(|_| !segment.is_empty())?.find(rest, fits))
            .or_else(|| first(&self.prefix))
    }
}

/// The path in the form that routes are compared in: what the percent-encoding need not hide is plain, dot segments are
/// resolved (RFC 3986 section 6.2.2), and several slashes are one. So no spelling leads around a route.
pub(crate) fn normal(path: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = path.first() == Some(&b'/')
        && !path.contains(&b'%')
        && !path.windows(2).any(|pair| pair == b"//" || pair == b"/.");
    if is_plain { Cow::Borrowed(path) } else { Cow::Owned(resolved(&decoded(path))) }
}

fn decoded(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = path.get(at) {
        match (byte, path.get(at + 1..at + 3).and_then(hex)) {
            (b'%', Some(byte)) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(byte);
                at += 3;
            }
            (b'%', Some(byte)) => {
                out.extend_from_slice(format!("%{byte:02X}").as_bytes());
                at += 3;
            }
            (byte, _) => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

fn hex(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(text, 16).ok()
}

fn resolved(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut ends_in_slash = false;
    for segment in path.split(|byte| *byte == b'/') {
        ends_in_slash = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let mut out = vec![b'/'];
    out.extend_from_slice(&segments.join(&b'/'));
    if ends_in_slash && !segments.is_empty() {
        out.push(b'/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(patterns: &[&str], path: &str) -> Option<usize> {
        let mut paths = Paths::default();
        for (route, pattern) in patterns.iter().enumerate() {
            paths.insert(&pattern.parse().unwrap(), route);
        }
        paths.find(&normal(path.as_bytes()), &|_| true)
    }

    #[test]
    fn the_most_specific_path_is_taken() {
        let patterns = ["/*", "/a/*", "/a/b", "/a/{id}/c", "/a/b/c", "/", "/a/{id}/*", "/d/"];
        for (path, route) in [
            ("/", 5),
            ("/x", 0),
            ("/ax", 0),
            ("/a", 1),
            ("/a/", 1),
            ("/a/b", 2),
            ("/a/b/c", 4),
            ("/a/x/c", 3),
            ("/a/x", 6),
            ("/a/x/y/z", 6),
            ("/a/b/x", 6),
            ("/d/", 7),
            ("/d", 0),
        ] {
            assert_eq!(found(&patterns, path), Some(route), "{path}");
        }
        assert_eq!(found(&["/a"], "/b"), None);
        assert_eq!(found(&["/a"], "/a/"), None);
    }

    #[test]
    fn a_path_may_be_the_beginning_of_a_segment() {
        let patterns = ["/*", "/wp-*", "/wp-admin/*", "/wp-ad*", "/{any}/c", "/a/.*", "/a/*", "/wp-json"];
        for (path, route) in [
            ("/", 0),
            ("/wp", 0),
            ("/wp-", 1),
            ("/wp-x/y", 1),
            ("/wp-x/c", 1),
            ("/wp-admin", 2),
            ("/wp-admin/x", 2),
            ("/wp-add", 3),
            ("/wp-json", 7),
            ("/wp-json/x", 1),
            ("/WP-x", 0),
            ("/%77p-x", 1),
            ("/x/../wp-x", 1),
            ("/x/c", 4),
            ("/a/.git/config", 5),
            ("/a/git", 6),
        ] {
            assert_eq!(found(&patterns, path), Some(route), "{path}");
        }
    }

    #[test]
    fn a_route_that_does_not_fit_leaves_the_path_to_the_next() {
        let mut paths = Paths::default();
        for (route, pattern) in ["/*", "/a/*", "/a/b", "/a/b"].iter().enumerate() {
            paths.insert(&pattern.parse().unwrap(), route);
        }
        for (fitting, route) in [
            (&[0, 1, 2, 3][..], Some(2)),
            (&[0, 1, 3], Some(3)),
            (&[0, 1], Some(1)),
            (&[0], Some(0)),
            (&[], None),
        ] {
            assert_eq!(paths.find(b"/a/b", &|route| fitting.contains(&route)), route);
        }
    }

    #[test]
    fn spellings_of_a_path_have_one_form() {
        for (path, form) in [
            ("/a/b", "/a/b"),
            ("/a.b/c.d", "/a.b/c.d"),
            ("/%61/b", "/a/b"),
            ("/a%2fb", "/a%2Fb"),
            ("/a/./b", "/a/b"),
            ("/x/../a", "/a"),
            ("/x/%2e%2E/a", "/a"),
            ("/../../a", "/a"),
            ("//a///b", "/a/b"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/a//", "/a/"),
            ("/%", "/%"),
            ("/%zz%4", "/%zz%4"),
            ("/.hidden", "/.hidden"),
            ("", "/"),
            ("*", "/*"),
        ] {
            assert_eq!(String::from_utf8_lossy(&normal(path.as_bytes())), form, "{path}");
        }
    }
}
