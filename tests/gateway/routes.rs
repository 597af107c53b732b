//! Routes: matching, edits, and generated responses.

use super::check::refused;
use super::{ask, get, named};
use crate::common::{Client, Weir};

const LISTENER: &str = "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n";

#[test]
fn hosts_and_paths_choose_the_service() {
    let [a, b, c] = ["a", "b", "c"].map(named);
    let config = format!(
        "{LISTENER}
        [service.a]
        servers = 'http://{}'
        [service.b]
        servers = 'http://{}'
        [service.c]
        servers = 'http://{}'
        [[route]]
        service = 'a'
        [[route]]
        host = ['b.example', '*.b.example']
        service = 'b'
        [[route]]
        host = 'b.example'
        path = ['/c/*', '/users/{{id}}/posts', '/only']
        service = 'c'",
        a.address, b.address, c.address
    );
    let weir = Weir::configured(&config, 1);
    for (host, target, server) in [
        ("x.example", "/", "a"),
        ("b.example", "/", "b"),
        ("B.example:8080", "/x", "b"),
        ("x.y.b.example", "/c/1", "b"),
        ("b.example", "/c", "c"),
        ("b.example", "/c/1?x=/y", "c"),
        ("b.example", "/cx", "b"),
        ("b.example", "/users/7/posts", "c"),
        ("b.example", "/users/7/posts/8", "b"),
        ("b.example", "/only", "c"),
        ("b.example", "/only/", "b"),
        // An unusual spelling does not bypass a route.
        ("b.example", "/%63/1", "c"),
        ("b.example", "/x/../c/1", "c"),
        ("b.example", "//c/1", "c"),
    ] {
        let answer = get(&weir, host, target);
        assert_eq!(answer.fields("x-server"), [server], "{host}{target}");
        assert!(answer.text().contains(&format!("GET {target} HTTP/1.1\r\n")), "{}", answer.text());
    }
}

/// Regression test: a host that was not in its canonical form matched no request.
#[test]
fn hosts_are_the_same_in_each_of_their_forms() {
    for (written, requested, is_same) in [
        ("[0:0:0:0:0:0:0:1]", "[::1]", true),
        ("[::1]", "[0:0:0:0:0:0:0:1]:8080", true),
        ("[2001:DB8::A]", "[2001:db8:0::000a]", true),
        ("[::ffff:127.0.0.1]", "[::FFFF:7f00:1]:80", true),
        ("[::FFFF:7F00:1]", "[::ffff:127.0.0.1]", true),
        ("[::1]", "[::2]", false),
        ("a.example.", "A.Example", true),
        ("A.EXAMPLE", "a.example.:80", true),
        ("*.example.", "x.EXAMPLE.", true),
        ("*.example", "example.", false),
        ("127.0.0.1", "127.0.0.1.:80", true),
    ] {
        let config = format!("{LISTENER}[[route]]\nhost = '{written}'\nrespond.status = 200\n");
        let weir = Weir::configured(&config, 1);
        let status = if is_same { 200 } else { 404 };
        assert_eq!(get(&weir, requested, "/").status, status, "{written} {requested}");
    }
    for host in [
        "[fe80::1%eth0]",
        "[fe80::1%25eth0]",
        "::1",
        "[::1",
        "[::g]",
        "[127.0.0.1]",
        "a..b",
        "a.example..",
        ".",
        "*.",
        "*.[::1]",
        "[::1]:80",
    ] {
        let config = format!("{LISTENER}[[route]]\nhost = '{host}'\nrespond.status = 200\n");
        refused(&config, &format!("route.0.host.0: invalid host `{host}`: expected a name without port"));
    }
    for name in ["127.0.0.1", "[::1]", "[0::1]"] {
        let config = format!(
            "{LISTENER}passthrough = [{{ name = '{name}', service = 'a' }}]\n[service.a]\nservers = 'http://127.0.0.1:1'\n"
        );
        refused(
            &config,
            &format!("passthrough.0.name.0: invalid name `{name}`: no client asks for an address"),
        );
    }
}

