//! nginx's `stream`, translated to listeners with `tcp` or `passthrough`.

use crate::{assert_all, translated};
use weir_import::Kind;

/// A `stream` with a group `g` and this server.
fn stream(server: &str) -> String {
    format!("stream {{ upstream g {{ server 10.0.0.1:5432; server 10.0.0.2:5432; }} server {{ {server} }} }}")
}

#[track_caller]
fn assert_streams(cases: &[(&str, &[&str], &[&str])]) {
    for (server, parts, losses) in cases {
        assert_all(Kind::Nginx, &[(&stream(server), parts, losses)]);
    }
}

#[test]
fn listeners_of_streams() {
    assert_streams(&[
        (
            "listen 5432; proxy_pass g;",
            &[
                "[listener.tcp-5432]\nbind = \"0.0.0.0:5432\"\ntcp = { service = \"g\", idle = \"10min\" }",
                "[service.g]\nservers = [\n    \"tcp://10.0.0.1:5432\",\n    \"tcp://10.0.0.2:5432\",\n]",
                "![[route]]",
            ],
            &[],
        ),
        (
            "listen [::]:22 ipv6only=off; listen 23; proxy_timeout 3h; proxy_connect_timeout 4s; proxy_pass h:22;",
            &[
                "bind = [\"[::]:22\", \"0.0.0.0:22\", \"0.0.0.0:23\"]",
                "idle = \"3h\"",
                "connect = \"4s\"",
                "servers = \"tcp://h:22\"",
            ],
            &[],
        ),
        (
            "listen unix:/run/a.sock; proxy_pass unix:/run/b.sock;",
            &["[listener.tcp-unix]\nbind = \"unix:/run/a.sock\"\ntcp", "servers = \"unix:/run/b.sock\""],
            &[],
        ),
        (
            "listen 1 so_keepalive=on backlog=9; tcp_nodelay on; proxy_half_close on; proxy_pass h:2;",
            &["[listener.tcp-1]"],
            &[],
        ),
        // Without a variable, the target does not depend on the server name.
        (
            "listen 443; ssl_preread on; proxy_pass h:443;",
            &["tcp = { service = \"h-443\"", "!passthrough"],
            &[],
        ),
        (
            "listen 1; access_log /var/log/tcp.log basic; proxy_pass h:2;",
            &["access = \"/var/log/tcp.log\""],
            &[],
        ),
        (
            "listen 1; access_log syslog:server=a; proxy_pass h:2;",
            &["![log]"],
            &["1: access_log syslog:server=a"],
        ),
        ("listen 1; proxy_upload_rate 1k; proxy_pass h:2;", &["tcp ="], &["1: proxy_upload_rate 1k"]),
    ]);
}

#[test]
fn tls_of_streams() {
    let tls = "ssl_certificate a.pem; ssl_certificate_key a.key; proxy_pass h:2;";
    for (listen, parts, losses) in [
        (
            "listen 1 ssl; ssl_protocols TLSv1.3;",
            &["tcp = { service = \"h-2\", idle = \"10min\" }\ntls.versions = \"1.3\"", "chain = \"a.pem\""][..],
            &[][..],
        ),
        (
            "listen 1 ssl; listen 2;",
            &["[listener.tcp-1]\nbind = \"0.0.0.0:1\"", "[listener.tcp-2]\nbind = \"0.0.0.0:2\"", "tls = {}"],
            &[],
        ),
        (
            "listen 1 ssl; ssl_verify_client on; ssl_client_certificate ca.pem; ssl_crl crl.pem;",
            &["tls.client_ca = \"ca.pem\"\ntls.client_crl = \"crl.pem\""],
            &[],
        ),
        ("listen 1 ssl; ssl_alpn a;", &["tls = {}"], &["1: ssl_alpn a"]),
        // The server names no CAs for client certificates, so a listener would admit all clients.
        (
            "listen 1 ssl; ssl_verify_client on;",
            &["![listener", "![service", "![[certificate"],
            &["1: ssl_verify_client on", "1: ssl_verify_client on"],
        ),
        ("listen 1 ssl; ssl_reject_handshake on;", &["![listener"], &["1: ssl_reject_handshake on"]),
    ] {
        assert_streams(&[(&format!("{listen} {tls}"), parts, losses)]);
    }
}

