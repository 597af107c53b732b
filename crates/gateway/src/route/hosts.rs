//! Routes by host, then by path.

use super::paths::Paths;
use super::pattern::PathPattern;
use super::readings::normal;
use std::borrow::Cow;
use std::collections::HashMap;

/// Routes by host. A host alone comes before the longest domain that it is in, and that before any host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    exact: HashMap<Box<[u8]>, Paths>,
    /// By what follows the `*.`.
    below: HashMap<Box<[u8]>, Paths>,
    any: Paths,
    /// Paths matter: some routes have one, or look at it.
    reads_paths: bool,
    /// The one route, if it is for everything.
    catch_all: Option<usize>,
}

impl Hosts {
    /// Adds a route for a host in lower case (`example.org`, `*.example.org`, or `None` for any).
    pub(crate) fn insert(&mut self, host: Option<&str>, pattern: &PathPattern, route: usize) {
        let paths = match host.map(|host| (host.strip_prefix("*."), host)) {
            None => &mut self.any,
            Some((Some(domain), _)) => self.below.entry(domain.as_bytes().into()).or_default(),
            Some((None, host)) => self.exact.entry(host.as_bytes().into()).or_default(),
        };
        paths.insert(pattern, route);
        self.reads_paths |= !paths.ignores_path();
    }

    /// Notes that a route looks at paths.
    pub(crate) fn set_reads_paths(&mut self) {
        self.reads_paths = true;
    }

    /// Notes that this route is the only one, and for everything.
    pub(crate) fn set_catch_all(&mut self, route: usize) {
        self.catch_all = Some(route);
    }

    /// The one route, if it is for everything.
    #[inline]
    pub(crate) fn catch_all(&self) -> Option<usize> {
        self.catch_all
    }

    /// The path to find a route by. Borrowed if servers read it as routes do, or if paths do not matter.
    pub(crate) fn path_in<'a>(&self, target: &'a [u8]) -> Cow<'a, [u8]> {
        if self.reads_paths { normal(path_of(target)) } else { Cow::Borrowed(b"/") }
    }

    /// The most specific route that `fits`, of a path in normal form. `authority` may have a port.
    pub(crate) fn find(&self, authority: &[u8], path: &[u8], fits: &impl Fn(usize) -> bool) -> Option<usize> {
        if self.exact.is_empty() && self.below.is_empty() {
            return self.any.find(path, fits);
        }
        let mut lower = [0; LONGEST];
        let host = host_of(authority, &mut lower);
        self.exact
            .get(host)
            .and_then(|paths| paths.find(path, fits))
            .or_else(|| self.find_below(host, path, fits))
            .or_else(|| self.any.find(path, fits))
    }

    fn find_below(&self, host: &[u8], path: &[u8], fits: &impl Fn(usize) -> bool) -> Option<usize> {
        if self.below.is_empty() {
            return None;
        }
        let dots = memchr::memchr_iter(b'.', host);
        let mut domains = dots.filter_map(|dot| self.below.get(&host[dot + 1..]));
        domains.find_map(|paths| paths.find(path, fits))
    }
}

/// The target without its query.
pub(crate) fn path_of(target: &[u8]) -> &[u8] {
    memchr::memchr(b'?', target).map_or(target, |query| &target[..query])
}

/// The host in lower case, without port and final dot.
fn host_of<'a>(authority: &'a [u8], lower: &'a mut [u8; LONGEST]) -> &'a [u8] {
    let end = match authority.first() {
        Some(b'[') => memchr::memchr(b']', authority).map_or(authority.len(), |end| end + 1),
        _ => memchr::memchr(b':', authority).unwrap_or(authority.len()),
    };
    let host = &authority[..end];
    let host = host.strip_suffix(b".").unwrap_or(host);
    match lower.get_mut(..host.len()) {
        Some(lower) if host.iter().any(u8::is_ascii_uppercase) => {
            lower.copy_from_slice(host);
            lower.make_ascii_lowercase();
            lower
        }
        // A name that is longer is no DNS name, and is in no route.
        _ => host,
    }
}

/// RFC 1035 section 2.3.4.
const LONGEST: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_host_is_taken() {
        let mut hosts = Hosts::default();
        let routes = [
            (None, "/*"),
            (Some("a.org"), "/*"),
            (Some("*.a.org"), "/*"),
            (Some("*.b.a.org"), "/*"),
            (Some("c.org"), "/c"),
        ];
        for (route, (host, path)) in routes.into_iter().enumerate() {
            hosts.insert(host, &path.parse().unwrap(), route);
        }
        for (authority, target, route) in [
            ("a.org", "/", 1),
            ("A.Org:8080", "/", 1),
            ("a.org.", "/", 1),
            ("x.a.org", "/", 2),
            ("b.a.org", "/", 2),
            ("x.b.a.org", "/?q", 3),
            ("x.y.b.a.org:1", "/", 3),
            ("xa.org", "/", 0),
            ("", "/", 0),
            ("[::1]:80", "/", 0),
            ("c.org", "/c?x=/d", 4),
            ("c.org", "/d", 0),
        ] {
            let found = hosts.find(authority.as_bytes(), &hosts.path_in(target.as_bytes()), &|_| true);
            assert_eq!(found, Some(route), "{authority}{target}");
        }
    }
}
