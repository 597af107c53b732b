//! Each family of directives: configuration in, lines of TOML and losses out.

#[path = "../accepted/mod.rs"]
mod accepted;
mod certificates;
mod haproxy;
mod http2;
mod listeners;
mod split;
mod stream;
mod tcp;

use accepted::check;
use haproxy::frontend;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use weir_import::{ImportError, Kind, Reader, import};

/// Files in memory.
#[derive(Default)]
struct Memory(BTreeMap<PathBuf, &'static str>);

impl Reader for Memory {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.0.get(path).map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, directory: &Path) -> Vec<PathBuf> {
        self.0.keys().filter(|path| path.parent() == Some(directory)).cloned().collect()
    }
}

/// The TOML, and `LINE: DIRECTIVE` of each loss.
fn translated(text: &str, kind: Kind) -> (String, Vec<String>) {
    let found = import(text, Path::new("x.conf"), Some(kind), &Memory::default()).unwrap();
    check(&found.toml);
    (found.toml, found.losses.iter().map(|loss| format!("{}: {}", loss.line, loss.directive)).collect())
}

#[track_caller]
fn assert_all(kind: Kind, cases: &[(&str, &[&str], &[&str])]) {
    for (text, parts, losses) in cases {
        let (toml, found) = translated(text, kind);
        for part in *parts {
            match part.strip_prefix('!') {
                Some(absent) => assert!(!toml.contains(absent), "{text}: `{absent}` in\n{toml}"),
                None => assert!(toml.contains(part), "{text}: no `{part}` in\n{toml}"),
            }
        }
        assert_eq!(found, *losses, "{text}\n{toml}");
    }
}

/// Like [`assert_all`] for one text, ignoring comments: `service = ` in a comment is no route.
#[track_caller]
fn assert_settings(kind: Kind, text: &str, parts: &[&str], losses: &[&str]) {
    let (toml, found) = translated(text, kind);
    let plain: String =
        toml.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    for part in parts {
        match part.strip_prefix('!') {
            Some(absent) => assert!(!plain.contains(absent), "{text}: {toml}"),
            None => assert!(plain.contains(part), "{text}: no `{part}` in\n{toml}"),
        }
    }
    assert_eq!(found, losses, "{text}\n{toml}");
}

/// A server with these directives.
fn server(inner: &str) -> String {
    format!("server {{ {inner} }}")
}

#[track_caller]
fn assert_servers(cases: &[(&str, &[&str], &[&str])]) {
    for (inner, parts, losses) in cases {
        assert_all(Kind::Nginx, &[(&server(inner), parts, losses)]);
    }
}

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

#[test]
fn fields_of_nginx() {
    for (inner, parts, losses) in [
        ("", &["request_headers.set = { Host = \"{upstream}\" }"][..], &[][..]),
        ("proxy_set_header Host $http_host;", &["!request_headers"], &[]),
        ("proxy_set_header Host a.org;", &["Host = \"a.org\""], &[]),
        ("proxy_set_header Host $server_name;", &["Host = \"n.org\""], &[]),
        ("proxy_set_header X-A \"$scheme://$host\";", &["X-A = \"{scheme}://{host}\""], &[]),
        ("proxy_set_header X-A $http_x_a;", &["!X-A"], &[]),
        ("proxy_set_header X-A \"\";", &["request_headers.remove = \"X-A\""], &[]),
        ("proxy_set_header X-A $geoip;", &["!X-A = "], &["1: proxy_set_header X-A $geoip"]),
        ("proxy_set_header X-Forwarded-Proto https;", &["X-Forwarded-Proto = \"https\""], &[]),
        ("proxy_set_header TE $http_te;", &["!TE ="], &[]),
        ("add_header A b always;", &["response_headers.add = { A = \"b\" }"], &[]),
        ("add_header A \"{b}\" always;", &["response_headers.add = { A = \"{{b}}\" }"], &[]),
        ("add_header A b; add_header A c;", &["A = \"b\""], &["1: add_header A c"]),
        ("proxy_hide_header A; add_header A b;", &["response_headers.set = { A = \"b\" }"], &[]),
        ("expires -1;", &["Cache-Control = \"no-cache\""], &[]),
        ("client_max_body_size 0;", &["max_body = \"1024TiB\""], &[]),
        ("proxy_read_timeout 90;", &["timeouts.response = \"90s\""], &[]),
        ("proxy_send_timeout 7;", &["timeouts.stall = \"7s\""], &[]),
        ("proxy_connect_timeout 3;", &["[timeouts]\nconnect = \"3s\""], &[]),
    ] {
        let inner = format!("server_name n.org; location / {{ proxy_pass http://h:1; {inner} }}");
        assert_settings(Kind::Nginx, &server(&inner), parts, losses);
    }
}

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

