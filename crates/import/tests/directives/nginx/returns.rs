//! Responses, redirects and conditions.

use crate::assert_servers;

#[test]
fn answers_of_nginx() {
    assert_servers(&[
        ("return 301 https://$host$request_uri;", &["to = \"https://{host}{target}\", status = 301"], &[]),
        ("return https://a.org;", &["to = \"https://a.org\", status = 302"], &[]),
        ("return 404 \"no\\n\";", &["respond = { status = 404, body = \"no\\n\" }"], &[]),
        ("return 204;", &["respond = { status = 204 }"], &[]),
        ("location / { return 200 $remote_addr; }", &["status = 501"], &["1: return 200 $remote_addr"]),
        (
            "rewrite ^ https://$host$request_uri? permanent;",
            &["to = \"https://{host}{target}\", status = 301"],
            &[],
        ),
        (
            "rewrite ^/(.*)$ https://a.org/$1 permanent;",
            &["to = \"https://a.org{target}\", status = 301"],
            &[],
        ),
        (
            "rewrite ^/old$ /new permanent; return 404;",
            &["path = \"/old\"\nredirect = { to = \"/new\", status = 301 }"],
            &[],
        ),
        (
            "if ($request_method = PUT) { return 405; } return 200;",
            &["method = \"PUT\"\nrespond = { status = 405 }"],
            &[],
        ),
        ("if ($scheme = http) { return 301 /s; } return 200;", &["redirect = { to = \"/s\""], &[]),
        (
            "if ($http_user_agent ~ bot) { return 403; } return 200;",
            &["status = 403"],
            &["1: if ($http_user_agent ~ bot)"],
        ),
        ("error_page 404 @x; return 200;", &[], &["1: error_page 404 @x"]),
        ("frobnicate on; return 200;", &[], &["1: frobnicate on"]),
        ("access_log off; return 200;", &["![log]"], &[]),
        ("access_log /dev/stdout; return 200;", &["access = \"-\"\nformat = "], &[]),
    ]);
}

/// Regression test: the loss of a text with variables claimed that the text was a rewrite, or that a known variable was
/// unknown.
#[test]
fn a_return_without_counterpart_is_reported_with_its_reason() {
    let text = "return 200 \"$host\\n\"";
    let why = "the text has variables, and that of `respond` is constant";
    let status = "expected a status of 200 to 599";
    for (directive, why, part) in [
        (text, why, "status = 501"),
        ("return 301 https://$cookie_a/", "`redirect` cannot contain $cookie_a", "status = 501"),
        ("return 100", status, "status = 501"),
        ("return 503 $host", "the text depends on variables, and is left out", "respond = { status = 503 }"),
    ] {
        let shown = directive.replace('"', "").replace("\\n", " ");
        let report = format!("#   x.conf:1: {shown}: {why}");
        for inner in [format!("{directive};"), format!("location / {{ {directive}; }}")] {
            assert_servers(&[(&inner, &[&report, part], &[&format!("1: {shown}")])]);
        }
    }
    let condition = format!("if ($request_method = PUT) {{ {text}; }}");
    let report = format!("#   x.conf:1: if ($request_method = PUT): {why}");
    assert_servers(&[(&condition, &[&report], &["1: if ($request_method = PUT)"])]);
}
