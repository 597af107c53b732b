//! Ambiguous paths: targets in which a server may read another path than the gateway's routes do.

use super::edits::PathEdit;
use super::hosts::path_of;
use std::borrow::Cow;

/// The normal form of a path, which routes are matched against: unreserved characters are decoded, dot segments are
/// resolved (RFC 3986 section 6.2.2), and repeated slashes are merged. Borrowed if the path has no character that
/// servers treat differently.
pub(crate) fn normal(path: &[u8]) -> Cow<'_, [u8]> {
    let mut last = 0;
    // Paths are short, so one pass over the bytes is cheaper than a SIMD search.
    let is_plain = path.first() == Some(&b'/')
        && path.iter().all(|byte| {
            let follows_slash = std::mem::replace(&mut last, *byte) == b'/';
            !(matches!(byte, b'%' | b';' | b'\\') || follows_slash && matches!(byte, b'/' | b'.'))
        });
    if is_plain { Cow::Borrowed(path) } else { Cow::Owned(Reading::OF_ROUTES.of(path)) }
}

/// One of the ways in which servers read a path.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Whether an encoded slash separates segments.
    slashes: bool,
    backslashes: Backslashes,
    parameters: Parameters,
    /// Whether the path ends at an encoded NUL.
    nul: bool,
    dots: Dots,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backslashes {
    /// A backslash is a character like others.
    Kept,
    /// A backslash separates segments, and an encoded one does not (WHATWG URL Standard).
    Separate,
    /// A backslash separates segments, encoded or not.
    SeparateEncoded,
}

/// The treatment of a segment's parameters: its first semicolon and the text after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameters {
    /// The parameters are part of the segment.
    Kept,
    /// The parameters are removed after escapes are decoded.
    Removed,
    /// The parameters are removed before escapes are decoded, so an encoded slash in them does not end them.
    RemovedFirst,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dots {
    /// Dot segments are resolved after repeated slashes are merged.
    Resolved,
    /// Dot segments are resolved before repeated slashes are merged, so `..` may remove an empty segment (RFC 3986
    /// section 5.2.4).
    ResolvedFirst,
    /// Dot segments are kept, like other segments.
    Kept,
}

impl Reading {
    const OF_ROUTES: Self = Self {
        slashes: false,
        backslashes: Backslashes::Kept,
        parameters: Parameters::Kept,
        nul: false,
        dots: Dots::Resolved,
    };

    /// All readings that may differ for this path, apart from dot segments. The first one is the routes' reading.
    fn all_of(path: &[u8]) -> impl Iterator<Item = Self> {
        let has = |encoded: &[u8]| path.windows(3).any(|text| text.eq_ignore_ascii_case(encoded));
        let one_or_both = |both| if both { &[false, true][..] } else { &[false] };
        let slashes = one_or_both(has(b"%2f"));
        let nuls = one_or_both(nul(path).is_some());
        let backslashes = match (path.contains(&b'\\'), has(b"%5c")) {
            (false, false) => &[Backslashes::Kept][..],
            (true, true) => &[Backslashes::Kept, Backslashes::Separate, Backslashes::SeparateEncoded],
            _ => &[Backslashes::Kept, Backslashes::SeparateEncoded],
        };
        let parameters = match (path.contains(&b';'), has(b"%2f") || has(b"%5c")) {
            (false, _) => &[Parameters::Kept][..],
            (true, false) => &[Parameters::Kept, Parameters::Removed],
            (true, true) => &[Parameters::Kept, Parameters::Removed, Parameters::RemovedFirst],
        };
        let kept = slashes.iter().map(|slashes| Self { slashes: *slashes, ..Self::OF_ROUTES });
        kept.flat_map(|reading| backslashes.iter().map(move |it| Self { backslashes: *it, ..reading }))
            .flat_map(|reading| parameters.iter().map(move |it| Self { parameters: *it, ..reading }))
            .flat_map(|reading| nuls.iter().map(move |it| Self { nul: *it, ..reading }))
    }