#[test]
fn groups_of_nginx() {
    for (inner, part, losses) in [
        ("server a:1;", "servers = \"http://a:1\"", &[][..]),
        ("server a:1 down; server b;", "servers = \"http://b\"", &[]),
        ("random two least_conn; server a:1;", "balance = \"two-choices\"", &[]),
        ("hash $cookie_id consistent; server a:1;", "hash = \"cookie:id\"", &[]),
        ("hash $http_x_user; server a:1;", "hash = \"header:x-user\"", &[]),
        ("hash $request_uri; server a:1;", "servers", &["1: hash $request_uri"]),
        ("sticky cookie S; server a:1;", "sticky = \"S\"", &[]),
        ("server a:1 max_conns=7; server b:1 max_conns=7;", "max_connections = 7", &[]),
        ("server a:1; keepalive_time 1h; keepalive_requests 10;", "pool.max_requests = 10", &[]),
        ("server a:1; keepalive_time 2h;", "pool.max_age = \"2h\"", &[]),
        ("server a:1 weight=3; server b:1;", "{ url = \"http://a:1\", weight = 3 }", &[]),
        ("server a:1; keepalive_timeout 30s;", "[timeouts]\npooled = \"30s\"", &[]),
        ("server a:1 slow_start=20s;", "eject.slow_return = \"20s\"", &[]),
        ("server a:1 down;", "status = 501", &["1: proxy_pass http://g"]),
    ] {
        let text = format!("upstream g {{ {inner} }} server {{ location / {{ proxy_pass http://g; }} }}");
        assert_all(Kind::Nginx, &[(&text, &[part], losses)]);
    }
}

/// Regression test: the report of a text with variables called it a rewriting, or called a known variable unknown.
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

#[test]
fn includes_are_followed_and_missing_ones_reported() {
    let files = [
        ("/etc/nginx/conf.d/a.conf", "server {\n server_name a.org;\n frob 1;\n return 301 /a; }"),
        ("/etc/nginx/conf.d/b.conf", "server { include snippets/tls.conf; return 301 /b; }"),
        ("/etc/nginx/snippets/tls.conf", "listen 443 ssl; ssl_certificate c; ssl_certificate_key k;"),
    ];
    let reader = Memory(files.into_iter().map(|(path, text)| (PathBuf::from(path), text)).collect());
    let text = "http { include /etc/nginx/mime.types; include conf.d/*.conf; include none.conf; include none/*.conf; }";
    let found = import(text, Path::new("/etc/nginx/nginx.conf"), None, &reader).unwrap();
    let losses: Vec<_> = found.losses.iter().map(|loss| format!("{}:{}", loss.file, loss.line)).collect();
    assert_eq!(losses, ["/etc/nginx/nginx.conf:1", "/etc/nginx/conf.d/a.conf:3"], "{}", found.toml);
    assert!(found.toml.contains("# /etc/nginx/snippets/tls.conf:1\n[listener.https]"), "{}", found.toml);
    // A single site's file finds its snippets above its own directory.
    let found = import(files[1].1, Path::new("/etc/nginx/conf.d/b.conf"), None, &reader).unwrap();
    assert!(found.losses.is_empty() && found.toml.contains("chain = \"c\""), "{}", found.toml);
    let error =
        import("include x;", Path::new("x"), Some(Kind::Nginx), &Memory([("x".into(), "include x;")].into()));
    assert!(error.unwrap_err().to_string().contains("files include each other"));
}

