//! Services whose servers speak HTTP/2.

use super::{assert_all, assert_settings, server, translated};
use weir_import::Kind;

#[test]
fn grpc_of_nginx() {
    for (inner, parts, losses) in [
        (
            "grpc_pass grpc://h:1;",
            &["servers = \"http://h:1\"\nhttp2 = true\n", "Host = \"{upstream}\""][..],
            &[][..],
        ),
        ("grpc_pass h:1;", &["servers = \"http://h:1\"\nhttp2 = true\n"], &[]),
        ("grpc_pass grpc://h;", &["servers = \"http://h\"\n"], &[]),
        ("grpc_pass unix:/run/a;", &["servers = \"unix:/run/a\"\nhttp2 = true\n"], &[]),
        ("grpc_pass grpc://unix:/run/a;", &["servers = \"unix:/run/a\"\nhttp2 = true\n"], &[]),
        ("grpc_pass grpcs://h;", &["servers = \"https://h\"\nhttp2 = true\ntls.insecure = true\n"], &[]),
        (
            "grpc_pass grpcs://h:2; grpc_ssl_verify on; grpc_ssl_trusted_certificate c.pem; grpc_ssl_name a.org; \
             grpc_ssl_protocols TLSv1.3; grpc_ssl_certificate c; grpc_ssl_certificate_key k; grpc_ssl_server_name on;",
            &[
                "servers = \"https://h:2\"\n",
                "tls.ca = \"c.pem\"\ntls.name = \"a.org\"\ntls.certificate = \"c\"\ntls.key = \"k\"\ntls.versions = \"1.3\"\n",
            ],
            &[],
        ),
        (
            "grpc_pass grpcs://h; grpc_ssl_verify on; grpc_ssl_ciphers AES128-SHA; grpc_ssl_crl l;",
            &["http2 = true"],
            &["1: grpc_ssl_crl l", "1: grpc_ssl_ciphers AES128-SHA"],
        ),
        ("grpc_pass grpc://h:1; grpc_set_header Host a.org;", &["Host = \"a.org\""], &[]),
        (
            "grpc_pass grpc://h:1; grpc_set_header X-A $scheme; grpc_hide_header X-B;",
            &["X-A = \"{scheme}\"", "response_headers.remove = \"X-B\""],
            &[],
        ),
        (
            "grpc_pass grpc://h:1; grpc_read_timeout 90; grpc_send_timeout 100;",
            &["timeouts.response = \"90s\"\ntimeouts.stall = \"100s\""],
            &[],
        ),
        ("grpc_pass grpc://h:1; grpc_connect_timeout 3;", &["[timeouts]\nconnect = \"3s\""], &[]),
        (
            "grpc_pass grpc://h:1; grpc_next_upstream off; grpc_buffer_size 8k; grpc_intercept_errors on; grpc_frob 1;",
            &["http2 = true"],
            &["1: grpc_next_upstream off", "1: grpc_intercept_errors on", "1: grpc_frob 1"],
        ),
        // The directives of the gRPC module do not affect `proxy_pass`.
        (
            "proxy_pass http://h:1; grpc_set_header X-A b; grpc_hide_header X-B; grpc_read_timeout 9;",
            &["!http2", "!X-A", "!X-B", "!response = "],
            &[],
        ),
        (
            "grpc_pass grpc://h:1; proxy_set_header X-A b; proxy_hide_header X-B; proxy_read_timeout 9;",
            &["http2 = true", "!X-A", "!X-B", "!response = "],
            &[],
        ),
        ("grpc_pass http://h:1;", &["status = 501", "!http2"], &["1: grpc_pass http://h:1"]),
        ("proxy_pass grpc://h:1;", &["status = 501", "!http2"], &["1: proxy_pass grpc://h:1"]),
        ("proxy_pass http://h:1; proxy_http_version 2;", &["servers = \"http://h:1\"\nhttp2 = true\n"], &[]),
        ("proxy_pass https://h; proxy_http_version 2;", &["servers = \"https://h\"\nhttp2 = true\n"], &[]),
        ("proxy_pass http://h:1; proxy_http_version 1.1;", &["!http2"], &[]),
    ] {
        let inner = format!("location / {{ {inner} }}");
        assert_settings(Kind::Nginx, &server(&inner), parts, losses);
    }
}

