//! Files: includes, the place of an error, and the kind of a configuration.

use crate::Memory;
use std::path::{Path, PathBuf};
use weir_import::{ImportError, Kind, import};

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
    // The file of a single site includes snippets from the directory above its own.
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
