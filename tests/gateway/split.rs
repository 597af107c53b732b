//! Dividing the requests of one route among several services.

use super::tls::certificate;
use super::{ask, get, named};
use crate::common::{Answer, Certificates, Client, Upstream, Weir};
use std::collections::BTreeMap;
use std::fs;

/// A gateway with the services `v1` and `v2`, and a route with these lines.
fn dividing(v1: &Upstream, v2: &Upstream, route: &str) -> Weir {
    let [v1, v2] = [v1, v2].map(|server| server.address);
    Weir::configured(
        &format!(
            "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.v1]\nservers = 'http://{v1}'\n\
             [service.v2]\nservers = 'http://{v2}'\n[[route]]\n{route}"
        ),
        1,
    )
}

/// The number of responses by server and status.
fn shares(answers: impl IntoIterator<Item = Answer>) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for answer in answers {
        let from =
            answer.fields("x-server").first().map_or(answer.status.to_string(), |name| (*name).to_owned());
        *shares.entry(from).or_default() += 1;
    }
    shares
}

#[test]
fn services_share_requests_by_weight() {
    let [v1, v2] = ["v1", "v2"].map(named);
    let weir = dividing(
        &v1,
        &v2,
        "service = [{ name = 'v1', weight = 90 }, { name = 'v2', weight = 8 }, { status = 503, weight = 2 }]",
    );
    let found = shares((0..200).map(|_| get(&weir, "h", "/")));
    for (share, expected) in [("v1", 180_usize), ("v2", 16), ("503", 4)] {
        assert!(found[share].abs_diff(expected) <= 3, "{found:?}");
    }
}

#[test]
fn a_weight_of_0_is_no_requests() {
    let [v1, v2] = ["v1", "v2"].map(named);
    let weir = dividing(&v1, &v2, "service = [{ name = 'v1', weight = 0 }, { name = 'v2' }]\nsticky = 'V'");
    let cookie = "GET / HTTP/1.1\r\nHost: h\r\nCookie: V=v1\r\n\r\n";
    assert_eq!(shares((0..10).map(|_| ask(&weir, cookie))), BTreeMap::from([("v2".to_owned(), 10)]));
    assert_eq!(v1.connections(), 0);
}

#[test]
fn a_share_edits_fields_after_its_route() {
    let [v1, v2] = ["v1", "v2"].map(named);
    let weir = dividing(
        &v1,
        &v2,
        "request_headers.set = { X-Canary = 'no', X-Both = 'route' }
        response_headers.set = { X-Version = 'old', X-Route = 'yes' }
        [[route.service]]
        name = 'v1'
        [[route.service]]
        name = 'v2'
        request_headers.set = { X-Canary = 'yes' }
        response_headers = { set = { X-Version = 'new' }, remove = 'X-Server' }",
    );
    let answers: Vec<_> = (0..2).map(|_| get(&weir, "h", "/")).collect();
    let of = |name: &str| answers.iter().find(|answer| answer.text().starts_with(name)).unwrap();
    for (name, version, canary, servers) in [("v1", "old", "no", 1), ("v2", "new", "yes", 0)] {
        let answer = of(name);
        assert_eq!(answer.fields("x-version"), [version]);
        assert_eq!(answer.fields("x-route"), ["yes"]);
        assert_eq!(answer.fields("x-server").len(), servers);
        let text = answer.text();
        assert!(
            text.contains(&format!("X-Canary: {canary}\r\n")) && text.contains("X-Both: route\r\n"),
            "{text}"
        );
        assert_eq!(text.matches("X-Canary").count(), 1);
    }
}

