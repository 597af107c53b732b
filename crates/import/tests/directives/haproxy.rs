//! HAProxy's rules and servers, translated to routes and services.

mod tcp;

use super::{assert_all, assert_settings, translated};
use weir_import::Kind;

/// A frontend with these lines, and two backends.
pub(crate) fn frontend(lines: &str) -> String {
    format!(
        "defaults\n mode http\nfrontend f\n bind :80\n {}\nbackend a\n server s 127.0.0.1:1\nbackend b\n server s 127.0.0.1:2\n",
        lines.replace("; ", "\n ")
    )
}

#[test]
fn rules_of_haproxy() {
    for (lines, parts, losses) in [
        ("default_backend a", &["[[route]]\nservice = \"a\""][..], &[][..]),
        ("bind unix@/run/a mode 600; default_backend a", &["bind = \"unix:/run/a\"\nmode = \"600\""], &[]),
        (
            "use_backend a if { hdr(host) -i A.org }; default_backend b",
            &["host = \"a.org\"\nservice = \"a\""],
            &[],
        ),
        (
            "use_backend a if { req.hdr(host),field(1,:) -i a.org }",
            &["host = \"a.org\"", "status = 503"],
            &[],
        ),
        (
            "use_backend a if { hdr_dom(host) a.org }; default_backend b",
            &["host = [\"a.org\", \"*.a.org\"]"],
            &["5: use_backend a if { hdr_dom(host) a.org }"],
        ),
        ("use_backend a if { path /x }; default_backend b", &["path = \"/x\"\nservice = \"a\""], &[]),
        (
            "use_backend a if { path_end .css }; default_backend b",
            &["!service = \"a\"\n\n#"],
            &["5: use_backend a if { path_end .css }"],
        ),
        ("use_backend a if { method GET }; default_backend b", &["method = \"GET\"\nservice = \"a\""], &[]),
        ("use_backend a if METH_POST; default_backend b", &["method = \"POST\"\nservice = \"a\""], &[]),
        ("use_backend a if { hdr(X-A) -m found }; default_backend b", &["headers = { X-A = \"*\" }"], &[]),
        (
            "use_backend a unless { src 10.0.0.0/8 }; default_backend b",
            &["client = \"10.0.0.0/8\"\nservice = \"b\"", "[[route]]\nservice = \"a\""],
            &[],
        ),
        (
            "acl x path /1; acl x path /2; use_backend a if x; default_backend b",
            &["path = [\"/1\", \"/2\"]\nservice = \"a\""],
            &[],
        ),
        (
            "acl x path /1; acl y method GET; use_backend a if x y || !y; default_backend b",
            &[
                "path = \"/1\"\nservice = \"a\"",
                "method = \"GET\"\nservice = \"b\"",
                "[[route]]\nservice = \"a\"",
            ],
            &[],
        ),
        ("http-request set-header A %[src]; default_backend a", &["A = \"{client_ip}\""], &[]),
        (
            "http-request set-header A %[rand]; default_backend a",
            &["!A ="],
            &["5: http-request set-header A %[rand]"],
        ),
        (
            "http-request add-header A b if { path /x }; default_backend a",
            &["path = \"/x\"\nservice = \"a\"\nrequest_headers.add = { A = \"b\" }"],
            &[],
        ),
        (
            "http-request redirect location /n code 303 if { path /o }; default_backend a",
            &["redirect = { to = \"/n\", status = 303 }"],
            &[],
        ),
        (
            "redirect prefix https://a.org; default_backend a",
            &["to = \"https://a.org{target}\", status = 302"],
            &[],
        ),
        (
            "http-request deny unless { nbsrv(a) gt 1 }; default_backend a",
            &["status = 403"],
            &["5: http-request deny unless { nbsrv(a) gt 1 }"],
        ),
        (
            "http-request deny if { nbsrv(a) gt 1 }; default_backend a",
            &["status = 403"],
            &["5: http-request deny if { nbsrv(a) gt 1 }"],
        ),
        (
            "http-request auth unless { path /x }; default_backend a",
            &["path = \"/x\"\nservice = \"a\"", "status = 403"],
            &["5: http-request auth unless { path /x }"],
        ),
        ("use_backend none; default_backend a", &["service = \"a\""], &["5: use_backend none"]),
        // Regression test: connections that HAProxy drops were served.
        (
            "tcp-request connection silent-drop if { src 10.0.0.9 }; default_backend a",
            &["client = \"10.0.0.9\"\nrespond = { status = 403 }"],
            &["5: tcp-request connection silent-drop if { src 10.0.0.9 }"],
        ),
        ("frob x; default_backend a", &[], &["5: frob x"]),
    ] {
        assert_settings(Kind::Haproxy, &frontend(lines), parts, losses);
    }
}

