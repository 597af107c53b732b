//! Fields of requests and responses: the gateway removes connection-specific fields and forwards the others.

use super::{BOTH, Content, Http1, Server, Version, ask, gateway};

#[test]
fn fields_of_an_http1_connection_stay_on_it() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "");
    let fields = "Connection: X-Named, keep-alive, close\r\nX-Named: 1\r\nKeep-Alive: timeout=5\r\n\
                  Proxy-Connection: keep-alive\r\nUpgrade: websocket\r\nX-Kept: 1\r\n";
    Http1::connect(weir.address(), None).ask(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
    let request = server.only();
    let wrong = ["connection", "x-named", "keep-alive", "proxy-connection", "upgrade", "te"];
    for name in wrong {
        assert!(!request.has(name), "{name}: {}", request.head);
    }
    assert_eq!(request.field("x-kept"), "1");
}

#[test]
fn te_has_trailers_alone() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "");
    for (index, (value, forwarded)) in
        [("trailers", true), ("gzip, trailers", true), ("trailers;q=0.5", false), ("gzip", false)]
            .into_iter()
            .enumerate()
    {
        Http1::connect(weir.address(), None)
            .ask(format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: TE\r\nTE: {value}\r\n\r\n"));
        let request = server.requests()[index].clone();
        let lines: Vec<_> = request.head.lines().filter(|line| line.starts_with("te: ")).collect();
        match forwarded {
            true => assert_eq!(lines, ["te: trailers"], "{value}"),
            false => assert!(lines.is_empty(), "{value}: {lines:?}"),
        }
    }
    ask(&weir, Version::Http2, "GET", "/", &[("te", "trailers")], Content::None);
    assert_eq!(server.requests()[4].field("te"), "trailers");
}

#[test]
fn the_client_is_described() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "");
    for (index, version) in BOTH.into_iter().enumerate() {
        let fields: [(&str, &str); 3] = [
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "evil.org"),
        ];
        ask(&weir, version, "GET", "/", &fields, Content::None);
        let request = server.requests()[index].clone();
        let about = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"].map(|name| {
            let of_name = format!("{name}: ");
            request.head.lines().filter_map(|line| line.strip_prefix(&of_name)).collect::<Vec<_>>().join("|")
        });
        assert_eq!(about, ["127.0.0.1", "http", "h"], "{version:?}: {}", request.head);
    }
}

#[test]
fn cookies_and_names() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "");
    for (index, version) in BOTH.into_iter().enumerate() {
        // An HTTP/2 client may split cookies into several fields.
        let cookies: &[(&str, &str)] = match version {
            Version::Http1 => &[("Cookie", "a=1; b=2"), ("X-Mixed-Case", "Value")],
            Version::Http2 => &[("cookie", "a=1"), ("cookie", "b=2"), ("x-mixed-case", "Value")],
        };
        ask(&weir, version, "GET", "/", cookies, Content::None);
        let request = server.requests()[index].clone();
        assert_eq!(request.field("cookie"), "a=1; b=2", "{version:?}: {}", request.head);
        assert_eq!(request.field("x-mixed-case"), "Value");
    }
}

#[test]
fn underscores_are_dropped_unless_the_listener_passes_them() {
    let server = Server::ok();
    for (index, (setting, forwarded)) in [("drop", false), ("pass", true)].into_iter().enumerate() {
        let config = super::config(1, &[&server], "", "").replace(
            "bind = '127.0.0.1:0'\n",
            &format!("bind = '127.0.0.1:0'\nunderscores_in_headers = '{setting}'\n"),
        );
        let weir = crate::common::Weir::configured(&config, 1);
        for version in BOTH {
            ask(&weir, version, "GET", "/", &[("x_under", "1"), ("x-dash", "1")], Content::None);
        }
        for request in &server.requests()[2 * index..] {
            assert_eq!(
                (request.has("x_under"), request.has("x-dash")),
                (forwarded, true),
                "{}",
                request.head
            );
        }
    }
}

#[test]
fn fields_of_responses() {
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            let fields: [(&str, &str); 5] = [
                ("content-type", "text/plain"),
                ("set-cookie", "a=1"),
                ("set-cookie", "b=2"),
                ("server", "test"),
                ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ];
            connection.respond(request.stream, &fields, b"ok").flush();
        });
    });
    let weir = gateway(&[&server], "", "response_headers.set = { X-Set = 'yes' }\n");
    for version in BOTH {
        let reply = ask(&weir, version, "GET", "/", &[], Content::None);
        let mut fields: Vec<_> =
            reply.fields.into_iter().filter(|line| !line.starts_with("transfer-encoding")).collect();
        fields.sort_unstable();
        let expected = [
            "content-type: text/plain",
            "date: Thu, 01 Jan 1970 00:00:00 GMT",
            "server: test",
            "set-cookie: a=1",
            "set-cookie: b=2",
            "x-set: yes",
        ];
        assert_eq!(fields, expected, "{version:?}");
    }
}