#[test]
fn servers_of_streams() {
    assert_streams(&[
        (
            "listen 1; proxy_ssl on; proxy_pass g;",
            &["    \"tls://10.0.0.1:5432\",", "tls.insecure = true"],
            &[],
        ),
        (
            "listen 1; proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; proxy_ssl_name db.test; proxy_pass h:2;",
            &["servers = \"tls://h:2\"\ntls.ca = \"ca.pem\"\ntls.name = \"db.test\"", "!insecure"],
            &[],
        ),
        (
            "listen 1; proxy_protocol on; proxy_pass h:2;",
            &["servers = \"tcp://h:2\"\nproxy_protocol = \"v1\""],
            &[],
        ),
        (
            "listen 1; health_check interval=2s fails=3 passes=4 match=m; proxy_pass g;",
            &["health.every = \"2s\"\nhealth.fall = 3\nhealth.rise = 4"],
            &["1: match=m"],
        ),
        (
            "listen 1; proxy_ssl on; proxy_pass unix:/a;",
            &["![listener", "![service"],
            &["1: proxy_pass unix:/a"],
        ),
        ("listen 1; proxy_pass nowhere;", &["![listener"], &["1: proxy_pass nowhere"]),
    ]);
    for (inner, part, losses) in [
        (
            "server a:1 weight=3 max_fails=2 fail_timeout=9s max_conns=7; server b:1 backup;",
            "servers = [\n    { url = \"tcp://a:1\", weight = 3 },\n    { url = \"tcp://b:1\", backup = true },\n]\neject.failures = 2\neject.for = \"9s\"\nmax_connections = 7",
            &[][..],
        ),
        ("least_conn; server a:1;", "balance = \"least-in-flight\"", &[]),
        ("random two; server a:1;", "balance = \"two-choices\"", &[]),
        ("hash $remote_addr consistent; server a:1;", "balance = \"hash\"", &[]),
        ("hash $http_a; server a:1;", "servers = \"tcp://a:1\"\n", &["1: hash $http_a"]),
        ("zone u 64k; server a:1; server unix:/b;", "\"unix:/b\"", &[]),
        ("server a; server b:1;", "servers = \"tcp://b:1\"", &["1: server a"]),
    ] {
        let text = format!("stream {{ upstream u {{ {inner} }} server {{ listen 9; proxy_pass u; }} }}");
        assert_all(Kind::Nginx, &[(&text, &[part], losses)]);
    }
}

#[test]
fn clients_of_streams() {
    assert_streams(&[
        (
            "listen 1; deny 10.0.0.9; allow 10.0.0.0/8; allow ::1; deny all; proxy_pass h:2;",
            &["allow = \"10.0.0.0/8\"\ndeny = \"10.0.0.9\"\ntcp"],
            &[],
        ),
        ("listen 1; deny 10.0.0.9; proxy_pass h:2;", &["deny = \"10.0.0.9\"\ntcp", "!allow"], &[]),
        (
            "listen 1; allow 10.0.0.9; deny 10.0.0.0/8; proxy_pass h:2;",
            &["deny = \"10.0.0.0/8\"\ntcp", "SO MORE IS DENIED"],
            &["1: allow 10.0.0.9"],
        ),
        ("listen 1; deny all; proxy_pass h:2;", &["![listener"], &["1: server"]),
        ("listen 1; deny x; proxy_pass h:2;", &["![listener"], &["1: deny x"]),
        ("listen 1; allow unix:; deny all; proxy_pass h:2;", &["![listener"], &["1: server"]),
        (
            "listen 1 proxy_protocol; set_real_ip_from 10.0.0.0/8; allow 192.0.2.0/24; deny all; proxy_pass h:2;",
            &["proxy_protocol = \"10.0.0.0/8\"\nallow = \"192.0.2.0/24\"\ntcp"],
            &[],
        ),
        ("listen 1 proxy_protocol; proxy_pass h:2;", &["proxy_protocol = [\"0.0.0.0/0\", \"::/0\"]"], &[]),
        ("listen unix:/a proxy_protocol; proxy_pass h:2;", &["proxy_protocol = \"unix\""], &[]),
        // Any client could claim an admitted address in its PROXY protocol header.
        (
            "listen 1 proxy_protocol; allow 10.0.0.1; deny all; proxy_pass h:2;",
            &["![listener"],
            &["1: allow 10.0.0.1"],
        ),
    ]);
}

