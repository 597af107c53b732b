//! Routes by host, then by path.

use super::normal_path::normal;
use super::path_tree::Paths;
use super::pattern::PathPattern;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write as _;
use std::net::Ipv6Addr;

/// Routes by host. An exact host takes precedence over a wildcard, a longer wildcard over a shorter one, and every
/// wildcard over routes without a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    exact: HashMap<Box<[u8]>, Paths>,
    /// Routes with a wildcard, by the part after `*.`.
    below: HashMap<Box<[u8]>, Paths>,
    any: Paths,
    /// Whether any route depends on the path.
    reads_paths: bool,
    /// The only route, if it matches every request: then no request needs a lookup.
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

    /// Records that a route depends on the path, so that [`Self::path_in`] normalises it.
    pub(crate) fn set_reads_paths(&mut self) {
        self.reads_paths = true;
    }

    /// Records that this is the only route, and that it matches every request.
    pub(crate) fn set_catch_all(&mut self, route: usize) {
        self.catch_all = Some(route);
    }

    #[inline]
    pub(crate) fn catch_all(&self) -> Option<usize> {
        self.catch_all
    }

    /// The path to match routes against: the target's path in normal form, or `/` if no route depends on it.
    pub(crate) fn path_in<'a>(&self, target: &'a [u8]) -> Cow<'a, [u8]> {
        if self.reads_paths { normal(path_of(target)) } else { Cow::Borrowed(b"/") }
    }

    /// The most specific route that `fits` accepts, for a path in normal form. `authority` may include a port.
    pub(crate) fn find(&self, authority: &[u8], path: &[u8], fits: &impl Fn(usize) -> bool) -> Option<usize> {
        if self.exact.is_empty() && self.below.is_empty() {
            return self.any.find(path, fits);
        }
        let mut buffer = [0; LONGEST_HOST];
        let host = host_of(authority, &mut buffer);
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

pub(crate) fn path_of(target: &[u8]) -> &[u8] {
    memchr::memchr(b'?', target).map_or(target, |query| &target[..query])
}

/// The host in lower case, without port and trailing dot; an IPv6 address in canonical text form (RFC 5952).
pub(crate) fn host_of<'a>(authority: &'a [u8], buffer: &'a mut [u8; LONGEST_HOST]) -> &'a [u8] {
    if authority.first() == Some(&b'[') {
        return address_of(authority, buffer);
    }
    let end = memchr::memchr(b':', authority).unwrap_or(authority.len());
    let host = &authority[..end];
    let host = host.strip_suffix(b".").unwrap_or(host);
    if !host.iter().any(u8::is_ascii_uppercase) {
        return host;
    }
    // A route's host is at most as long as a DNS name, but the end of a longer host may match a wildcard.
    let host = &host[host.len().saturating_sub(LONGEST_HOST)..];
    let lower = &mut buffer[..host.len()];
    lower.copy_from_slice(host);
    lower.make_ascii_lowercase();
    lower
}

/// The bracketed IPv6 address in canonical text form (RFC 5952); `authority` itself if it does not contain a valid
/// address.
#[cold]
fn address_of<'a>(authority: &'a [u8], buffer: &'a mut [u8; LONGEST_HOST]) -> &'a [u8] {
    let address =
        memchr::memchr(b']', authority).and_then(|end| std::str::from_utf8(&authority[1..end]).ok());
    let address: Option<Ipv6Addr> = address.and_then(|address| address.parse().ok());
    let Some(address) = address else { return authority };
    let mut rest = &mut buffer[..];
    // An IPv6 address takes at most 45 characters, so the buffer suffices.
    let _ = write!(rest, "[{address}]");
    let left = rest.len();
    &buffer[..LONGEST_HOST - left]
}

/// The maximum length of a DNS name (RFC 1035 section 2.3.4).
pub(crate) const LONGEST_HOST: usize = 255;

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
            (Some("[::1]"), "/*"),
            (Some("[::ffff:192.0.2.1]"), "/*"),
            (Some("[2001:db8::a]"), "/*"),
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
            ("[::2]:80", "/", 0),
            ("[::1", "/", 0),
            ("[::1]:80", "/", 5),
            ("[0:0:0:0:0:0:0:1]", "/", 5),
            ("[0000:0000::0001]:8080", "/", 5),
            ("[0::0.0.0.1]", "/", 5),
            ("[::ffff:192.0.2.1]", "/", 6),
            ("[::FFFF:c000:201]:80", "/", 6),
            ("[0:0:0:0:0:ffff:c000:0201]", "/", 6),
            ("[2001:DB8::A]", "/", 7),
            ("[2001:db8:0:0::000A]:1", "/", 7),
            ("A.ORG.:80", "/", 1),
            ("X.A.ORG.", "/", 2),
            ("c.org", "/c?x=/d", 4),
            ("c.org", "/d", 0),
        ] {
            let found = hosts.find(authority.as_bytes(), &hosts.path_in(target.as_bytes()), &|_| true);
            assert_eq!(found, Some(route), "{authority}{target}");
        }
        // Hosts longer than a DNS name match by their domain, in lower and upper case.
        for authority in [format!("{}.a.org", "x".repeat(300)), format!("{}.A.Org:80", "X".repeat(300))] {
            assert_eq!(hosts.find(authority.as_bytes(), b"/", &|_| true), Some(2), "{authority}");
        }
    }
}
