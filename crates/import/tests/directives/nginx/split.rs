//! nginx's `split_clients`, translated to shares of a route's requests.

use crate::assert_all;
use weir_import::Kind;

fn text(key: &str, values: &str, location: &str) -> String {
    format!(
        "http {{ split_clients {key} $v {{ {values} }} upstream a {{ server h:1; }} upstream b {{ server h:2; server h:3; }} \
         server {{ location / {{ {location} }} }} }}"
    )
}

#[test]
fn shares_of_clients_are_services_by_weight() {
    let pass = "proxy_pass http://$v; proxy_set_header Host $host;";
    for (key, values, location, parts, losses) in [
        (
            "$request_id",
            "5% b; * a;",
            pass,
            &[
                "service = [\n    { name = \"b\", weight = 1 },\n    { name = \"a\", weight = 19 },\n]",
                "Weir divides requests by weight, not by a hash of $request_id",
                "!sticky =",
                "!Host =",
            ][..],
            &[][..],
        ),
        (
            "\"${remote_addr}salt\"",
            "0.5% b; * a;",
            pass,
            &["{ name = \"b\", weight = 1 },\n    { name = \"a\", weight = 199 },\n]\nsticky = \"v\""],
            &[],
        ),
        // The application already uses a cookie named `v`, so the gateway's cookie needs another name.
        ("$cookie_v", "50% b; * a;", pass, &["sticky = \"v-share\""], &[]),
        // nginx sends the group's name as the default `Host`.
        (
            "$request_id",
            "50% b; * a;",
            "proxy_pass http://$v;",
            &["{ name = \"b\", weight = 1, request_headers = { set = { Host = \"b\" } } }"],
            &[],
        ),
        (
            "$request_id",
            "50% h:7; * h:8;",
            "proxy_pass http://$v/x/;",
            &[
                "request_headers.set = { Host = \"{upstream}\" }",
                "add_prefix = \"/x\"",
                "{ name = \"h-7\", weight = 1 }",
            ],
            &[],
        ),
        (
            "$request_id",
            "50% -new; * \"\";",
            "set $to app$v.test; proxy_pass http://$to; proxy_set_header Host $host;",
            &["{ name = \"app-new-test\", weight = 1 }", "{ name = \"app-test\", weight = 1 }"],
            &[],
        ),
        // nginx responds with 500 if a value names no server.
        (
            "$request_id",
            "10% a; 20% b;",
            pass,
            &[
                "{ name = \"a\", weight = 1 },\n    { name = \"b\", weight = 2 },\n    { status = 500, weight = 7 },",
            ],
            &[],
        ),
        ("$request_id", "10% a; * a;", pass, &["service = \"a\"\n", "!weight"], &[]),
        // A location that authenticates clients rejects all requests, whatever their share.
        (
            "$request_id",
            "10% a; * b;",
            "proxy_pass http://$v; auth_basic x;",
            &["respond = { status = 403 }", "then: 2 services by weight"],
            &["1: auth_basic x"],
        ),
        (
            "$request_id",
            "10% a/x/; * b/y/;",
            pass,
            &["status = 501", "![service"],
            &["1: proxy_pass http://$v", "1: split_clients $request_id $v"],
        ),
        (
            "$request_id",
            "60% a; 60% b;",
            pass,
            &["status = 501"],
            &["1: proxy_pass http://$v", "1: split_clients $request_id $v"],
        ),
        (
            "$request_id",
            "10% a; * b;",
            "proxy_pass http://$v$cookie_w;",
            &["status = 501"],
            &["1: proxy_pass http://$v$cookie_w", "1: split_clients $request_id $v"],
        ),
        (
            "$request_id",
            "10% a; * b;",
            "proxy_pass http://a; add_header X-V $v;",
            &["service = \"a\""],
            &["1: add_header X-V $v", "1: split_clients $request_id $v"],
        ),
    ] {
        assert_all(Kind::Nginx, &[(&text(key, values, location), parts, losses)]);
    }
}
