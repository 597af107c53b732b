//! Random configurations, which must not make the importer panic.

use crate::haproxy::frontend;
use crate::{Memory, check, translated};
use proptest::prelude::*;
use std::path::Path;
use weir_import::{Kind, import};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any input: no panic; either TOML that the gateway's types accept, or an error with a line.
    #[test]
    fn garbage_never_panics(words in prop::collection::vec(prop::sample::select(WORDS), 0..60), noise in ".{0,20}") {
        for kind in [Kind::Nginx, Kind::Haproxy] {
            let text = format!("{}{noise}", words.concat());
            if let Ok(found) = import(&text, Path::new("x"), Some(kind), &Memory::default()) {
                check(&found.toml);
            }
        }
    }

    #[test]
    fn directives_in_any_order_are_accepted(inner in prop::collection::vec(prop::sample::select(DIRECTIVES), 0..12)) {
        let text = format!("upstream u {{ server a:1; }} server {{ location /x/ {{ {} }} {} }}", inner.concat(), inner.concat());
        let (toml, _) = translated(&text, Kind::Nginx);
        prop_assert!(toml.contains("[[route]]"));
    }

    #[test]
    fn lines_in_any_order_are_accepted(lines in prop::collection::vec(prop::sample::select(LINES), 0..12)) {
        let text = frontend(&lines.join("; "));
        let (toml, _) = translated(&text, Kind::Haproxy);
        prop_assert!(toml.contains("[[route]]"), "{toml}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn streams_in_any_order_are_accepted(inner in prop::collection::vec(prop::sample::select(STREAM), 0..9)) {
        let map = "map $ssl_preread_server_name $s { hostnames; a.test g; *.a.test h:1; default h:2; }";
        let text = format!("stream {{ {map} upstream g {{ server a:1; }} server {{ {} }} server {{ listen 9; proxy_pass g; }} }}", inner.concat());
        translated(&text, Kind::Nginx);
    }

    #[test]
    fn connections_in_any_order_are_accepted(lines in prop::collection::vec(prop::sample::select(TCP), 0..9)) {
        let text = format!(
            "defaults\n mode tcp\nfrontend f\n {}\nbackend a\n server s 127.0.0.1:1\nbackend b\n server s 127.0.0.1:2 ssl\n",
            lines.join("\n ")
        );
        translated(&text, Kind::Haproxy);
    }
}

const STREAM: &[&str] = &[
    "listen 1;",
    "listen 2 ssl;",
    "listen [::]:3 proxy_protocol;",
    "listen unix:/a;",
    "listen unix:/b proxy_protocol ssl;",
    "proxy_pass g;",
    "proxy_pass $s;",
    "proxy_pass unix:/c;",
    "ssl_preread on;",
    "ssl_certificate a; ssl_certificate_key b;",
    "ssl_verify_client on; ssl_client_certificate c;",
    "proxy_ssl on;",
    "proxy_ssl_verify on; proxy_ssl_name a.test;",
    "proxy_protocol on;",
    "set_real_ip_from 10.0.0.0/8;",
    "set_real_ip_from unix:;",
    "allow 10.0.0.0/8;",
    "allow ::/0;",
    "allow unix:;",
    "deny 10.0.0.1;",
    "deny all;",
    "proxy_timeout 0;",
    "proxy_timeout 5s;",
    "health_check interval=2s;",
];

const TCP: &[&str] = &[
    "bind :1",
    "bind :2 ssl crt /c.pem alpn h2",
    "bind :::3 v4v6 accept-proxy",
    "bind /run/x.sock accept-proxy mode 600",
    "bind :4 ssl crt /d.pem verify required ca-file /ca.pem",
    "acl x src 10.0.0.0/8 ::1",
    "acl y req.ssl_sni a.test",
    "acl z dst_port 1",
    "tcp-request inspect-delay 1s",
    "tcp-request connection reject if !x",
    "tcp-request connection expect-proxy layer4 if x",
    "tcp-request content accept if x",
    "tcp-request content reject if z",
    "tcp-request content reject",
    "tcp-request content accept if { req.ssl_hello_type 1 }",
    "use_backend a if y",
    "use_backend b if y or z",
    "use_backend b if z",
    "default_backend a",
    "default_backend b",
    "timeout client 0",
    "timeout tunnel 1h",
    "option accept-invalid-http-request",
    "maxconn 9",
];