/// Weir selects the host before the path, HAProxy the first matching rule. So a rule about a path must apply to all
/// hosts.
#[test]
fn the_order_of_rules_holds_across_hosts_and_paths() {
    let (toml, _) = translated(
        &frontend(
            "use_backend a if { path_beg /p/ }; use_backend b if { hdr(host) h.org }; default_backend a",
        ),
        Kind::Haproxy,
    );
    assert!(toml.contains("host = \"h.org\"\npath = \"/p/*\"\nservice = \"a\""), "{toml}");
    assert!(toml.contains("host = \"h.org\"\npath = [\"/p\", \"/*\"]\nservice = \"b\""), "{toml}");
}

/// Regression test: a `listen` that another frontend uses as its backend lost its own rules, and so its denials.
#[test]
fn a_listen_used_as_a_backend_keeps_its_rules() {
    let (toml, _) = translated(
        "defaults\n mode http\nfrontend f\n bind :80\n use_backend l if { path_beg /l/ }\nlisten l\n bind :81\n \
         http-request deny unless { src 10.0.0.0/8 }\n server s 127.0.0.1:1\n",
        Kind::Haproxy,
    );
    let denied = "listener = \"f\"\npath = \"/l/*\"\nrespond = { status = 403 }";
    assert!(toml.contains(denied), "{toml}");
}

#[test]
fn servers_of_haproxy() {
    let backend = |lines: &str| {
        format!(
            "defaults\n mode http\nfrontend f\n bind :80\n default_backend a\nbackend a\n {}\n",
            lines.replace("; ", "\n ")
        )
    };
    for (lines, part, losses) in [
        ("server s 127.0.0.1:1", "servers = \"http://127.0.0.1:1\"", &[][..]),
        ("server s ::1:80", "servers = \"http://[::1]\"", &[]),
        ("server s 127.0.0.1", "status = 503", &["6: backend a", "7: server s 127.0.0.1"]),
        ("server s a:1 ssl verify none", "servers = \"https://a:1\"\ntls.insecure = true", &[]),
        ("server s a:1 ssl verify required ca-file c.pem", "tls.ca = \"c.pem\"", &[]),
        ("server s a:1 check; option httpchk HEAD /h", "health.path = \"/h\"", &[]),
        ("server s a:1 check; timeout check 3s", "health.timeout = \"3s\"", &[]),
        (
            "server s a:1 check; option httpchk; http-check send meth GET uri /u hdr Host h.org",
            "health.path = \"/u\"\nhealth.host = \"h.org\"",
            &[],
        ),
        (
            "server s a:1 check; option httpchk; http-check expect rstatus ^[23]",
            "health.status = \"200-399\"",
            &[],
        ),
        (
            "server s a:1 check; option httpchk; http-check expect string ok",
            "health.path",
            &["9: http-check expect string ok"],
        ),
        ("server s a:1; server t b:1 disabled", "servers = \"http://a:1\"", &[]),
        ("server s a:1; server t b:1 weight 0", "{ url = \"http://b:1\", weight = 0 }", &[]),
        ("server s a:1 weight 0", "{ url = \"http://a:1\", weight = 0 }", &[]),
        (
            "server s a:1 weight 100; server t b:1 weight 100",
            "servers = [\n    \"http://a:1\",\n    \"http://b:1\",\n]",
            &[],
        ),
        ("balance hdr(X-U); server s a:1", "hash = \"header:X-U\"", &[]),
        ("balance first; server s a:1", "servers", &["7: balance first"]),
        ("cookie C prefix; server s a:1", "servers", &["7: cookie C prefix"]),
        ("timeout server 7s; server s a:1", "timeouts.response = \"7s\"", &[]),
    ] {
        assert_all(Kind::Haproxy, &[(&backend(lines), &[part], losses)]);
    }
}

/// Regression test: clients without a certificate reached a name for which the certificate list requires one.
#[test]
fn a_list_of_certificates_may_ask_for_those_of_clients() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    std::fs::write(&list, "/a.pem a.test\n/b.pem [ca-file /ca.pem verify required] b.test\n").unwrap();
    let text = format!(
        "defaults\n mode http\nlisten a\n bind :443 ssl crt-list {}\n server s 127.0.0.1:1\n",
        list.display()
    );
    let found = weir_import::import(&text, std::path::Path::new("x"), None, &weir_import::Files).unwrap();
    assert!(found.toml.contains("tls.client_ca = \"/ca.pem\""), "{}", found.toml);
    assert_eq!(found.losses.len(), 1, "{:?}", found.losses);
}