#[test]
fn streams_without_counterpart_are_left_out() {
    assert_streams(&[
        ("listen 53 udp; proxy_pass h:53;", &["![listener"], &["1: listen 53 udp"]),
        (
            "listen 53; listen 53 udp; proxy_pass h:53;",
            &["[listener.tcp-53]\nbind = \"0.0.0.0:53\"\ntcp"],
            &["1: listen 53 udp"],
        ),
        ("listen 1; proxy_pass $x;", &["![listener"], &["1: proxy_pass $x"]),
        ("listen 1; return hello;", &["![listener"], &["1: server"]),
        (
            "listen 1; js_access a.check; proxy_pass h:2;",
            &["![listener"],
            &["1: js_access a.check", "1: js_access a.check"],
        ),
        ("listen 1000-2000; proxy_pass h:2;", &["![listener"], &["1: listen 1000-2000"]),
        ("proxy_pass h:2;", &["![listener"], &["1: server"]),
    ]);
    for (text, losses) in [
        (
            "stream { server { listen 1; server_name a; proxy_pass h:2; } server { listen 1; server_name b; proxy_pass h:3; } }",
            &["1: server"][..],
        ),
        (
            "http { server { listen 1; return 200; } }\nstream { server { listen 0.0.0.0:1; proxy_pass h:2; } }",
            &["2: listen 0.0.0.0:1"],
        ),
        (
            "stream { split_clients $remote_addr $s { 50% a; * b; } server { listen 1; proxy_pass $s; } }",
            &["1: proxy_pass $s", "1: split_clients $remote_addr $s"],
        ),
    ] {
        assert_all(Kind::Nginx, &[(text, &["!tcp ="], losses)]);
    }
}

#[test]
fn names_of_streams() {
    let preread = |map: &str, server: &str| {
        format!(
            "stream {{ map $ssl_preread_server_name $s {{ {map} }} server {{ listen 443; ssl_preread on; proxy_pass $s; {server} }} }}"
        )
    };
    for (map, server, parts, losses) in [
        (
            "a.test h:1; default h:2;",
            "proxy_timeout 5m; deny 10.0.0.9;",
            &[
                "deny = \"10.0.0.9\"\npassthrough = [",
                "{ name = \"a.test\", service = \"h-1\" }",
                "{ name = \"*\", service = \"h-2\" }",
                "servers = \"tcp://h:1\"",
                "tunnel = \"5min\"",
                "!tcp =",
            ][..],
            &[][..],
        ),
        // nginx prefers a domain to an expression.
        (
            "hostnames; ~^(www\\.)?a\\.test$ h:1; *.a.test h:2;",
            "",
            &["{ name = \"*.a.test\", service = \"h-2\" }", "{ name = \"a.test\", service = \"h-1\" }"],
            &[],
        ),
        // Without `hostnames`, an asterisk in a name is literal.
        (
            "~^(www\\.)?a\\.test$ h:1; *.a.test h:2;",
            "",
            &["{ name = [\"a.test\", \"www.a.test\"], service = \"h-1\" }", "!h-2"],
            &["1: *.a.test h:2"],
        ),
        ("a.test \"\"; b.test h:1;", "", &["{ name = \"b.test\"", "!a.test"], &[]),
        ("~^x[0-9]\\.test$ h:1; b.test h:2;", "", &["b.test"], &["1: ~^x[0-9]\\.test$ h:1"]),
        // Regression test: a name that nginx rejects was forwarded by the entry for all names.
        ("a.test \"\"; default h:1;", "", &["![listener"], &["1: map $ssl_preread_server_name $s"]),
        (
            "hostnames; x.a.test \"\"; .a.test h:1;",
            "",
            &["![listener"],
            &["1: map $ssl_preread_server_name $s"],
        ),
        // Regression test: TLS to the servers was dropped.
        ("a.test h:1;", "proxy_ssl on;", &["![listener"], &["1: proxy_ssl on"]),
        ("a.test nowhere;", "", &["![listener", "![service"], &["1: a.test nowhere"]),
    ] {
        assert_all(Kind::Nginx, &[(&preread(map, server), parts, losses)]);
    }
}

/// A TCP server and a UDP server may have the same address.
#[test]
fn servers_of_udp_do_not_share_an_address_with_those_of_tcp() {
    let text = "stream { server { listen 53; proxy_pass h:53; } server { listen 53 udp; proxy_pass h:53; } }";
    assert_all(Kind::Nginx, &[(text, &["[listener.tcp-53]"], &["1: listen 53 udp"])]);
}

/// A `stream` listener beside HTTP neither redirects nor has routes.
#[test]
fn streams_beside_http() {
    let text = "http { server { return 301 https://$host$request_uri; } }\n\
         stream { server { listen 5432 ssl; ssl_certificate c; ssl_certificate_key k; proxy_pass h:2; } }";
    let (toml, _) = translated(text, Kind::Nginx);
    assert!(toml.contains("[[route]]\nredirect = { to = \"https://{host}{target}\""), "{toml}");
    assert!(!toml.contains("redirect = { to = \"https\""), "{toml}");
}