const WORDS: &[&str] = &[
    "server ",
    "{",
    "}",
    ";",
    "\n",
    " ",
    "location ",
    "/",
    "~ ",
    "^/a(b|",
    ")",
    "proxy_pass ",
    "http://",
    "$host",
    "${",
    "upstream ",
    "a",
    "listen ",
    "443 ssl",
    "\"",
    "'",
    "\\",
    "#",
    "frontend ",
    "backend ",
    "defaults\n",
    "global\n",
    "bind ",
    ":80",
    "acl ",
    "use_backend ",
    "if ",
    "{ ",
    " }",
    "!",
    "hdr(host) ",
    "path_beg ",
    "-f ",
    "server s ",
    "127.0.0.1:1 ",
    "\u{e9}",
    "%[",
    "]",
    "map ",
    "stream ",
    "proxy_ssl on;",
    "10.0.0.1:5432;",
    "deny all;",
    "http ",
    "ssl_preread on;",
    "rewrite ",
    "return ",
    "301 ",
    "mode tcp\n",
    "tcp-request content reject ",
    "default_backend a\n",
    "src 10.0.0.0/8 ",
    "req.ssl_sni a.test ",
    "include ",
    "x_by_lua_block ",
    "\u{0}",
    "-",
    "=",
];

const DIRECTIVES: &[&str] = &[
    "proxy_pass http://u;",
    "proxy_pass http://u/b/;",
    "proxy_pass https://u;",
    "proxy_pass http://$x;",
    "return 301 /$1;",
    "return 418;",
    "rewrite ^ /x permanent;",
    "rewrite ^/x/(.*) /$1 break;",
    "if ($host = a.org) { return 403; }",
    "allow 10.0.0.0/8;",
    "deny all;",
    "proxy_set_header Host \"\";",
    "proxy_set_header A \"{$host\";",
    "proxy_ignore_client_abort on;",
    "underscores_in_headers on;",
    "proxy_set_header A \"$${b}${host}\";",
    "proxy_set_header X-Forwarded-For $remote_addr;",
    "add_header A \"$b\";",
    "add_header Connection close;",
    "client_max_body_size 1g;",
    "client_max_body_size x;",
    "proxy_read_timeout 0;",
    "expires 1d;",
    "auth_basic x;",
    "limit_except POST { deny all; }",
    "root /r;",
    "error_page 404 /e.html;",
    "proxy_ssl_name a.org;",
    "proxy_ssl_verify on;",
    "set $x 'y}{';",
    "access_log /a b;",
    "alias /b;",
    "internal;",
    "try_files $uri =404;",
    "satisfy any;",
];

const LINES: &[&str] = &[
    "acl x path_beg /a /b/",
    "acl x hdr(host) -i a.org",
    "acl y method GET POST",
    "acl z src 10.0.0.0/8 ::1",
    "acl w hdr_end(host) .a.org",
    "use_backend a if x",
    "use_backend b if x !y or z",
    "use_backend a unless y z",
    "default_backend b",
    "http-request deny if !z w",
    "http-request set-header A \"{b}\" if y",
    "http-request del-header Host",
    "http-response add-header A b",
    "redirect scheme https if !{ ssl_fc }",
    "http-request return status 200 string \"a{b\"",
    "http-request return status 200 string '${a'",
    "http-request set-path /p%[path] if w",
    "monitor-uri /m",
    "timeout client 0",
    "use_backend a if { hdr(X-A) 1 } { hdr(X-A) 2 }",
    "use_backend a if { path /a } { path /b }",
    "http-request auth if y",
    "bind :443 ssl crt /c.pem",
    "bind /run/x.sock mode 600",
    "option httpchk",
    "cookie C insert",
];