    fn of(self, path: &[u8]) -> Vec<u8> {
        let end = if self.nul { nul(path) } else { None };
        let path = &path[..end.unwrap_or(path.len())];
        let is_end = |byte: &u8| *byte == b'/' || self.backslashes != Backslashes::Kept && *byte == b'\\';
        let path = match self.parameters {
            Parameters::RemovedFirst => self.decoded(&without_parameters(path, is_end)),
            Parameters::Kept | Parameters::Removed => self.decoded(path),
        };
        let below = if path.first().is_some_and(is_end) { &path[1..] } else { &path[..] };
        let mut segments: Vec<&[u8]> = Vec::new();
        let mut ends_in_slash = false;
        for segment in below.split(is_end) {
            let end = match self.parameters {
                Parameters::Removed => memchr::memchr(b';', segment),
                Parameters::Kept | Parameters::RemovedFirst => None,
            };
            let segment = &segment[..end.unwrap_or(segment.len())];
            let is_dots = self.dots != Dots::Kept && matches!(segment, b"." | b"..");
            ends_in_slash = is_dots || segment.is_empty();
            match segment {
                b"" if self.dots != Dots::ResolvedFirst => {}
                b"." if is_dots => {}
                b".." if is_dots => drop(segments.pop()),
                segment => segments.push(segment),
            }
        }
        if self.dots == Dots::ResolvedFirst {
            segments.retain(|segment| !segment.is_empty());
        }
        let mut out = Vec::with_capacity(path.len() + 2);
        for segment in &segments {
            out.push(b'/');
            out.extend_from_slice(segment);
        }
        if ends_in_slash || segments.is_empty() {
            out.push(b'/');
        }
        out
    }

    /// Decodes once the characters that are plain in this reading, and writes all other escapes in upper case.
    fn decoded(self, path: &[u8]) -> Vec<u8> {
        let is_plain = |byte: u8| match byte {
            b'/' => self.slashes,
            b'\\' => self.backslashes == Backslashes::SeparateEncoded,
            byte => byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
        };
        let mut out = Vec::with_capacity(path.len());
        let mut rest = path;
        while let Some(at) = memchr::memchr(b'%', rest) {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let Some(byte) = rest.get(1..3).and_then(hex) else {
                out.push(b'%');
                rest = &rest[1..];
                continue;
            };
            if is_plain(byte) {
                out.push(byte);
            } else {
                out.extend_from_slice(&rest[..3].to_ascii_uppercase());
            }
            rest = &rest[3..];
        }
        out.extend_from_slice(rest);
        out
    }
}

/// A path without the parameters of its segments. `is_end` returns true for the bytes that end a parameter.
fn without_parameters(path: &[u8], is_end: impl Fn(&u8) -> bool) -> Vec<u8> {
    let mut is_parameter = false;
    let mut out = path.to_vec();
    out.retain(|byte| {
        is_parameter = !is_end(byte) && (is_parameter || *byte == b';');
        !is_parameter
    });
    out
}

fn nul(path: &[u8]) -> Option<usize> {
    path.windows(3).position(|text| text == b"%00")
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(digits[0])? * 16 + digit(digits[1])?) as u8)
}

/// The routes that a request can take, by path.
pub(crate) trait Routes {
    /// The route of a path in normal form.
    fn of(&self, path: &[u8]) -> Option<usize>;
    /// Whether the gateway itself responds on a route, so that its requests reach no server.
    fn is_answered(&self, route: usize) -> bool;
}

/// Whether a server may read the target as a path of another route than `found`, or as a path that `edit` should make
/// unreachable. The target is unambiguous if all of these conditions hold:
///
/// - Encoded slashes, backslashes, parameters and an encoded NUL change neither the route nor the effect of `edit`, in
///   any reading.
/// - The paths that servers read if they keep dot segments, or resolve them before they merge slashes, have a route to
///   a server.
/// - Servers that read `//name` at the start as a host do not read the rest as a path to which the gateway itself
///   responds, however they treat dot segments.
#[cold]
pub(crate) fn is_ambiguous(
    target: &[u8],
    found: usize,
    edit: Option<&PathEdit>,
    routes: &impl Routes,
) -> bool {
    let path = path_of(target);
    let normal = normal(path);
    // The gateway sends an edited path in normal form.
    let sent = if edit.is_some() { &normal } else { path };
    let is_kept = |path: &[u8]| routes.of(path).is_none_or(|route| routes.is_answered(route));
    let is_another = |reading: Reading| {
        let read = reading.of(sent);
        routes.of(&read) != Some(found)
            || edit.is_some_and(|edit| reading.of(&edit.changed(&normal)) != edit.changed(&read))
            || [Dots::ResolvedFirst, Dots::Kept].into_iter().any(|dots| {
                let other = Reading { dots, ..reading }.of(sent);
                other != read && is_kept(&other)
            })
    };
    let below = below_host(sent);
    let is_below_host = |reading: Reading| {
        [Dots::Resolved, Dots::ResolvedFirst, Dots::Kept].into_iter().any(|dots| {
            let read = below.map(|path| Reading { dots, ..reading }.of(path));
            read.and_then(|path| routes.of(&path)).is_some_and(|route| routes.is_answered(route))
        })
    };
    Reading::all_of(sent).any(|reading| is_another(reading) || is_below_host(reading))
}