#[test]
fn conditions_choose_among_routes_of_a_path() {
    let [a, b] = ["a", "b"].map(named);
    let config = format!(
        "{LISTENER}
        [listener.other]
        bind = '127.0.0.1:0'
        [service.a]
        servers = 'http://{}'
        [service.b]
        servers = 'http://{}'
        [[route]]
        path = '/m'
        method = ['POST', 'PUT']
        service = 'b'
        [[route]]
        path = '/h'
        headers = {{ X-Version = '2', X-Any = '*' }}
        service = 'b'
        [[route]]
        path = '/c'
        client = ['127.0.0.0/8', '2001:db8::/32']
        service = 'b'
        [[route]]
        path = '/n'
        client = '192.0.2.0/24'
        service = 'b'
        [[route]]
        path = '/l'
        listener = 'other'
        service = 'b'
        [[route]]
        service = 'a'",
        a.address, b.address
    );
    let weir = Weir::configured(&config, 2);
    for (request, server) in [
        ("GET /m HTTP/1.1\r\nHost: h\r\n\r\n", "a"),
        ("PUT /m HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "b"),
        ("GET /h HTTP/1.1\r\nHost: h\r\nX-Version: 2\r\n\r\n", "a"),
        ("GET /h HTTP/1.1\r\nHost: h\r\nx-version: 2\r\nX-Any: thing\r\n\r\n", "b"),
        ("GET /h HTTP/1.1\r\nHost: h\r\nX-Version: 3\r\nX-Any: thing\r\n\r\n", "a"),
        ("GET /c HTTP/1.1\r\nHost: h\r\n\r\n", "b"),
        ("GET /n HTTP/1.1\r\nHost: h\r\n\r\n", "a"),
    ] {
        assert_eq!(ask(&weir, request).fields("x-server"), [server], "{request}");
    }
    let servers = [0, 1].map(|listener| {
        // Listeners are sorted by name.
        let mut client = Client::connect(weir.address_of(listener), None);
        client.ask("GET /l HTTP/1.1\r\nHost: h\r\n\r\n").fields("x-server")[0].to_owned()
    });
    assert_eq!(servers, ["b", "a"]);
}

#[test]
fn prefixes_and_fields_are_changed() {
    let a = named("a");
    let config = format!(
        "{LISTENER}
        [service.a]
        servers = 'http://{}'
        [[route]]
        path = '/api/*'
        service = 'a'
        strip_prefix = '/api'
        add_prefix = '/v2'
        request_headers.set = {{ Host = '{{upstream}}', X-Real-IP = '{{client_ip}}', X-Forwarded-Proto = 'https' }}
        request_headers.add = {{ X-Tag = '{{method}} {{path}}' }}
        request_headers.remove = ['Cookie', 'x-secret']
        response_headers.set = {{ Strict-Transport-Security = 'max-age=1', Server = 'weir' }}
        response_headers.remove = 'X-Server'",
        a.address
    );
    let weir = Weir::configured(&config, 1);
    let answer = ask(
        &weir,
        "GET /api/x?q HTTP/1.1\r\nHost: h\r\nCookie: c\r\nX-Secret: s\r\nX-Real-IP: forged\r\nX-Tag: own\r\n\r\n",
    );
    let head = answer.text().to_owned();
    for line in [
        "GET /v2/x?q HTTP/1.1",
        &format!("Host: {}", a.address),
        "X-Real-IP: 127.0.0.1",
        "X-Tag: own",
        "X-Tag: GET /api/x",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: h",
    ] {
        assert_eq!(head.lines().filter(|found| *found == line).count(), 1, "{line} in {head}");
    }
    for absent in ["Cookie", "Secret", "forged", "X-Forwarded-Proto: http\r", "Host: h\r\nCookie"] {
        assert!(!head.contains(absent), "{absent} in {head}");
    }
    assert_eq!(answer.fields("strict-transport-security"), ["max-age=1"]);
    assert_eq!((answer.fields("server"), answer.fields("x-server")), (vec!["weir"], vec![]));
}

#[test]
fn some_requests_are_answered_at_once() {
    let config = format!(
        "{LISTENER}
        [[route]]
        path = '/old/*'
        redirect = {{ to = '{{scheme}}://new.example{{target}}', status = 301 }}
        [[route]]
        path = '/up'
        respond = {{ status = 200, body = 'fine', content_type = 'text/x-fine' }}
        response_headers.set = {{ Cache-Control = 'no-store' }}
        [[route]]
        path = '/empty'
        respond.status = 204
        [[route]]
        path = '/no'
        respond.status = 403"
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address(), None);
    let mut get = |target: &str| client.ask(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
    let answer = get("/old/x?y");
    assert_eq!((answer.status, answer.fields("location")), (301, vec!["http://new.example/old/x?y"]));
    let answer = get("/up");
    assert_eq!((answer.status, answer.text()), (200, "fine"));
    assert_eq!(
        (answer.fields("content-type"), answer.fields("cache-control")),
        (vec!["text/x-fine"], vec!["no-store"])
    );
    let answer = get("/empty");
    assert_eq!((answer.status, answer.fields("content-length"), answer.body.len()), (204, vec![], 0));
    assert_eq!((get("/no").status, get("/no").text()), (403, "403 Forbidden\n"));
    // The connection stays open even without a route.
    assert_eq!((get("/lost").status, get("/up").status), (404, 200));
    weir.wait_for_stderr(&["404 no_route", "GET /lost"]);
    // The gateway does not wait for a body.
    let answer = client.ask("POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n");
    assert_eq!((answer.status, answer.says_close()), (200, true));
}

/// Regression test: a denial by field missed `X.Debug`, which PHP reads as `X-Debug`.
#[test]
fn a_deny_by_a_field_misses_no_spelling() {
    let app = named("app");
    let config = format!(
        "{LISTENER}
        [service.app]
        servers = 'http://{}'
        [[route]]
        path = '/allowed/*'
        headers = {{ X-Verified = 'yes' }}
        service = 'app'
        [[route]]
        path = '/allowed/*'
        respond.status = 403
        [[route]]
        headers = {{ X-Debug = '*' }}
        respond.status = 403
        [[route]]
        headers = {{ X-Stage = 'old' }}
        redirect.to = '/new'
        [[route]]
        service = 'app'",
        app.address
    );
    let weir = Weir::configured(&config, 1);
    for (target, field, status) in [
        ("/", "X-Debug: 1", 403),
        ("/", "x-debug:", 403),
        ("/", "X.Debug: 1", 403),
        ("/", "X_Debug: 1", 403),
        ("/", "X!DEBUG: 1", 403),
        ("/", "X-Debugs: 1", 200),
        ("/", "XDebug: 1", 200),
        ("/", "X.Stage: old", 308),
        ("/", "X.Stage: new", 200),
        // A condition that opens a route needs the exact name: a proxy may set that one and leave other spellings to
        // clients.
        ("/allowed/x", "X-Verified: yes", 200),
        ("/allowed/x", "X.Verified: yes", 403),
        ("/allowed/x", "X_Verified: yes", 403),
    ] {
        let answer = ask(&weir, &format!("GET {target} HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n"));
        assert_eq!(answer.status, status, "{target} {field}");
    }
}

/// Regression test: `//evil.example/..` became a `Location` that browsers resolve to another host, and a request
/// without a host got an invalid URI.
#[test]
fn redirects_lead_where_the_operator_says() {
    let config = "workers = 1
        [listener.web]
        bind = '127.0.0.1:0'
        accept = ['empty-host']
        [[route]]
        path = '/slash/*'
        redirect.to = '{path}/'
        [[route]]
        path = '/query/*'
        redirect.to = '/{target}'
        [[route]]
        path = '/here'
        redirect.to = '/there'
        [[route]]
        redirect.to = 'https://{host}{target}'";
    let weir = Weir::configured(config, 1);
    for (request, expected) in [
        ("GET /slash/x HTTP/1.1\r\nHost: h", Ok("/slash/x/")),
        ("GET //evil.example/../slash/x HTTP/1.1\r\nHost: h", Ok("/evil.example/../slash/x/")),
        ("GET /\\evil.example/../slash/x HTTP/1.1\r\nHost: h", Ok("/evil.example/../slash/x/")),
        ("GET http://h//evil.example/../slash/x HTTP/1.1\r\nHost: h", Ok("/evil.example/../slash/x/")),
        ("GET /query/x?y HTTP/1.1\r\nHost: h", Ok("/query/x?y")),
        ("GET //evil.example/../query/x?y HTTP/1.1\r\nHost: h", Ok("/evil.example/../query/x?y")),
        ("GET /here HTTP/1.0", Ok("/there")),
        ("GET /x HTTP/1.0", Err("missing_host")),
        ("GET /x HTTP/1.1\r\nHost:", Err("missing_host")),
        ("OPTIONS * HTTP/1.0", Err("missing_host")),
        ("GET /x HTTP/1.0\r\nHost: h:81", Ok("https://h/x")),
        ("OPTIONS * HTTP/1.1\r\nHost: h:81", Ok("https://h")),
        ("OPTIONS http://h HTTP/1.1\r\nHost: h", Ok("https://h")),
        ("GET http://h HTTP/1.1\r\nHost: h", Ok("https://h/")),
        ("GET http://h?x HTTP/1.1\r\nHost: other", Ok("https://h/?x")),
        ("GET http://h:81/x HTTP/1.0", Ok("https://h/x")),
        ("GET /x HTTP/1.1\r\nHost: [::1]:81", Ok("https://[::1]/x")),
    ] {
        let answer = ask(&weir, &format!("{request}\r\n\r\n"));
        match expected {
            Ok(location) => {
                assert_eq!((answer.status, answer.fields("location")), (308, vec![location]), "{request}");
            }
            Err(reason) => {
                assert_eq!((answer.status, answer.fields("location")), (400, vec![]), "{request}");
                assert!(answer.text().contains(reason), "{request}: {}", answer.text());
            }
        }
    }
    super::check::refused(
        "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nredirect.to = '//{host}{target}'\n",
        "route.0.redirect.to: invalid value `//{host}{target}`: expected `https://` and a host, or a path",
    );
}

/// The gateway generates responses no faster than the client reads them.
#[test]
fn a_client_that_does_not_read_stops_being_answered() {
    let body = "x".repeat(10_000);
    let config = format!("{LISTENER}[[route]]\nrespond = {{ status = 200, body = '{body}' }}");
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address(), None);
    let requests = "GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(5000);
    let before = weir.memory_kib("VmRSS");
    client.send(&requests);
    for _ in 0..5000 {
        assert_eq!(client.answer(weir_http::Method::Get).body.len(), body.len());
    }
    let grown = weir.memory_kib("VmHWM").saturating_sub(before);
    // All responses together are 50 MB.
    assert!(grown < 20_000, "{grown} KiB");
}

/// The gateway trusts only configured proxies to name the client.
#[test]
fn trusted_proxies_name_the_client() {
    let a = named("a");
    let config = |trusted: &str| {
        format!(
            "{LISTENER}trusted_proxies = [{trusted}]
            [service.a]
            servers = 'http://{}'
            [[route]]
            service = 'a'
            request_headers.set.X-Real-IP = '{{client_ip}}'
            [[route]]
            client = '203.0.113.0/24'
            path = '/inside'
            respond.status = 204",
            a.address
        )
    };
    let request = |target: &str| {
        format!(
            "GET {target} HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.1.1.1, 203.0.113.7\r\nX-Forwarded-Proto: https\r\n\
             X-Forwarded-Host: public.example\r\n\r\n"
        )
    };
    let weir = Weir::configured(&config("'127.0.0.0/8'"), 1);
    let head = ask(&weir, &request("/")).text().to_owned();
    for line in [
        "X-Forwarded-For: 1.1.1.1, 203.0.113.7, 127.0.0.1",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: public.example",
        "X-Real-IP: 203.0.113.7",
    ] {
        assert_eq!(head.lines().filter(|found| *found == line).count(), 1, "{line} in {head}");
    }
    assert_eq!(ask(&weir, &request("/inside")).status, 204);
    let plain = get(&weir, "h", "/").text().to_owned();
    for line in ["X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: h"] {
        assert_eq!(plain.lines().filter(|found| *found == line).count(), 1, "{line} in {plain}");
    }
    let weir = Weir::configured(&config("'192.0.2.0/24'"), 1);
    let head = ask(&weir, &request("/")).text().to_owned();
    assert!(
        head.contains("X-Forwarded-For: 127.0.0.1\r\n") && head.contains("X-Real-IP: 127.0.0.1\r\n"),
        "{head}"
    );
    assert!(!head.contains("1.1.1.1") && !head.contains("public.example"), "{head}");
    assert_eq!(ask(&weir, &request("/inside")).status, 200);
}

/// Every route of a large configuration matches, by host and then by path, regardless of its place in the file.
#[test]
fn ten_thousand_routes_are_found() {
    let [a, b] = ["a", "b"].map(named);
    let mut config = format!(
        "{LISTENER}
        [service.a]
        servers = 'http://{}'
        [service.b]
        servers = 'http://{}'\n",
        a.address, b.address
    );
    for host in 0..2000 {
        for path in 0..5 {
            // A neighbouring host has the same paths with the other service.
            let service = ["a", "b"][(host + path) % 2];
            config.push_str(&format!(
                "[[route]]\nhost = 'h{host}.example'\npath = '/p{path}/*'\nservice = '{service}'\n\
                response_headers.set = {{ X-Route = '{host}-{path}' }}\n"
            ));
        }
    }
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address(), None);
    for host in (0..2000).step_by(37).chain([1999]) {
        for path in 0..5 {
            let answer = client.ask(format!("GET /p{path}/x HTTP/1.1\r\nHost: h{host}.example\r\n\r\n"));
            assert_eq!(answer.fields("x-route"), [format!("{host}-{path}")]);
            assert_eq!(answer.fields("x-server"), [["a", "b"][(host + path) % 2]]);
        }
    }
    assert_eq!(get(&weir, "h2000.example", "/p0/x").status, 404);
    assert_eq!(get(&weir, "h0.example", "/p5/x").status, 404);
}
