//! The paths of the admin address and of the metrics address.

use super::{Admin, Response};
use crate::config::document::Rights;
use Handler::{Bodied, Named, Plain, Queried};
use weir_http1::RequestHead;

/// All paths, in the order of docs/gateway/monitoring.md. The index and the 404 and 405 responses follow from this
/// table.
static PATHS: [Path; 14] = [
    path("/", Rights::All, &[("GET", Plain(|admin| Response::text(200, index(admin.rights))))]),
    path("/metrics", Rights::Read, &[("GET", Plain(Admin::metrics))]),
    path("/status", Rights::Read, &[("GET", Plain(Admin::report))]),
    path("/health", Rights::Read, &[("GET", Plain(Admin::health))]),
    path("/ready", Rights::Read, &[("GET", Plain(Admin::readiness))]),
    path("/config", Rights::All, &[("GET", Plain(|admin| Response::text(200, admin.config())))]),
    path("/services", Rights::All, &[("GET", Named(|admin, _| admin.show_services()))]),
    path("/services/NAME", Rights::All, &[("GET", Named(|admin, names| admin.show_service(&names.name)))]),
    path(
        "/services/NAME/servers",
        Rights::All,
        &[
            ("GET", Named(|admin, names| admin.show_service(&names.name))),
            ("PUT", Bodied(|admin, names, body| admin.replace_servers(&names.name, body))),
            ("POST", Bodied(|admin, names, body| admin.add_server(&names.name, body))),
            ("DELETE", Named(|admin, names| admin.reset_servers(&names.name))),
        ],
    ),
    path(
        "/services/NAME/servers/SERVER",
        Rights::All,
        &[
            ("GET", Named(|admin, names| admin.show_server(&names.name, &names.server))),
            ("POST", Queried(|admin, names, query| admin.change_server(&names.name, &names.server, query))),
            ("DELETE", Named(|admin, names| admin.remove_server(&names.name, &names.server))),
        ],
    ),
    path("/certificates", Rights::All, &[("GET", Named(|admin, _| admin.show_certificates()))]),
    path(
        "/certificates/NAME",
        Rights::All,
        &[
            ("GET", Named(|admin, names| admin.show_certificate(&names.name))),
            ("PUT", Bodied(|admin, names, body| admin.replace_certificate(&names.name, body))),
            ("DELETE", Named(|admin, names| admin.reset_certificate(&names.name))),
        ],
    )
    .with_plain_names(),
    path("/reload", Rights::All, &[("POST", Plain(Admin::reload))]),
    path("/upgrade", Rights::All, &[("POST", Plain(Admin::upgrade))]),
];

/// A path, its methods and their handlers.
struct Path {
    /// The path as in the documentation: `NAME` stands for a segment, `SERVER` for the rest.
    template: &'static str,
    /// The minimum rights of an address that serves the path.
    rights: Rights,
    /// The methods and their handlers. A handler of GET also serves HEAD.
    methods: &'static [(&'static str, Handler)],
    /// Whether the names in the path may be percent-encoded.
    has_encoded_names: bool,
}

/// A handler. The variants say which parts of a request the handler takes.
#[derive(Clone, Copy)]
enum Handler {
    /// Ignores names, query and body.
    Plain(fn(&Admin) -> Response),
    /// Takes names, and neither a query nor a body.
    Named(fn(&Admin, &Names) -> Response),
    /// Takes names and parameters in the query, and no body.
    Queried(fn(&Admin, &Names, Option<&[u8]>) -> Response),
    /// Takes names and a body, and no query.
    Bodied(fn(&Admin, &Names, &[u8]) -> Response),
}

/// The names of a service or certificate, and of a server, in a path.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names {
    name: String,
    server: String,
}

/// The parts of a request head that determine its handler.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    method: &'a [u8],
    path: &'a [u8],
    query: Option<&'a [u8]>,
    has_body: bool,
}

