//! Ambiguous paths: targets in which a server may read another path than the gateway's routes do. `normal_path.rs`
//! contains the readings.

use super::edits::PathEdit;
use super::hosts::path_of;
use super::normal_path::{Backslashes, Dots, Parameters, Reading, hex, normal, nul};

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

impl Reading {
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
