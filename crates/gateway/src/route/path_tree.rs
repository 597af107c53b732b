//! The routes of one host by path: a tree of segments, so a lookup among ten thousand routes takes little more time
//! than with one.

use super::pattern::{End, PathPattern, Segment};
use std::collections::HashMap;

/// Routes by path. The deepest match wins. At each depth, a literal segment takes precedence over a segment prefix
/// (`/a*`, the longest first), a segment prefix over `{id}`, and an exact path over one with `/*`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    literal: HashMap<Box<[u8]>, Node>,
    /// Routes for segments with this start, the longest start first.
    starts: Vec<(Box<[u8]>, Vec<usize>)>,
    any: Option<Box<Node>>,
    /// Routes for exactly this path, in the order of insertion.
    exact: Vec<usize>,
    /// Routes for this path and every path below it.
    prefix: Vec<usize>,
}

impl Paths {
    /// Adds a route. Of several routes for one path, the one inserted first takes precedence.
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

    /// The most specific route that `fits` accepts, for a path in normal form.
    pub(crate) fn find(&self, path: &[u8], fits: &impl Fn(usize) -> bool) -> Option<usize> {
        let below = path.strip_prefix(b"/").unwrap_or(path);
        self.root.find(Some(below), fits)
    }

    /// Whether all routes are for `/*`, so that the path does not matter.
    pub(crate) fn ignores_path(&self) -> bool {
        self.root.literal.is_empty() && self.root.starts.is_empty() && self.root.any.is_none()
    }
}

impl Node {
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

    /// The route for the segments in `rest`; `rest` is `None` after the last segment.
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

#[cfg(test)]
mod tests {
    use super::super::normal_path::normal;
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
}