#[test]
fn broken_configurations_are_located() {
    for (text, kind, message) in [
        ("http {\n server {\n", Kind::Nginx, "x:2: unexpected end of the file: expected `}` of `server`"),
        ("a b\n", Kind::Nginx, "x:1: unexpected end of the file after `a b`: expected `;` or `{`"),
        ("a;\n}", Kind::Nginx, "x:2: unexpected `}`: no block is open"),
        ("a { b }", Kind::Nginx, "x:1: unexpected `}` after `b`: expected `;`"),
        ("a 'b;", Kind::Nginx, "x:1: unexpected end of the file in a quoted text: expected `'`"),
        (
            "mode http",
            Kind::Haproxy,
            "x:1: unexpected `mode`: expected a section such as global, defaults or frontend",
        ),
        ("global\n a \"b", Kind::Haproxy, "x:2: unexpected end of the line in a quoted text: expected `\"`"),
        ("backend", Kind::Haproxy, "x:1: `backend` without a name: expected `backend NAME`"),
    ] {
        let error = import(text, Path::new("x"), Some(kind), &Memory::default()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    for text in ["", "hello", "# frontend x"] {
        let error = import(text, Path::new("x"), None, &Memory::default()).unwrap_err();
        assert_eq!(error, ImportError::UnknownKind { file: "x".into() });
    }
}

/// Regression test: the importer took `listen 443 ssl; # managed by Certbot` for an HAProxy section.
#[test]
fn kinds_are_recognized() {
    let proxy = "mode http\n bind :80\n server s 127.0.0.1:1\n";
    for (text, kind) in [
        ("server {\n  listen 443 ssl; # managed by Certbot\n  return 200;\n}\n", Kind::Nginx),
        ("server {\n  listen [::]:80 # both\n    default_server;\n  return 200;\n}\n", Kind::Nginx),
        ("server\n{\n  listen 80 ; # frontend\n  return 200;\n}\n", Kind::Nginx),
        ("\u{feff}# frontend x\r\nserver {\r\n  listen 80;\r\n  return 200;\r\n}\r\n", Kind::Nginx),
        (
            "upstream backend { server a:1; }\nserver { location / { proxy_pass http://backend; } }\n",
            Kind::Nginx,
        ),
        ("map $host $x {\n  default a; # }\n  backend b; # {\n}\nserver { return 200; }\n", Kind::Nginx),
        (
            "server {\n  location / {\n    content_by_lua_block {\n      frontend = 1\n      global x\n    }\n  }\n}\n",
            Kind::Nginx,
        ),
        ("server { return 200 'a # b'; } # listen x\n", Kind::Nginx),
        (&format!("listen a # {{ for nginx; }}\n {proxy}"), Kind::Haproxy),
        (&format!("# server {{ }}\nlisten a\n {proxy} acl x path /a;b\n"), Kind::Haproxy),
        (
            &format!("\u{feff}defaults\n mode http\nlisten a\n {proxy} http-request deny if {{ path /x }}\n"),
            Kind::Haproxy,
        ),
        (
            &format!(
                "global\n log stdout format raw local0\nlisten a\n {proxy} http-request return string \"{{a;}}\"\n"
            ),
            Kind::Haproxy,
        ),
    ] {
        let found = import(text, Path::new("x"), None, &Memory::default());
        let found = found.unwrap_or_else(|error| panic!("{error}: {text}"));
        let expected = import(text, Path::new("x"), Some(kind), &Memory::default()).unwrap();
        assert_eq!(found.toml, expected.toml, "{text}");
        assert!(found.toml.contains("[[route]]"), "{text}\n{}", found.toml);
    }
}

/// Text from a file cannot escape from comments or strings of the result.
#[test]
fn texts_stay_texts() {
    let text = "server { server_name a; return 200 \"x\ny\\\"\\\\ \u{7}\"; add_header A \"b\nworkers = 7\" always; frob \"c\nworkers = 8\"; }";
    let (toml, _) = translated(text, Kind::Nginx);
    let table: toml::Table = toml.parse().unwrap();
    assert!(!table.contains_key("workers"), "{toml}");
}

/// Regression test: the gateway read an imported text's `${PATH}` from its environment.
#[test]
fn texts_name_no_variables_of_the_environment() {
    assert_servers(&[
        ("listen unix:/run/${PATH}.sock; return 200;", &["bind = \"unix:/run/$${PATH}.sock\""], &[]),
        ("return 301 https://a/$$host;", &["to = \"https://a/$${host}\""], &[]),
        ("location / { proxy_set_header X-A $$host; proxy_pass http://a; }", &["X-A = \"$${host}\""], &[]),
        ("add_header X-A '$${' always; return 200;", &["X-A = \"$$${{\""], &[]),
    ]);
    for (rule, part) in [
        ("http-request return status 200 string '${PATH} ${B:-c} ${'", "body = \"$${PATH} $${B:-c} $${\""),
        ("http-request set-header X-A '$${PATH}'", "X-A = \"$$${{PATH}}\""),
        ("http-response add-header X-A ${PATH}", "\"$${{PATH}}\""),
        ("http-request redirect location '/a?${PATH}'", "to = \"/a?$${{PATH}}\""),
        ("use_backend b if { hdr(X-A) '${PATH}' }", "\"$${PATH}\""),
        ("bind :443 ssl crt '/etc/${PATH}.pem'", "chain = \"/etc/$${PATH}.pem\""),
    ] {
        let text = frontend(&format!("{rule}; default_backend b"));
        assert_all(Kind::Haproxy, &[(&text, &[part], &[])]);
    }
    let text =
        frontend("http-request return status 200 content-type text/plain string '${PATH} $${PATH} ${'");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.toml");
    std::fs::write(&path, translated(&text, Kind::Haproxy).0).unwrap();
    let checked = weir_gateway::read(&path).unwrap();
    let body = checked.config.routes.iter().find_map(|route| route.respond.as_ref()?.body.clone());
    assert_eq!(body.as_deref(), Some("${PATH} $${PATH} ${"));
}

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