impl<'a> Asked<'a> {
    pub(super) fn of(head: &RequestHead, buf: &'a [u8]) -> Self {
        let mut parts = head.path.of(buf).splitn(2, |byte| *byte == b'?');
        Self {
            method: head.method_span.of(buf),
            path: parts.next().unwrap_or_default(),
            query: parts.next(),
            has_body: !head.framing.is_empty(),
        }
    }

    /// Whether the request is for this path, with any method.
    pub(super) fn is_for(self, path: &str) -> bool {
        self.path == path.as_bytes()
    }

    /// Whether the request's handler takes its body.
    pub(super) fn takes_body(self, rights: Rights) -> bool {
        let handler = find(rights, self.path).and_then(|(path, _)| path.handler(self.method));
        matches!(handler, Some(Bodied(_)))
    }
}

/// Responds to a request. `body` is empty unless [`Asked::takes_body`].
pub(super) fn respond(admin: &Admin, asked: Asked<'_>, body: &[u8]) -> Response {
    let Some((path, names)) = find(admin.rights, asked.path) else { return not_found(admin.rights) };
    let Some(handler) = path.handler(asked.method) else {
        return not_allowed(admin.rights, &path.allowed(|_| true));
    };
    // If only other methods of this path take a query, the client probably used the wrong method: respond with 405.
    let with_query = path.allowed(|handler| matches!(handler, Queried(_)));
    match handler {
        Named(_) | Bodied(_) if asked.query.is_some() && !with_query.is_empty() => {
            not_allowed(admin.rights, &with_query)
        }
        Named(_) if asked.query.is_some() => Response::text(400, "expected no `?`\n"),
        Bodied(_) if asked.query.is_some() => {
            Response::text(400, "expected no `?`: parameters are in the body\n")
        }
        Named(_) if asked.has_body => Response::text(400, "expected no body\n"),
        Queried(_) if asked.has_body => {
            Response::text(400, "expected no body: parameters follow the path and a `?`\n")
        }
        Plain(handle) => handle(admin),
        Named(handle) => handle(admin, &names),
        Queried(handle) => handle(admin, &names, asked.query),
        Bodied(handle) => handle(admin, &names, body),
    }
}

/// The body of the response to `/`: a line for each path of an address, with its methods.
fn index(rights: Rights) -> String {
    let line = |path: &Path| format!("{:<30} {}\n", path.template, path.allowed(|_| true).join(", "));
    served(rights).map(line).collect()
}

fn not_found(rights: Rights) -> Response {
    let templates: Vec<_> = served(rights).map(|path| path.template).collect();
    let limit = match rights {
        Rights::All => "",
        Rights::Read => ": the [metrics] address has no others",
    };
    Response::text(404, format!("expected one of {}{limit}\n", templates.join(", ")))
}

/// The 405 response, which lists the `allowed` methods (RFC 9110 section 15.5.6).
fn not_allowed(rights: Rights, allowed: &[&str]) -> Response {
    let words = match allowed {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => allowed.concat(),
    };
    let limit = match rights {
        Rights::All => "",
        Rights::Read => ": nothing can be changed by the [metrics] address",
    };
    Response { allow: Some(allowed.join(", ")), ..Response::text(405, format!("expected {words}{limit}\n")) }
}

/// The paths that an address with these rights serves.
fn served(rights: Rights) -> impl Iterator<Item = &'static Path> {
    PATHS.iter().filter(move |path| rights == Rights::All || path.rights == rights)
}

/// The entry of a path, and the names in the path; `None` if no served template matches.
fn find(rights: Rights, path: &[u8]) -> Option<(&'static Path, Names)> {
    let path = std::str::from_utf8(path).ok()?;
    served(rights).find_map(|known| Some((known, known.names_in(path)?)))
}

