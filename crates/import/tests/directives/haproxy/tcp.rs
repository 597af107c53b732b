//! HAProxy's `mode tcp`, translated to listeners with `tcp` or `passthrough`.

use crate::{assert_all, translated};
use weir_import::Kind;

/// A frontend in `mode tcp` with these lines, and two backends.
fn tcp(lines: &str) -> String {
    format!(
        "defaults\n mode tcp\n timeout client 1m\n timeout server 2m\nfrontend f\n {}\nbackend a\n server s 10.0.0.1:5432\n\
         backend b\n server s 10.0.0.2:5432\n",
        lines.replace("; ", "\n ")
    )
}

#[track_caller]
fn assert_tcp(cases: &[(&str, &[&str], &[&str])]) {
    for (lines, parts, losses) in cases {
        assert_all(Kind::Haproxy, &[(&tcp(lines), parts, losses)]);
    }
}

#[test]
fn listeners_of_bytes() {
    assert_tcp(&[
        (
            "bind :5432; default_backend a",
            &[
                "[listener.f]\nbind = \"0.0.0.0:5432\"\ntcp = { service = \"a\", idle = \"1min\" }",
                "[service.a]\nservers = \"tcp://10.0.0.1:5432\"",
                "![[route]]",
                "!head =",
                "!stall",
            ],
            &[],
        ),
        ("bind :1; timeout client 3m; default_backend a", &["idle = \"2min\""], &[]),
        ("bind :443 ssl crt /c.pem; default_backend a", &["tls = {}", "chain = \"/c.pem\"", "tcp = {"], &[]),
        (
            "bind :443 ssl crt /c.pem alpn h2,http/1.1; default_backend a",
            &["tls = {}", "!http2"],
            &["5: bind alpn"],
        ),
        (
            "bind :443 ssl crt /c.pem ca-file /ca.pem verify required; default_backend a",
            &["tls.client_ca = \"/ca.pem\""],
            &[],
        ),
        ("bind /run/f.sock accept-proxy; default_backend a", &["proxy_protocol = \"unix\"\ntcp"], &[]),
        ("bind :1 accept-proxy; default_backend a", &["proxy_protocol = [\"0.0.0.0/0\", \"::/0\"]"], &[]),
        (
            "bind :1; tcp-request connection expect-proxy layer4 if { src 10.0.0.0/8 }; default_backend a",
            &["proxy_protocol = \"10.0.0.0/8\"\ntcp"],
            &[],
        ),
        // Each listener has one port, which decides a condition on the port.
        (
            "bind :1; bind :2; use_backend b if { dst_port 2 }; default_backend a",
            &[
                "bind = \"0.0.0.0:1\"\ntcp = { service = \"a\"",
                "bind = \"0.0.0.0:2\"\ntcp = { service = \"b\"",
            ],
            &[],
        ),
        ("log global; option tcplog; bind :1; default_backend a", &["access = \"-\""], &[]),
        ("maxconn 9; bind :1; default_backend a", &["tcp ="], &["6: maxconn 9"]),
    ]);
    let text = "defaults\n mode tcp\n timeout connect 3s\nlisten l\n bind :1\n server s 127.0.0.1:2\n";
    assert_all(
        Kind::Haproxy,
        &[(text, &["tcp = { service = \"l\" }", "l has no timeouts", "connect = \"3s\""], &[])],
    );
    let text = "defaults\n mode tcp\nlisten l\n bind :1\n timeout client 5s\n timeout tunnel 0\n server s 127.0.0.1:2\n";
    assert_all(Kind::Haproxy, &[(text, &["idle = \"365d\""], &[])]);
}

#[test]
fn servers_of_bytes() {
    for (lines, parts, losses) in [
        (
            "balance leastconn; server s a:1 weight 3 maxconn 7 check inter 3s; server t b:1 backup",
            &[
                "{ url = \"tcp://a:1\", weight = 3 }",
                "{ url = \"tcp://b:1\", backup = true }",
                "balance = \"least-in-flight\"\nmax_connections = 7\nhealth.every = \"3s\"",
                "connections above max_connections end at once",
            ][..],
            &[][..],
        ),
        ("server s a:1 send-proxy", &["proxy_protocol = \"v1\""], &[]),
        ("server s a:1 send-proxy-v2", &["proxy_protocol = \"v2\""], &[]),
        (
            "server s a:1 ssl verify required ca-file /ca.pem sni str(db.test)",
            &["servers = \"tls://a:1\"\ntls.ca = \"/ca.pem\"\ntls.name = \"db.test\""],
            &[],
        ),
        ("server s a:1 ssl verify none", &["servers = \"tls://a:1\"\ntls.insecure = true"], &[]),
        ("server s a:1 ssl verify none alpn h2", &["tls://a:1", "!http2"], &["3: alpn of l"]),
        ("balance source; server s a:1", &["balance = \"hash\""], &[]),
        ("balance hdr(X); server s a:1", &["!balance ="], &["5: balance hdr(X)"]),
        ("server s unix@/run/a.sock", &["servers = \"unix:/run/a.sock\""], &[]),
        (
            "option httpchk GET /h; server s a:1 check",
            &["health.every = \"2s\"", "!health.path"],
            &["5: option httpchk GET /h"],
        ),
        // All servers of a service share its TLS settings, so a server with other settings is left out.
        (
            "server s a:1 ssl verify required ca-file /ca.pem; server t b:1 ssl verify none",
            &["servers = \"tls://a:1\"", "!insecure"],
            &["6: server t b:1 ssl verify none"],
        ),
        (
            "server s a:1 send-proxy; server t b:1",
            &["servers = \"tcp://a:1\"\nproxy_protocol = \"v1\""],
            &["6: server t b:1"],
        ),
        ("server s 0.0.0.0", &["![listener", "![service"], &["3: backend l", "5: server s 0.0.0.0"]),
    ] {
        let text = format!("defaults\n mode tcp\nlisten l\n bind :1\n {}\n", lines.replace("; ", "\n "));
        let losses: Vec<_> = losses.iter().map(|loss| loss.replace("backend l", "listen l")).collect();
        let losses: Vec<_> = losses.iter().map(String::as_str).collect();
        assert_all(Kind::Haproxy, &[(&text, parts, &losses)]);
    }
}