/// The path after a leading `//host`; `/` if nothing follows. `None` if the path does not begin with two slashes or
/// backslashes. Some servers parse the first segment as a host, as browsers and Node.js do in a relative reference
/// (WHATWG URL Standard).
fn below_host(path: &[u8]) -> Option<&[u8]> {
    let is_slash = |byte: &u8| b"/\\".contains(byte);
    let host = path.iter().position(|byte| !is_slash(byte)).filter(|slashes| *slashes > 1)?;
    let rest = &path[host..];
    Some(rest.iter().position(is_slash).map_or(b"/", |at| &rest[at..]))
}

/// Whether servers are known to read the target's path in different ways, regardless of the routes.
#[cold]
pub(crate) fn is_unusual(target: &[u8]) -> bool {
    let path = path_of(target);
    let is_dots = |segment: &[u8]| matches!(segment, b"." | b"..");
    let encodes_unusual = |text: &[u8]| {
        text[0] == b'%'
            && hex(&text[1..]).is_none_or(|byte| byte.is_ascii_control() || b"/\\;%".contains(&byte))
    };
    path.iter().any(|byte| b";\\".contains(byte))
        || path.windows(2).any(|pair| pair == b"//")
        || path.windows(3).any(encodes_unusual)
        || path.iter().rev().take(2).any(|byte| *byte == b'%')
        || Reading::OF_ROUTES.decoded(path).split(|byte| *byte == b'/').any(is_dots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{Hosts, PathPattern};
    use proptest::prelude::*;

    #[test]
    fn spellings_of_a_path_have_one_form() {
        for (path, form) in [
            ("/a/b", "/a/b"),
            ("/a.b/c.d", "/a.b/c.d"),
            ("/%61/b", "/a/b"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%252fb", "/a%252fb"),
            ("/a;b/c", "/a;b/c"),
            ("/a\\b", "/a\\b"),
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

    /// Routes by path, and the numbers of those on which the gateway itself responds.
    struct Table(Hosts, Vec<usize>);

    impl Routes for Table {
        fn of(&self, path: &[u8]) -> Option<usize> {
            self.0.find(b"", path, &|_| true)
        }

        fn is_answered(&self, route: usize) -> bool {
            self.1.contains(&route)
        }
    }

    /// Routes with these paths; a leading `!` denies one.
    fn table(patterns: &[&str]) -> Table {
        let mut table = Table(Hosts::default(), Vec::new());
        for (route, pattern) in patterns.iter().enumerate() {
            let path: PathPattern = pattern.trim_start_matches('!').parse().unwrap();
            table.0.insert(None, &path, route);
            if pattern.starts_with('!') {
                table.1.push(route);
            }
        }
        table
    }

    /// The route on which a request for the target reaches a server; `None` if it does not.
    fn accepted(table: &Table, target: &str, edit: Option<&PathEdit>) -> Option<usize> {
        let target = target.as_bytes();
        let found = table.of(&normal(path_of(target)))?;
        (!table.is_answered(found) && !is_ambiguous(target, found, edit, table)).then_some(found)
    }

    #[test]
    fn a_path_reaches_a_server_if_all_readings_are_on_one_route() {
        let site = &["!/admin/*", "/*", "/pub/*", "/projects/{id}/tree/*"][..];
        let closed = &["/pub/*", "/x/y"][..];
        for (patterns, target, route) in [
            // Encoded slashes.
            (site, "/admin%2fsecret", None),
            (site, "/admin%2Fsecret", None),
            (site, "/x/..%2fadmin/secret", None),
            (site, "/x%2f..%2fadmin", None),
            (site, "/%2fadmin/x", None),
            (site, "/pub/..%2f", None),
            (site, "/pub/..%2fx", None),
            (site, "/pub%2fx", None),
            (site, "/pub/a%2f..%2f..%2fadmin", None),
            (site, "/%2e%2e%2fadmin", None),
            (site, "/projects/a%2fb/tree/x", None),
            (site, "/@scope%2fname", Some(1)),
            (site, "/projects/a%2Fb", Some(1)),
            (site, "/pub/a%2fb", Some(2)),
            (site, "/pub/..%2fpub/x", Some(2)),
            (site, "/pub/x?next=/..%2fadmin", Some(2)),
            (closed, "/pub/..%2fadmin", None),
            (closed, "/x%2fy", None),
            (closed, "/pub/a%2fb", Some(0)),
            // Escapes are decoded once.
            (site, "/admin%252fsecret", Some(1)),
            (site, "/%2561dmin/x", Some(1)),
            // Dot segments that a server keeps, or resolves as in RFC 3986.
            (site, "/admin/../x", None),
            (site, "/admin/%2e%2e/x", None),
            (site, "/admin//../x", None),
            (site, "/admin///../../x", None),
            (site, "/x/../pub/y", Some(2)),
            (site, "/%2e%2e/%2e/x", Some(1)),
            (closed, "/x/../pub/y", None),
            (closed, "/pub/x/../y", Some(0)),
            // Repeated slashes.
            (site, "//admin/x", None),
            (site, "//x/admin/secret", None),
            (site, "///x/admin", None),
            (site, "//x/admin//..", None),
            (site, "/\\x/admin//..", None),
            (site, "//x/admin/../y", None),
            (site, "//x/y/../z", Some(1)),
            (site, "//pub/x", Some(2)),
            (site, "/x//y", Some(1)),
            (closed, "//pub//x", Some(0)),
            // Backslashes.
            (site, "/admin\\x", None),
            (site, "/admin%5cx", None),
            (site, "/x\\..\\admin", None),
            (site, "/x/..%5Cadmin", None),
            (site, "/./admin\\..%5c", None),
            (site, "/admin\\..%5cx", None),
            (site, "/\\x\\admin", None),
            (site, "/pub/a%5cb", Some(2)),
            // Parameters.
            (site, "/admin;x/y", None),
            (site, "/admin;/y", None),
            (site, "/x/..;/admin", None),
            (site, "/x/..;a=b%2fadmin", None),
            // A server may remove parameters, including encoded slashes, before it decodes.
            (site, "/;%2f2f/admin%2f", None),
            (site, "/;a%2fb/admin/x", None),
            (site, "/x/..;%2f/admin", None),
            (site, "/;%5cx\\admin", None),
            (site, "/pub/x;a%2fb/y", Some(2)),
            (site, "/pub/x;v=1/y", Some(2)),
            // NUL.
            (site, "/admin%00x", None),
            (site, "/x/..%2fadmin%00/../../y", None),
            (site, "/pub%00x", None),
            (site, "/pub/x%00", Some(2)),
            (site, "/x%0d%0a%00", Some(1)),
        ] {
            assert_eq!(accepted(&table(patterns), target, None), route, "{patterns:?} {target}");
        }
    }

    #[test]
    fn what_is_changed_about_a_path_is_the_same_in_all_readings() {
        let any = &["/*"][..];
        for (patterns, strip, add, target, passes) in [
            (&["/pub/*", "/*"][..], "/pub", "", "/pub/..%2fx", false),
            (any, "", "/files", "/..%2fx", false),
            (any, "", "/files", "/a%2f..%2f..%2fx", false),
            (any, "", "/files", "/..;/x", false),
            (any, "", "/files", "/..\\x", false),
            (any, "", "/files", "/a%2fb", true),
            (any, "", "/files", "/../x", true),
            (any, "/pub", "/files", "/pub%2fx", false),
            (any, "/pub", "/files", "/pub/..%2f..%2fx", false),
            (any, "/pub", "/files", "/pub/a%2f..%2fx", true),
            (any, "/pub", "", "/pub/a%2fb", true),
        ] {
            let edit = PathEdit { strip: strip.as_bytes().into(), add: add.as_bytes().into() };
            let found = accepted(&table(patterns), target, Some(&edit));
            assert_eq!(found.is_some(), passes, "{patterns:?} {strip} {add} {target}");
        }
    }

    #[test]
    fn unusual_paths() {
        for target in [
            "/a%2fb",
            "/a\\b",
            "/a%5Cb",
            "/a;b",
            "/a%3bb",
            "/a/../b",
            "/a/%2e./b",
            "/.",
            "//a",
            "/a//",
            "/%00",
            "/%7f",
            "/%0a",
            "/%2541",
            "/%",
            "/a%4",
            "/%zz",
        ] {
            assert!(is_unusual(target.as_bytes()), "{target}");
        }
        for target in ["/", "/a/b.c/..d/.e", "/%20/%C3%A9/%61", "/a?b//c;d/../%2f", "/a/"] {
            assert!(!is_unusual(target.as_bytes()), "{target}");
        }
    }

    fn percent_decoded(path: &str, keeps: &str) -> String {
        let mut out = String::new();
        let mut chars = path.chars();
        while let Some(char) = chars.next() {
            let code = if char == '%' { chars.as_str().get(..2) } else { None };
            match code.and_then(|code| u8::from_str_radix(code, 16).ok()).map(char::from) {
                Some(byte) if !keeps.contains(byte) => {
                    out.push(byte);
                    chars.nth(1);
                }
                _ => out.push(char),
            }
        }
        out
    }

    /// The segments that a server reads if it resolves dot segments after merging slashes (`merges`) or before.
    fn resolved(path: &str, merges: bool) -> Vec<&str> {
        let mut out = Vec::new();
        for segment in path.split('/').skip(1) {
            match segment {
                "." => {}
                "" if merges => {}
                ".." => drop(out.pop()),
                segment => out.push(segment),
            }
        }
        out.retain(|segment| !segment.is_empty());
        out
    }

    fn without_parameters(path: &str) -> String {
        let segments = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default());
        segments.collect::<Vec<_>>().join("/")
    }

    /// The first segment as various servers read it, by their documentation and by experiment.
    fn first_segments(path: &str) -> Vec<String> {
        let decoded = percent_decoded(path, "");
        let first = |segments: &[&str]| segments.first().copied().unwrap_or_default().to_owned();
        let kept = |path: &str| first(&path.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>());
        let backslashes = |path: &str| path.replace('\\', "/");
        let url = backslashes(&percent_decoded(path, "/\\;%"));
        let of_url = match url.starts_with("//") {
            true => url
                .trim_start_matches('/')
                .split_once('/')
                .map_or(String::new(), |(_, rest)| format!("/{rest}")),
            false => url,
        };
        vec![
            // nginx and Go, Express, Flask and Django.
            first(&resolved(&decoded, true)),
            kept(path),
            kept(&decoded),
            // Jetty; Tomcat, which decodes slashes if configured to.
            first(&resolved(&percent_decoded(&without_parameters(path), "/"), false)),
            first(&resolved(&percent_decoded(&without_parameters(path), ""), true)),
            // IIS, and `new URL(..)` of Node.js.
            first(&resolved(&backslashes(&decoded), true)),
            first(&resolved(&of_url, false)),
            // A C library, for which the path ends at a NUL.
            first(&resolved(decoded.split('\0').next().unwrap_or_default(), true)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// No spelling bypasses a route: no server reads a forwarded path as one that the gateway denies.
        #[test]
        fn no_path_that_reaches_a_server_is_a_denied_one_to_it(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "/", "//", "%2f", "%2F", "\\", "%5c", ";", ";a=b", ".", "..", "%2e", "%2E%2e", "%25", "%00", "%",
                    "admin", "%61dmin", "admi%6E", "x", "pub", "2f", "5c",
                ]),
                0..9,
            )
        ) {
            let target = format!("/{}", parts.concat());
            let table = table(&["!/admin/*", "/*", "/pub/*"]);
            if accepted(&table, &target, None).is_some() {
                prop_assert!(!first_segments(&target).contains(&"admin".to_owned()), "{}", target);
            }
        }
    }
}