const fn path(template: &'static str, rights: Rights, methods: &'static [(&'static str, Handler)]) -> Path {
    Path { template, rights, methods, has_encoded_names: true }
}

impl Path {
    const fn with_plain_names(self) -> Self {
        Self { has_encoded_names: false, ..self }
    }

    fn handler(&self, method: &[u8]) -> Option<Handler> {
        let method = if method == b"HEAD" { b"GET" } else { method };
        self.methods.iter().find(|(known, _)| known.as_bytes() == method).map(|(_, handler)| *handler)
    }

    /// The methods whose handlers satisfy `is_meant`; with GET also HEAD.
    fn allowed(&self, is_meant: impl Fn(Handler) -> bool) -> Vec<&'static str> {
        let methods = self.methods.iter().filter(|(_, handler)| is_meant(*handler));
        let names = methods.flat_map(|(method, _)| [Some(*method), (*method == "GET").then_some("HEAD")]);
        names.flatten().collect()
    }

    /// The names in a path that matches the template; `None` if it does not match, or if a name is malformed.
    fn names_in(&self, path: &str) -> Option<Names> {
        let name = |text: &str| if self.has_encoded_names { decoded(text) } else { Some(text.to_owned()) };
        let (mut names, mut rest) = (Names::default(), path);
        for part in self.template.split('/').skip(1) {
            rest = rest.strip_prefix('/')?;
            // The slashes of a server's URL need no encoding.
            let end = if part == "SERVER" { None } else { rest.find('/') };
            let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
            match part {
                "NAME" if text.is_empty() => return None,
                "NAME" => names.name = name(text)?,
                "SERVER" => names.server = name(text)?,
                _ if part != text => return None,
                _ => {}
            }
            rest = after;
        }
        rest.is_empty().then_some(names)
    }
}

/// Decodes a percent-encoded part of a path; `None` if it is malformed, or not UTF-8.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut pieces = part.split('%');
    bytes.extend_from_slice(pieces.next()?.as_bytes());
    for piece in pieces {
        let (code, rest) = (piece.get(..2)?, piece.get(2..)?);
        let is_code = code.bytes().all(|byte| byte.is_ascii_hexdigit());
        bytes.push(is_code.then(|| u8::from_str_radix(code, 16).ok())??);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_paths_may_be_percent_encoded() {
        const SERVER: &str = "/services/NAME/servers/SERVER";
        for (path, expected) in [
            ("/", Some(("/", "", ""))),
            ("/services", Some(("/services", "", ""))),
            ("/services/app", Some(("/services/NAME", "app", ""))),
            ("/services/a%70p", Some(("/services/NAME", "app", ""))),
            ("/services/app/servers", Some(("/services/NAME/servers", "app", ""))),
            ("/services/app/servers/", Some((SERVER, "app", ""))),
            ("/services/app/servers/http://a:1", Some((SERVER, "app", "http://a:1"))),
            ("/services/app/servers/http%3A%2f%2Fa:1", Some((SERVER, "app", "http://a:1"))),
            ("/services/a%70p/servers/unix:/run/servers/a", Some((SERVER, "app", "unix:/run/servers/a"))),
            ("/certificates", Some(("/certificates", "", ""))),
            ("/certificates/web", Some(("/certificates/NAME", "web", ""))),
            ("/certificates/%77eb", Some(("/certificates/NAME", "%77eb", ""))),
            ("", None),
            ("*", None),
            ("//", None),
            ("/services/", None),
            ("/services/app/", None),
            ("/services/app/server", None),
            ("/services/app/serversx", None),
            ("/servicesx", None),
            ("/services/app/servers/%4", None),
            ("/services/app/servers/%+1", None),
            ("/services/app/servers/%ff", None),
            ("/services/app/servers/%é", None),
            ("/certificates/", None),
            ("/certificates/web/", None),
            ("/certificatesx", None),
        ] {
            let found = find(Rights::All, path.as_bytes());
            let found = found.as_ref().map(|(path, names)| (path.template, &*names.name, &*names.server));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn the_metrics_address_has_paths_without_changes_alone() {
        let methods = served(Rights::Read).flat_map(|path| path.allowed(|_| true));
        assert_eq!(methods.collect::<Vec<_>>(), ["GET", "HEAD"].repeat(4));
        assert!(find(Rights::Read, b"/reload").is_none());
    }
}