#[test]
fn clients_of_bytes() {
    assert_tcp(&[
        (
            "bind :1; tcp-request connection reject if !{ src 10.0.0.0/8 }; default_backend a",
            &["allow = \"10.0.0.0/8\"\ntcp", "!deny"],
            &[],
        ),
        (
            "bind :1; tcp-request connection reject if { src 10.0.0.9 ::1 }; default_backend a",
            &["deny = \"10.0.0.9\"\ntcp"],
            &[],
        ),
        (
            "bind :1; acl in src 10.0.0.0/8; acl bad src 10.6.6.6; tcp-request content reject if bad; tcp-request content accept if in; tcp-request content reject; default_backend a",
            &["allow = \"10.0.0.0/8\"\ndeny = \"10.6.6.6\"\ntcp"],
            &[],
        ),
        (
            "bind :1; tcp-request connection silent-drop unless { src 10.0.0.0/8 } || { src 192.0.2.0/24 }; default_backend a",
            &["allow = [\"10.0.0.0/8\", \"192.0.2.0/24\"]"],
            &[],
        ),
        (
            "bind :1; tcp-request connection reject if { src 10.0.0.1 } or { src 10.0.0.2 }; default_backend a",
            &["deny = [\"10.0.0.1\", \"10.0.0.2\"]"],
            &[],
        ),
        // An accepted connection must still pass the rules of later stages.
        (
            "bind :1; tcp-request connection accept if { src 10.0.0.1 }; tcp-request content reject if { src 10.0.0.0/8 }; default_backend a",
            &["deny = \"10.0.0.0/8\"", "!narrowed"],
            &[],
        ),
        (
            "bind :1; tcp-request content accept if { src 10.0.0.1 }; tcp-request content reject if { src 10.0.0.0/8 }; default_backend a",
            &["deny = \"10.0.0.0/8\"", "SO MORE IS DENIED"],
            &["5: frontend f"],
        ),
        (
            "bind :1; tcp-request connection reject; default_backend a",
            &["![listener", "![service"],
            &["5: frontend f"],
        ),
        ("bind :1; tcp-request content accept if WAIT_END; default_backend a", &["tcp =", "!allow"], &[]),
        (
            "bind :1 accept-proxy; tcp-request session reject if { src 10.0.0.9 }; default_backend a",
            &["deny = \"10.0.0.9\""],
            &[],
        ),
    ]);
    // A backend's rules apply to the listener that uses the backend.
    let with_rule = |frontend: &str| {
        tcp(frontend)
            .replace("\nbackend b\n", "\nbackend b\n tcp-request content reject if { src 10.0.0.9 }\n")
    };
    assert_all(
        Kind::Haproxy,
        &[
            (&with_rule("bind :1; default_backend b"), &["deny = \"10.0.0.9\"\ntcp"], &[]),
            (
                &with_rule("bind :1; use_backend a if { req.ssl_sni a.test }; default_backend b"),
                &["![listener"],
                &["11: backend b"],
            ),
        ],
    );
}

