//! Directives that become listener settings.

use super::{assert_all, assert_servers};
use weir_import::Kind;

#[test]
fn what_is_accepted_though_it_breaks_rules() {
    let frontend = |option: &str| {
        format!(
            "defaults\n mode http\nfrontend a\n bind :80\n {option}\n default_backend b\nbackend b\n server s 127.0.0.1:1\n"
        )
    };
    let backend = |option: &str| {
        format!(
            "defaults\n mode http\nfrontend a\n bind :80\n default_backend b\nbackend b\n {option}\n server s 127.0.0.1:1\n"
        )
    };
    for option in ["accept-invalid-http-request", "accept-unsafe-violations-in-http-request"] {
        let accept: &[&str] = &["accept = \"raw-utf8-target\""];
        assert_all(Kind::Haproxy, &[(&frontend(&format!("option {option}")), accept, &[])]);
    }
    for option in ["accept-invalid-http-response", "accept-unsafe-violations-in-http-response"] {
        let accept: &[&str] = &["accept = [\"bare-lf\", \"obs-fold\", \"space-before-colon\"]"];
        assert_all(Kind::Haproxy, &[(&backend(&format!("option {option}")), accept, &[])]);
    }
    assert_all(Kind::Haproxy, &[(&frontend(""), &["!accept"], &[])]);
    assert_servers(&[
        ("listen 80; merge_slashes on; return 200;", &["[listener"], &[]),
        ("listen 80; merge_slashes off; return 200;", &["[listener"], &["1: merge_slashes off"]),
        (
            "listen 80; large_client_header_buffers 4 16k; return 200;",
            &["head = \"64KiB\"", "line = \"16KiB\""],
            &[],
        ),
    ]);
}

#[test]
fn http2_is_off_where_the_source_rules_it_out() {
    for (directives, part) in [
        ("listen 80; return 200;", "!http2"),
        ("listen 80; http2 on; return 200;", "!http2"),
        ("listen 80; http2 off; return 200;", "http2 = false"),
    ] {
        assert_servers(&[(directives, &[part], &[])]);
    }
    for (bind, part) in [
        ("", "!http2"),
        ("alpn h2,http/1.1", "!http2"),
        ("proto h2", "!http2"),
        ("alpn http/1.1", "http2 = false"),
        ("proto h1", "http2 = false"),
        ("no-alpn", "http2 = false"),
    ] {
        let text = format!(
            "defaults\n mode http\nfrontend a\n bind :80 {bind}\n default_backend b\nbackend b\n server s 127.0.0.1:1\n"
        );
        assert_all(Kind::Haproxy, &[(&text, &[part], &[])]);
    }
}

/// A listener gets the settings that all its servers turn on; the importer reports a server or location that differs.
#[test]
fn switches_of_nginx_are_listeners_keys() {
    for (switch, key) in [
        ("underscores_in_headers", "underscores_in_headers = \"pass\""),
        ("proxy_ignore_client_abort", "half_close = \"serve\""),
    ] {
        let absent = format!("!{key}");
        let [http, https] =
            ["listener.http]\nbind = \"0.0.0.0:80\"\n", "listener.https]\nbind = \"0.0.0.0:443\"\n"];
        let (on, off) = (format!("{switch} on"), format!("{switch} off"));
        let (lost_on, lost_off) = (format!("1: {on}"), format!("1: {off}"));
        let with = |bind: &str| format!("{bind}{key}\n");
        let without = |bind: &str| format!("!{bind}{key}\n");
        for (text, parts, losses) in [
            (format!("server {{ {on}; return 200; }}"), vec![with(http)], vec![]),
            (format!("server {{ {switch} ON; return 200; }}"), vec![with(http)], vec![]),
            (format!("http {{ {on}; server {{ return 200; }} }}"), vec![with(http)], vec![]),
            (
                format!("http {{ {on}; server {{ return 200; }} server {{ listen 443 ssl; return 200; }} }}"),
                vec![with(http), with(https)],
                vec![],
            ),
            (format!("server {{ {off}; return 200; }}"), vec![absent.clone()], vec![]),
            (format!("http {{ {on}; server {{ {off}; return 200; }} }}"), vec![absent.clone()], vec![]),
            (
                format!("server {{ return 200; }} server {{ listen 443 ssl; {on}; return 200; }}"),
                vec![without(http), with(https)],
                vec![],
            ),
            // Two servers of one listener, in either order: a setting of one server must not apply to the other.
            (
                format!(
                    "server {{ server_name a; {on}; return 200; }} server {{ server_name b; return 200; }}"
                ),
                vec![absent.clone()],
                vec![&lost_on],
            ),
            (
                format!(
                    "http {{ {on}; server {{ server_name a; {off}; return 200; }} server {{ server_name b; return 200; }} }}"
                ),
                vec![absent.clone()],
                vec![&lost_on],
            ),
            (
                format!(
                    "server {{ listen 80; listen 81; {on}; return 200; }} server {{ server_name b; return 200; }}"
                ),
                vec![without(http), with("listener.port-81]\nbind = \"0.0.0.0:81\"\n")],
                vec![&lost_on],
            ),
            (
                format!("server {{ location /a {{ {on}; return 200; }} }}"),
                vec![absent.clone()],
                vec![&lost_on],
            ),
            (
                format!("server {{ {on}; location /a {{ location /a/b {{ {off}; return 200; }} }} }}"),
                vec![with(http)],
                vec![&lost_off],
            ),
            (format!("server {{ {on}; location /a {{ {on}; return 200; }} }}"), vec![with(http)], vec![]),
        ] {
            let parts: Vec<_> = parts.iter().map(String::as_str).collect();
            let losses: Vec<_> = losses.into_iter().map(String::as_str).collect();
            assert_all(Kind::Nginx, &[(&text, &parts, &losses)]);
        }
    }
}