#[test]
fn a_cookie_keeps_a_client_on_its_service() {
    let [v1, v2] = ["v1", "v2"].map(named);
    let weir = dividing(&v1, &v2, "service = [{ name = 'v1' }, { name = 'v2' }]\nsticky = 'version'");
    for _ in 0..4 {
        let first = get(&weir, "h", "/");
        let server = first.fields("x-server")[0];
        let cookie = format!("version={server}; Path=/; HttpOnly; SameSite=Lax");
        assert_eq!(first.fields("set-cookie"), [&*cookie]);
        for _ in 0..3 {
            let again =
                ask(&weir, &format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1; version={server}\r\n\r\n"));
            assert_eq!(again.fields("x-server"), [server]);
            assert!(again.fields("set-cookie").is_empty());
        }
    }
    let unknown = ask(&weir, "GET / HTTP/1.1\r\nHost: h\r\nCookie: version=v3\r\n\r\n");
    assert_eq!(unknown.fields("set-cookie").len(), 1);
}

/// Both cookies of the gateway, of the share and of its server: browsers send them back by TLS alone.
#[test]
fn cookies_are_secure_with_tls() {
    let certificates = Certificates::new();
    // With one server, a service sets no cookie.
    let upstreams = ["v1", "v1", "v2", "v2"].map(named);
    let urls =
        |at: usize| format!("['http://{}', 'http://{}']", upstreams[at].address, upstreams[at + 1].address);
    let config = format!(
        "workers = 1
        [listener.cleartext]
        bind = '127.0.0.1:0'
        [listener.tls]
        bind = '127.0.0.1:0'
        tls = {{}}
        {}
        [service.v1]
        servers = {}
        sticky = 'server'
        [service.v2]
        servers = {}
        sticky = 'server'
        [[route]]
        service = [{{ name = 'v1' }}, {{ name = 'v2' }}]
        sticky = 'version'",
        certificate(&certificates),
        urls(0),
        urls(2)
    );
    let weir = Weir::configured(&config, 2);
    for (listener, secure) in [(0, ""), (1, "; Secure")] {
        let ask = |cookie: &str| {
            let session = (listener == 1).then(|| certificates.session());
            let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{cookie}\r\n");
            Client::connect(weir.address_of(listener), session).ask(request)
        };
        for _ in 0..4 {
            let first = ask("");
            let cookies = first.fields("set-cookie");
            let server = first.fields("x-server")[0];
            let attributes = format!("Path=/; HttpOnly; SameSite=Lax{secure}");
            assert_eq!(cookies[0], format!("version={server}; {attributes}"));
            let (of_server, found) = cookies[1].split_once("; ").unwrap();
            assert_eq!((cookies.len(), found), (2, &*attributes));
            let again = ask(&format!("Cookie: version={server}; {of_server}\r\n"));
            assert_eq!((again.fields("x-server"), again.fields("set-cookie").len()), (vec![server], 0));
        }
    }
}

/// Each request counts once, whichever service it goes to, and OPTIONS with `Max-Forwards: 0` is about the route.
#[test]
fn a_route_is_one_route_whatever_its_services() {
    let [v1, v2] = ["v1", "v2"].map(named);
    let weir = dividing(
        &v1,
        &v2,
        "service = [{ name = 'v1' }, { name = 'v2' }]\nrate = { requests = 3, per = '1h' }\nmax_body = 3\nstrip_prefix = '/a'",
    );
    let options = ask(&weir, "OPTIONS / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n");
    assert_eq!((options.status, options.fields("allow").len()), (204, 1));
    let large = ask(&weir, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody");
    assert_eq!(large.status, 413);
    let stripped = get(&weir, "h", "/a/b");
    assert!(stripped.text().contains("GET /b HTTP/1.1\r\n"), "{}", stripped.text());
    assert_eq!(get(&weir, "h", "/").status, 429);
}

#[test]
fn shares_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    for (route, fault) in [
        ("service = []", "route.0.service: no share has a weight above 0"),
        ("service = [{ name = 'v1', weight = 0 }]", "route.0.service: no share has a weight above 0"),
        (
            "service = [{ name = 'v3' }]",
            "route.0.service.0.name: unknown service `v3`: expected one of `v1`, `v2`",
        ),
        ("service = [{ name = 'v1' }, { name = 'v1' }]", "route.0.service.1.name: duplicate service `v1`"),
        ("service = [{ weight = 1 }]", "route.0.service.0: expected one of `name`, `status`"),
        ("service = [{ name = 'v1', status = 503 }]", "route.0.service.0: more than one action"),
        (
            "service = [{ status = 200 }]",
            "route.0.service.0.status: invalid value `200`: expected 400 to 599",
        ),
        (
            "service = [{ name = 'v1', weight = 1000001 }]",
            "route.0.service.0.weight: invalid value `1000001`: expected 0 to 1000000",
        ),
        (
            "service = [{ status = 500, request_headers.set = { A = 'b' } }]",
            "route.0.service.0.request_headers: no effect beside `status`",
        ),
        ("service = [{ nam = 'v1' }]", "route.0.service: unknown field `nam`; did you mean `name`?"),
        ("service = ['v1']", "route.0.service: expected the name of a service, or a list of tables"),
        ("service = 5", "route.0.service: expected the name of a service, or a list of tables"),
        ("service = 'v1'\nsticky = 'a'", "route.0.sticky: no effect without several services"),
        (
            "service = [{ name = 'v1' }]\nsticky = 'a b'",
            "route.0.sticky: invalid value `a b`: expected the name",
        ),
        (
            "service = [{ name = 'v1', request_headers.set = { X-A = 'b' } }]\nrequest_trailers = 'X-A'",
            "route.0.service.0.request_trailers.0: `X-A` is set, added or removed",
        ),
    ] {
        let config = format!(
            "[listener.web]\nbind = '127.0.0.1:0'\n[service.v1]\nservers = 'http://127.0.0.1:1'\n\
             [service.v2]\nservers = 'http://127.0.0.1:1'\n[[route]]\n{route}"
        );
        fs::write(&file, config).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        assert!(ended.code == Some(2) && ended.stderr.contains(fault), "{route}: {}", ended.stderr);
        assert_eq!(ended.stderr.matches("route.0").count(), 1, "{route}: {}", ended.stderr);
    }
}

#[test]
fn shares_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let config = "[listener.web]\nbind = '127.0.0.1:0'\n[service.v1]\nservers = 'http://127.0.0.1:1'\n[[route]]\n\
        service = [{ name = 'v1', weight = 9 }, { status = 503 }]\nsticky = 'V'\n";
    fs::write(&file, config).unwrap();
    let ended = Weir::run(&["check", "--explain", "--config", file.to_str().unwrap()]);
    assert!(ended.stdout.contains("-> services v1 9, status 503 1, by cookie V"), "{}", ended.stdout);
}
