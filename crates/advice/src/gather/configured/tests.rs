use super::*;
use crate::finding::findings;
use crate::product::Product;
use crate::rule::Rules;
use std::fs;

/// The facts of a configuration.
fn facts(name: &str, text: &str, version: Option<&str>) -> Facts {
    let folder = tempfile::tempdir().expect("is created");
    let file = folder.path().join(name);
    fs::write(&file, text).expect("is written");
    let mut facts = Facts::default();
    facts.add_known("product.version", version, "test");
    facts.add_config(&Config::read(&file).expect("parses"));
    facts
}

fn found(facts: &Facts, product: Product) -> Vec<String> {
    findings(&Rules::built_in(), facts, product, None).into_iter().map(|finding| finding.id).collect()
}

/// A well-configured nginx. Each of these lines replaces the line with the same beginning.
fn nginx(changed: &[&str]) -> String {
    let lines = [
        "worker_processes auto;",
        "http {",
        "access_log /var/log/access.log combined buffer=64k;",
        "keepalive_timeout 75s;",
        "keepalive_requests 1000;",
        "ssl_protocols TLSv1.2 TLSv1.3;",
        "ssl_session_tickets on;",
        "ssl_session_cache shared:SSL:10m;",
        "ssl_ecdh_curve X25519:prime256v1;",
        "ssl_buffer_size 16k;",
        "tcp_nodelay on;",
        "upstream app { server 127.0.0.1:3000; keepalive 64; }",
        "server { listen 443 ssl; proxy_http_version 1.1; proxy_buffering on;",
        "proxy_set_header Connection \"\";",
        "location / { proxy_pass http://app; } } }",
    ];
    let line = |line: &&str| {
        let start = line.split([' ', ';']).next().expect("has a word");
        let instead = changed.iter().find(|one| one.split([' ', ';']).next() == Some(start));
        (*instead.unwrap_or(line)).to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_fault_of_an_nginx_configuration_is_found_with_its_line() {
    assert_eq!(found(&facts("nginx.conf", &nginx(&[]), None), Product::Nginx), [""; 0]);
    let cases: [(&[&str], &str, &str); 15] = [
        (&["access_log /x combined;"], "unbuffered-log", "nginx.conf:3"),
        (&["keepalive_timeout 0;"], "client-keep-alive", "nginx.conf:4"),
        (&["keepalive_timeout 2s;"], "keep-alive-too-short", "nginx.conf:4"),
        (&["keepalive_requests 10;"], "few-requests-per-connection", "nginx.conf:5"),
        (&["ssl_protocols TLSv1.1 TLSv1.2;"], "no-tls-1.3", "nginx.conf:6"),
        (&["ssl_session_tickets off;", "ssl_session_cache off;"], "resumption-off", "nginx.conf:7"),
        (&["ssl_session_cache builtin:1000;"], "unshared-session-cache", "nginx.conf:8"),
        (&["ssl_ecdh_curve secp384r1;"], "hello-retry", "nginx.conf:9"),
        (&["ssl_buffer_size 1400;"], "small-record-buffer", "nginx.conf:10"),
        (&["tcp_nodelay off;"], "nodelay-off", "nginx.conf:11"),
        (&["upstream app { server 127.0.0.1:3000; }"], "upstream-keep-alive", "nginx.conf:15, no keepalive"),
        (&["proxy_set_header X y;"], "upstream-keep-alive", "nginx.conf:15, `Connection: close`"),
        (
            &["server { listen 443 ssl; proxy_http_version 1.1; proxy_buffering off;"],
            "unbuffered-proxy",
            "nginx.conf:13",
        ),
        (&["location / { proxy_pass https://app; } } }"], "upstream-without-sni", "nginx.conf:15"),
        (&["tcp_nodelay on; proxy_ssl_session_reuse off;"], "upstream-resumption-off", "nginx.conf:11"),
    ];
    for (changed, id, place) in cases {
        let facts = facts("nginx.conf", &nginx(changed), None);
        let all = findings(&Rules::built_in(), &facts, Product::Nginx, None);
        let ids: Vec<&str> = all.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, [id], "{changed:?}");
        let is_there = all[0].evidence.iter().any(|one| one.source.starts_with(place));
        assert!(is_there, "{changed:?}: {:?}", all[0].evidence);
    }
}

#[test]
fn an_nginx_that_sends_the_server_name_or_has_none_to_send_is_well() {
    for line in [
        "location / { proxy_ssl_server_name on; proxy_pass https://app; } } }",
        "location / { proxy_pass http://app; } } }",
    ] {
        assert_eq!(found(&facts("nginx.conf", &nginx(&[line]), None), Product::Nginx), [""; 0], "{line}");
    }
    for (url, is_fault) in
        [("https://10.0.0.1/", false), ("https://[::1]:443", false), ("https://app.internal", true)]
    {
        let text = format!("http {{ access_log off; server {{ location / {{ proxy_pass {url}; }} }} }}");
        let facts = facts("nginx.conf", &text, Some("1.30.0"));
        assert_eq!(facts.number("config.upstreams_without_sni").is_some(), is_fault, "{url}");
    }
}

#[test]
fn newer_versions_of_nginx_keep_upstream_connections_by_default() {
    let text = "http { access_log off; upstream app { server a; } server { location / { proxy_pass http://app; } } }";
    for (version, ids) in
        [(Some("1.28.3"), vec!["upstream-keep-alive"]), (Some("1.29.7"), vec![]), (Some("1.30.0"), vec![])]
    {
        assert_eq!(found(&facts("nginx.conf", text, version), Product::Nginx), ids, "{version:?}");
    }
    let direct = "http { access_log off; server { location / { proxy_pass http://10.0.0.1:80; } } }";
    assert_eq!(found(&facts("nginx.conf", direct, Some("1.22.1")), Product::Nginx), ["upstream-keep-alive"]);
    let variable = "http { access_log off; server { location / { proxy_pass http://$backend; } } }";
    assert_eq!(found(&facts("nginx.conf", variable, Some("1.22.1")), Product::Nginx), [""; 0]);
}

#[test]
fn each_fault_of_an_haproxy_configuration_is_found_with_its_line() {
    let well = "global\n nbthread 2\ndefaults\n mode http\n timeout http-keep-alive 75s\nfrontend f\n \
                bind :443 ssl crt a.pem curves X25519:P-256\nbackend b\n server s 127.0.0.1:80\n";
    assert_eq!(found(&facts("haproxy.cfg", well, None), Product::Haproxy), [""; 0]);
    for (from, to, id) in [
        ("mode http", "option httpclose", "client-keep-alive"),
        ("mode http", "option http-server-close", "upstream-keep-alive"),
        ("mode http", "http-reuse never", "upstream-keep-alive"),
        ("75s", "500", "keep-alive-too-short"),
        ("X25519:P-256", "P-384", "hello-retry"),
        ("curves X25519:P-256", "ssl-max-ver TLSv1.2", "no-tls-1.3"),
        ("curves X25519:P-256", "no-tls-tickets\n tune.ssl.cachesize 0", "resumption-off"),
        ("nbthread 2", "tune.ssl.maxrecord 1400", "small-record-buffer"),
        ("server s", "server s no-ssl-reuse", "upstream-resumption-off"),
        ("server s 127.0.0.1:80", "server s app:443 ssl verify none", "upstream-without-sni"),
    ] {
        let facts = facts("haproxy.cfg", &well.replace(from, to), None);
        let all = findings(&Rules::built_in(), &facts, Product::Haproxy, None);
        let ids: Vec<&str> = all.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, [id], "{to}");
        assert!(all[0].evidence.iter().any(|one| one.source.starts_with("haproxy.cfg:")), "{to}");
    }
    for named in ["app:443 ssl sni str(app)", "10.0.0.1:443 ssl", "app:80 check-sni app", "[::1]:443 ssl"] {
        let facts = facts("haproxy.cfg", &well.replace("127.0.0.1:80", named), None);
        assert_eq!(found(&facts, Product::Haproxy), [""; 0], "{named}");
    }
    let tickets_off = facts("haproxy.cfg", &well.replace("crt a.pem", "crt a.pem no-tls-tickets"), None);
    assert_eq!(found(&tickets_off, Product::Haproxy), [""; 0]);
}

#[test]
fn times_and_sizes() {
    for (text, unit, expected) in [
        ("75s", 1000, 75.0),
        ("75", 1000, 75.0),
        ("500", 1, 0.5),
        ("1m30s", 1000, 90.0),
        ("500ms", 1000, 0.5),
    ] {
        assert_eq!(seconds(text, unit), Some(expected), "{text}");
    }
    assert_eq!((seconds("", 1000), seconds("x", 1000)), (None, None));
    assert_eq!(
        [bytes("16k"), bytes("4096"), bytes("1M"), bytes("x")],
        [Some(16384.0), Some(4096.0), Some(1_048_576.0), None]
    );
}
