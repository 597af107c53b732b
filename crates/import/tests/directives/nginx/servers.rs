//! Listeners, TLS and names of servers.

use crate::{assert_all, assert_servers};
use weir_import::Kind;

#[test]
fn listeners_of_nginx() {
    assert_servers(&[
        ("return 200;", &["bind = \"0.0.0.0:80\""], &[]),
        ("listen 127.0.0.1:8080; return 200;", &["[listener.port-8080]\nbind = \"127.0.0.1:8080\""], &[]),
        ("listen [::]:80 ipv6only=off; return 200;", &["bind = [\"[::]:80\", \"0.0.0.0:80\"]"], &[]),
        ("listen unix:/run/a.sock; return 200;", &["bind = \"unix:/run/a.sock\""], &[]),
        ("listen 8000-8002; return 200;", &["\"0.0.0.0:8002\""], &[]),
        ("listen 80 proxy_protocol; return 200;", &["proxy_protocol = [\"0.0.0.0/0\", \"::/0\"]"], &[]),
        (
            "set_real_ip_from 10.1.2.3/8; real_ip_header X-Forwarded-For; return 200;",
            &["trusted_proxies = \"10.0.0.0/8\""],
            &[],
        ),
        ("listen 443 quic; listen 81; return 200;", &["[listener.port-81]"], &["1: listen 443 quic"]),
        ("listen a:b:c; return 200;", &[], &["1: listen a:b:c"]),
    ]);
}

#[test]
fn tls_of_nginx() {
    let tls = |inner: &str| {
        format!("listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key; return 200; {inner}")
    };
    for (inner, parts, losses) in [
        ("", &["tls = {}", "chain = \"a.pem\"\nkey = \"a.key\""][..], &[][..]),
        ("ssl_protocols TLSv1.3;", &["tls.versions = \"1.3\""], &[]),
        ("ssl_protocols TLSv1 TLSv1.2;", &["tls.versions = \"1.2\""], &["1: ssl_protocols TLSv1 TLSv1.2"]),
        ("ssl_ciphers HIGH:!aNULL;", &["tls = {}"], &[]),
        ("ssl_ciphers AES128-SHA;", &["tls = {}"], &["1: ssl_ciphers AES128-SHA"]),
        ("ssl_prefer_server_ciphers off;", &["tls.suite_order = \"client\""], &[]),
        ("ssl_session_timeout 5s;", &["tls.ticket_lifetime = \"1min\""], &[]),
        ("ssl_reject_handshake on;", &["tls.strict_names = true"], &[]),
        ("ssl_stapling_file a.ocsp;", &["ocsp = \"a.ocsp\""], &[]),
        ("ssl_stapling on;", &[], &["1: ssl_stapling on"]),
        ("ssl_verify_client on; ssl_client_certificate ca.pem;", &["tls.client_ca = \"ca.pem\"\n"], &[]),
        (
            "ssl_early_data on; ssl_session_ticket_key k;",
            &[],
            &["1: ssl_early_data on", "1: ssl_session_ticket_key k"],
        ),
    ] {
        assert_servers(&[(&tls(inner), parts, losses)]);
    }
}

#[test]
fn names_and_default_servers_of_nginx() {
    assert_all(
        Kind::Nginx,
        &[
            (
                "server { server_name a.org; return 301 /a; }\nserver { server_name b.org .c.org; return 301 /b; }",
                &[
                    "# x.conf:1\n[[route]]\nredirect = { to = \"/a\"",
                    "host = [\"b.org\", \"c.org\", \"*.c.org\"]\nredirect = { to = \"/b\"",
                ],
                &[],
            ),
            // Another server's domain would take precedence over a catch-all route, so the default server's name has
            // its own route.
            (
                "server { server_name x.a.org; return 301 /a; }\nserver { server_name *.a.org; return 301 /b; }",
                &["host = \"x.a.org\"\nredirect = { to = \"/a\"", "[[route]]\nredirect = { to = \"/a\""],
                &[],
            ),
            (
                "server { return 301 /a; }\nserver { return 301 /b; }",
                &["to = \"/a\"", "!to = \"/b\""],
                &["2: server"],
            ),
            (
                "worker_processes 4; http { server { return 301 https://$host$request_uri; } server { listen 8443 ssl; ssl_certificate c; ssl_certificate_key k; return 204; } }",
                &["workers = 4\n", "redirect = { to = \"https\", port = 443, status = 301 }"],
                &[],
            ),
            (
                "server { listen 80; server_name a.org; return 301 /a; }\nserver { listen 81; server_name a.org; return 301 /b; }",
                &[
                    "listener = \"http\"\nredirect = { to = \"/a\"",
                    "listener = \"port-81\"\nredirect = { to = \"/b\"",
                ],
                &[],
            ),
        ],
    );
}