#[test]
fn sections_without_counterpart_are_left_out() {
    assert_tcp(&[
        (
            "bind :1; tcp-request connection reject if { src_conn_rate gt 9 }; default_backend a",
            &["![listener"],
            &["7: tcp-request connection reject if { src_conn_rate gt 9 }"],
        ),
        (
            "bind :1; use_backend b if { src 10.0.0.0/8 }; default_backend a",
            &["![listener"],
            &["7: use_backend b if { src 10.0.0.0/8 }"],
        ),
        (
            "bind :1 ssl crt /c.pem; use_backend b if { ssl_fc_sni b.test }; default_backend a",
            &["![listener", "![[certificate"],
            &["7: use_backend b if { ssl_fc_sni b.test }"],
        ),
        ("bind :1; use_backend %[src]; default_backend a", &["![listener"], &["7: use_backend %[src]"]),
        ("bind :1; default_backend none", &["![listener"], &["7: default_backend none"]),
        ("bind :1", &["![listener"], &["5: frontend f"]),
        ("bind :1000-2000; default_backend a", &["![listener"], &["5: frontend f", "6: bind :1000-2000"]),
        (
            "bind :1; tcp-request content switch-mode http; default_backend a",
            &["![listener"],
            &["7: tcp-request content switch-mode http", "7: tcp-request content switch-mode http"],
        ),
        (
            "bind :1; tcp-response content reject; default_backend a",
            &["![listener"],
            &["7: tcp-response content reject"],
        ),
        (
            "bind :1 accept-proxy; tcp-request connection reject if { src 10.0.0.9 }; default_backend a",
            &["![listener"],
            &["5: frontend f"],
        ),
        (
            "bind :1; tcp-request connection expect-proxy layer4 unless { src 10.0.0.0/8 }; default_backend a",
            &["![listener"],
            &["7: tcp-request connection expect-proxy layer4 unless { src 10.0.."],
        ),
    ]);
    let text = tcp("bind :1; default_backend a")
        .replace("\nbackend a\n", "\nbackend a\n mode http\n http-request deny\n");
    assert_all(Kind::Haproxy, &[(&text, &["![listener"], &["7: default_backend a"])]);
}

#[test]
fn names_of_tls_in_bytes() {
    assert_tcp(&[
        (
            "bind :443; tcp-request inspect-delay 5s; tcp-request content accept if { req.ssl_hello_type 1 }; \
             tcp-request content reject; use_backend a if { req.ssl_sni -i A.test }; default_backend b",
            &[
                "{ name = \"a.test\", service = \"a\" }",
                "{ name = \"*\", service = \"b\" }",
                "servers = \"tcp://10.0.0.1:5432\"",
                "tunnel = \"1min\"",
                "!tcp =",
            ],
            &[],
        ),
        (
            "bind :443; tcp-request content reject if !{ req.ssl_hello_type 1 }; default_backend a",
            &["{ name = \"*\", service = \"a\" }", "!deny"],
            &[],
        ),
        // Regression test: any mention of the ClientHello hid the rest of a rejecting rule's condition.
        (
            "bind :443; tcp-request content reject if { req.ssl_hello_type 1 } !{ src 10.0.0.0/8 }; default_backend a",
            &["allow = \"10.0.0.0/8\"\npassthrough"],
            &[],
        ),
        // Regression test: a later rule for a name took effect, although an earlier rule for its domain applies first
        // in HAProxy.
        (
            "bind :443; use_backend a if { req.ssl_sni -m end .test }; use_backend b if { req.ssl_sni b.test }",
            &["passthrough = [\n    { name = \"*.test\", service = \"a\" },\n]", "!b.test\","],
            &[],
        ),
        (
            "bind :443; use_backend a if { req.ssl_sni -m reg ^x[0-9] }; default_backend b",
            &["{ name = \"*\", service = \"b\" }", "!service = \"a\""],
            &["7: use_backend a if { req.ssl_sni -m reg ^x[0-9] }"],
        ),
        (
            "bind :443; use_backend a if { req.ssl_sni -m end a.test }; default_backend b",
            &["{ name = [\"a.test\", \"*.a.test\"], service = \"a\" }"],
            &["7: use_backend a if { req.ssl_sni -m end a.test }"],
        ),
        (
            "bind :443; use_backend a if { req.ssl_sni a.test } { src 10.0.0.0/8 }; default_backend b",
            &["![listener"],
            &["7: use_backend a if { req.ssl_sni a.test } { src 10.0.0.0/8 }"],
        ),
        (
            "bind :443 ssl crt /c.pem; use_backend a if { req.ssl_sni a.test }; default_backend b",
            &["![listener"],
            &["6: bind :443 ssl crt /c.pem"],
        ),
    ]);
    // Regression test: TLS to the servers was dropped.
    let text = tcp("bind :443; use_backend a if { req.ssl_sni a.test }; default_backend b")
        .replace("10.0.0.1:5432", "10.0.0.1:5432 ssl verify none");
    let (toml, losses) = translated(&text, Kind::Haproxy);
    assert!(!toml.contains("[listener"), "{toml}");
    assert_eq!(losses.len(), 2, "{losses:?}");
}

/// Sections in `mode tcp` change neither the routes nor the timeouts of HTTP.
#[test]
fn bytes_beside_http() {
    let text = "defaults\n mode http\n timeout client 9s\nlisten w\n bind :80\n server s 127.0.0.1:1\nlisten t\n mode tcp\n \
                bind :81\n timeout client 1h\n timeout server 1h\n server s 127.0.0.1:2\n";
    let parts: &[&str] = &[
        "tcp = { service = \"t\", idle = \"1h\" }",
        "[[route]]\nservice = \"w\"",
        "idle = \"9s\"",
        "!stall = \"1h\"",
    ];
    assert_all(Kind::Haproxy, &[(text, parts, &[])]);
}