#[test]
fn checks_of_grpc_by_nginx() {
    for (check, parts, losses) in [
        ("type=grpc", &["health.grpc = \"\"\n"][..], &[][..]),
        ("interval=9s type=grpc grpc_service=a.B", &["health.grpc = \"a.B\"\nhealth.every = \"9s\"\n"], &[]),
        (
            "type=grpc \"grpc_service=a b\" grpc_status=12",
            &["health.grpc = \"\"\n"],
            &["1: grpc_service=a b", "1: grpc_status=12"],
        ),
        ("uri=/h", &["health.path = \"/h\"\n"], &[]),
    ] {
        let text = format!(
            "upstream g {{ zone g 64k; server a:1; }} server {{ location /x/ {{ grpc_pass grpc://g; health_check {check}; }} }}"
        );
        // As with `proxy_pass`, `/x` redirects to `/x/`, the location's path.
        let parts: Vec<_> = parts.iter().copied().chain(["http2 = true", "to = \"/x/\""]).collect();
        assert_settings(Kind::Nginx, &text, &parts, losses);
    }
    let text = server("location / { proxy_pass http://h:1; health_check type=grpc; }");
    assert_settings(Kind::Nginx, &text, &["health.path = \"/\"\n"], &[]);
}

/// Locations that reach a group by both protocols need two services.
#[test]
fn a_group_may_be_reached_by_both_protocols() {
    let text = "upstream g { server a:1; server b:1; } \
                server { location / { proxy_pass http://g; } location /x.Y/ { grpc_pass grpc://g; } }";
    let parts =
        ["[service.g]\n", "[service.g-2]\n", "path = \"/x.Y/*\"\nservice = \"g-2\"", "service = \"g\""];
    assert_settings(Kind::Nginx, text, &parts, &[]);
}

fn backend(lines: &str) -> String {
    format!(
        "defaults\n mode http\nfrontend f\n bind :80\n default_backend a\nbackend a\n {}\n",
        lines.replace("; ", "\n ")
    )
}

#[test]
fn servers_of_haproxy_that_speak_http2() {
    let plain = "servers = \"http://a:1\"\n";
    for (lines, parts, losses) in [
        ("server s a:1 proto h2", &["servers = \"http://a:1\"\nhttp2 = true\n"][..], &[][..]),
        ("default-server proto h2; server s a:1", &["http2 = true\n"], &[]),
        ("server s a:1 proto h1", &[plain, "!http2"], &[]),
        // HAProxy uses ALPN only with TLS.
        ("server s a:1 alpn h2", &[plain, "!http2"], &[]),
        ("server s a:1 ssl verify none alpn h2", &["servers = \"https://a:1\"\nhttp2 = true\n"], &[]),
        ("server s a:1 ssl verify none proto h2", &["http2 = true\n"], &[]),
        ("server s a:1 ssl verify none alpn http/1.1", &["!http2"], &[]),
        ("server s a:1 ssl verify none alpn h2 proto h1", &["!http2"], &[]),
        ("server s a:1 proto h2 send-proxy", &["proxy_protocol = \"v1\"", "!http2"], &["6: HTTP/2 to a"]),
        // Repairs apply only to HTTP/1.1.
        ("option accept-invalid-http-response; server s a:1 proto h2", &["http2 = true\n", "!accept"], &[]),
        ("server s a:1 proto h2; server t b:1 proto h2", &["http2 = true\n", "\"http://b:1\""], &[]),
        (
            "server s a:1 proto h2; server t b:1",
            &["servers = \"http://a:1\"\nhttp2 = true\n", "!http://b:1"],
            &["8: server t b:1"],
        ),
        (
            "server s a:1 proto h2 check; option httpchk GET /h",
            &["health.path = \"/h\"\n", "http2 = true\n"],
            &[],
        ),
    ] {
        assert_settings(Kind::Haproxy, &backend(lines), parts, losses);
    }
}

#[test]
fn of_both_protocols_that_haproxy_offers_the_first_remains() {
    for (alpn, parts) in [
        ("h2,http/1.1", ["http2 = true\n", "Weir one of them, HTTP/2; remove http2 for the other"]),
        ("http/1.1,h2", ["!\nhttp2", "Weir one of them, HTTP/1.1; set http2 for the other"]),
    ] {
        let text = backend(&format!("server s a:1 ssl verify none alpn {alpn}"));
        assert_all(Kind::Haproxy, &[(&text, &parts, &[])]);
    }
    let (toml, _) = translated(&backend("server s a:1 ssl verify none alpn h2"), Kind::Haproxy);
    assert!(!toml.contains("HAProxy offers"), "{toml}");
}
