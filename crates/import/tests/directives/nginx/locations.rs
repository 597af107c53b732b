//! Locations, and the addresses of `proxy_pass`.

use crate::{assert_servers, assert_settings, server};
use weir_import::Kind;

#[test]
fn locations_of_nginx() {
    let to = "proxy_pass http://127.0.0.1:1; proxy_set_header Host $host;";
    for (inner, parts, losses) in [
        ("location = /a { TO }", &["path = \"/a\"\nservice"][..], &[][..]),
        ("location /a { TO }", &["path = \"/a*\"\nservice"], &[]),
        (
            "location /a { TO } location /a/ { TO }",
            &["path = [\"/a\", \"/a*\"]\nservice", "path = \"/a/*\"\nservice"],
            &[],
        ),
        ("location ^~ /a/ { TO }", &["path = \"/a/*\"\nservice"], &[]),
        ("location ~ ^/(a|b)/ { TO }", &["path = [\"/a/*\", \"/b/*\"]\nservice"], &[]),
        ("location ~ ^/a[0-9] { TO }", &["!service ="], &["1: location ~ ^/a[0-9]"]),
        // nginx prefers the expression to the longer prefix.
        ("location ~ ^/a/ { TO } location /a/b/ { TO }", &["path = \"/a/*\"\nservice", "!/a/b"], &[]),
        ("location ~* ^/a/ { TO }", &["path = \"/a/*\"\nservice"], &["1: location ~* ^/a/"]),
        (
            "location ~* ^/a/ { TO deny all; }",
            &["path = [\"/A/*\", \"/a/*\"]\nrespond = { status = 403 }"],
            &[],
        ),
        ("location /a/ { TO location /a/b/ { TO } }", &["path = \"/a/b/*\"\nservice"], &[]),
        ("location /a/../b { TO }", &[], &["1: location /a/../b"]),
        ("location / { try_files $uri @b; } location @b { TO }", &["service ="], &["1: try_files $uri @b"]),
        ("location / { fastcgi_pass x; }", &["status = 501"], &["1: fastcgi_pass x"]),
        (
            "location / { TO deny 10.0.0.1; }",
            &["client = \"10.0.0.1\"\nrespond = { status = 403 }", "service ="],
            &[],
        ),
        (
            "location / { TO auth_basic x; satisfy any; allow 10.0.0.1; deny all; }",
            &["client = \"10.0.0.1\"\nservice =", "respond = { status = 403 }"],
            &["1: auth_basic x"],
        ),
        (
            "location / { TO auth_request /auth; }",
            &["!service = \"", "status = 403"],
            &["1: auth_request /auth"],
        ),
    ] {
        assert_settings(Kind::Nginx, &server(&inner.replace("TO", to)), parts, losses);
    }
}

#[test]
fn addresses_with_paths_of_nginx() {
    for (inner, parts, losses) in [
        ("location /a/ { proxy_pass http://h:1/; }", &["strip_prefix = \"/a\"", "!add_prefix"][..], &[][..]),
        ("location /a/ { proxy_pass http://h:1/b/; }", &["strip_prefix = \"/a\"\nadd_prefix = \"/b\""], &[]),
        ("location / { proxy_pass http://h:1/b/; }", &["add_prefix = \"/b\"", "!strip_prefix"], &[]),
        ("location / { proxy_pass http://h:1/; }", &["!prefix"], &[]),
        (
            "location /a/ { proxy_pass http://h:1/b; }",
            &["add_prefix = \"/b\""],
            &["1: proxy_pass http://h:1/b"],
        ),
        (
            "location /a/ { rewrite ^/a/(.*)$ /$1 break; proxy_pass http://h:1; }",
            &["strip_prefix = \"/a\""],
            &[],
        ),
        (
            "location /a/ { rewrite ^/a/(x+)$ /$1 break; proxy_pass http://h:1; }",
            &["!strip_prefix"],
            &["1: rewrite ^/a/(x+)$ /$1 break"],
        ),
        ("location / { proxy_pass http://h:1$request_uri; }", &["servers = \"http://h:1\""], &[]),
        ("location / { proxy_pass http://$host; }", &["status = 501"], &["1: proxy_pass http://$host"]),
        ("location / { proxy_pass http://unix:/a.sock:/b/; }", &["unix:/a.sock", "add_prefix = \"/b\""], &[]),
        ("location / { proxy_pass https://h; }", &["servers = \"https://h\"\ntls.insecure = true"], &[]),
        (
            "proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; location / { proxy_pass https://h; }",
            &["tls.ca = \"ca.pem\"", "!insecure"],
            &[],
        ),
        (
            "proxy_ssl_certificate c; proxy_ssl_certificate_key k; location / { proxy_pass https://h; }",
            &["tls.certificate = \"c\"\ntls.key = \"k\""],
            &[],
        ),
        (
            "proxy_ssl_protocols TLSv1.2; proxy_ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256; location / { proxy_pass https://h; }",
            &["tls.versions = \"1.2\"\ntls.suites = \"ecdhe-rsa-aes128-gcm-sha256\""],
            &[],
        ),
    ] {
        assert_servers(&[(inner, parts, losses)]);
    }
}
