//! A listener's `redirect = "https"`, which precedes all routes.

use super::check::refused;
use super::named;
use crate::common::{Certificates, Client, Weir};
use std::fs;

const WEB: &str = "workers = 1\n[listener.cleartext]\nbind = '127.0.0.1:0'\n";

/// Regression test: a redirect by a route was bypassed by every route with a host.
#[test]
fn everything_in_cleartext_is_redirected_before_any_route() {
    let certificates = Certificates::new();
    let [app, acme] = ["app", "acme"].map(named);
    let weir = Weir::configured(
        &format!(
            "{WEB}redirect = 'https'
            [listener.secure]
            bind = '127.0.0.1:0'
            tls = {{}}
            [[certificate]]
            chain = '{}'
            key = '{}'
            [service.app]
            servers = 'http://{}'
            [service.acme]
            servers = 'http://{}'
            [[route]]
            host = 'a.test'
            service = 'app'
            [[route]]
            host = '*.b.test'
            path = ['/deep/*', '/deep/{{id}}/x']
            service = 'app'
            [[route]]
            path = '/robots.txt'
            respond = {{ status = 200, body = 'robots' }}
            [[route]]
            client = '127.0.0.0/8'
            method = 'POST'
            service = 'app'
            [[route]]
            path = '/.well-known/acme-challenge/*'
            service = 'acme'
            [[route]]
            path = ['/.well-known/acme-challenge/{{token}}/more', '/status']
            service = 'acme'",
            certificates.cert.display(),
            certificates.key.display(),
            app.address,
            acme.address
        ),
        2,
    );
    let in_cleartext = |request: &str| {
        let answer = Client::connect(weir.address_of(0), None).ask(request);
        (answer.status, answer.fields("location").first().map(|to| (*to).to_owned()))
    };
    for (request, to) in [
        ("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "https://a.test/"),
        ("GET /x?y=/z HTTP/1.1\r\nHost: A.test:80\r\n\r\n", "https://A.test/x?y=/z"),
        ("GET /deep/1/x HTTP/1.1\r\nHost: x.b.test\r\n\r\n", "https://x.b.test/deep/1/x"),
        ("GET /robots.txt HTTP/1.1\r\nHost: c.test\r\n\r\n", "https://c.test/robots.txt"),
        ("POST / HTTP/1.1\r\nHost: c.test\r\nContent-Length: 1\r\n\r\nx", "https://c.test/"),
        ("HEAD /lost HTTP/1.1\r\nHost: no.route\r\n\r\n", "https://no.route/lost"),
        ("GET /status HTTP/1.1\r\nHost: a.test\r\n\r\n", "https://a.test/status"),
        ("TRACE / HTTP/1.1\r\nHost: a.test\r\n\r\n", "https://a.test/"),
        ("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", "https://a.test"),
        ("GET http://b.test:80/q HTTP/1.1\r\nHost: b.test:80\r\n\r\n", "https://b.test/q"),
        ("GET / HTTP/1.0\r\nHost: [::1]:80\r\n\r\n", "https://[::1]/"),
        ("GET //evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "https://a.test//evil.test/"),
        // Paths that only begin like a challenge, or resolve to another path.
        (
            "GET /.well-known/acme-challenge/../../x HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "https://a.test/.well-known/acme-challenge/../../x",
        ),
        (
            "GET /.well-known/acme-challengex/t HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "https://a.test/.well-known/acme-challengex/t",
        ),
        ("GET /.well-known/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "https://a.test/.well-known/x"),
    ] {
        assert_eq!(in_cleartext(request), (308, Some(to.to_owned())), "{request}");
    }
    for request in
        ["GET /x HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"]
    {
        assert_eq!(in_cleartext(request), (400, None), "{request}");
    }
    assert_eq!(app.requests().len() + acme.requests().len(), 0);
    // A route that opts in serves challenges regardless of the host's other routes.
    for host in ["a.test", "x.b.test", "no.route"] {
        let request = format!("GET /.well-known/acme-challenge/t HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = Client::connect(weir.address_of(0), None).ask(&request);
        assert_eq!((answer.status, answer.fields("x-server")), (200, vec!["acme"]), "{host}");
    }
    for (host, target, server) in [("a.test", "/", "app"), ("c.test", "/status", "acme")] {
        let mut client = Client::connect(weir.address_of(1), Some(certificates.session()));
        let answer = client.ask(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!((answer.status, answer.fields("x-server")), (200, vec![server]), "{host}{target}");
    }
}

/// A reload redirects clients on open connections too.
#[test]
fn a_reload_takes_the_redirect_for_open_connections() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let write = |redirect: &str| {
        let rest = "[[route]]\nhost = 'a.test'\nrespond.status = 200\n[admin]\nbind = '127.0.0.1:0'\n";
        fs::write(&file, format!("{WEB}{redirect}\n{rest}")).unwrap();
    };
    write("");
    let weir = Weir::of_file(&file, 1);
    let mut client = Client::connect(weir.address(), None);
    for (redirect, status) in
        [("redirect = 'https'", 308), ("redirect = { to = 'https', status = 301 }", 301), ("", 200)]
    {
        write(redirect);
        assert_eq!(weir.ask_admin("POST /reload").status, 200);
        assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").status, status, "{redirect}");
    }
}

#[test]
fn a_redirect_that_cannot_be_obeyed_is_refused() {
    let certificates = Certificates::new();
    let certificate = format!(
        "[[certificate]]\nchain = '{}'\nkey = '{}'\n",
        certificates.cert.display(),
        certificates.key.display()
    );
    let passed =
        "passthrough = [{ name = '*', service = 'a' }]\n[service.a]\nservers = 'http://127.0.0.1:1'\n";
    let route = "[[route]]\nrespond.status = 200\n";
    for (listener, rest, why) in [
        (
            "redirect = 'https'\ntls = {}",
            &*certificate,
            "listener.cleartext.redirect: this listener has TLS already",
        ),
        ("redirect = 'https'", passed, "listener.cleartext.redirect: this listener has TLS already"),
        ("redirect = 'http'", "", "listener.cleartext.redirect: unknown variant `http`, expected `https`"),
        ("redirect = true", "", "listener.cleartext.redirect: expected `https` or a table with `to`"),
        ("redirect = { port = 8443 }", "", "listener.cleartext.redirect: missing field `to`"),
        (
            "redirect = { to = 'https', status = 200 }",
            "",
            "redirect.status: invalid value `200`: expected 301, 302",
        ),
        ("redirect = { to = 'https', port = 0 }", "", "listener.cleartext.redirect"),
        (
            "redirect = { to = 'https', code = 301 }",
            "",
            "unknown field `code`, expected one of `to`, `port`, `status`",
        ),
        (
            "redirect = 'https'",
            "[[route]]\nlistener = 'cleartext'\nhost = 'a.test'\nrespond.status = 200",
            "route.0.listener.0: `cleartext` redirects all requests before any route",
        ),
        (
            "redirect = 'https'",
            "[[route]]\nlistener = 'cleartext'\npath = '/.well-known/*'\nrespond.status = 200",
            "route.0.listener.0: `cleartext` redirects",
        ),
        (
            "redirect = 'https'",
            "[[route]]\nlistener = 'cleartext'\npath = '/.well-known/{x}/*'\nrespond.status = 200",
            "route.0.listener.0: `cleartext` redirects",
        ),
        (
            "redirect = 'https'",
            "[[route]]\nlistener = 'cleartext'\npath = ['/.well-known/acme-challenge/*', '/x']\nrespond.status = 200",
            "route.0.listener.0: `cleartext` redirects",
        ),
    ] {
        refused(&format!("{WEB}{listener}\n{rest}\n{route}"), why);
    }
}

/// The redirect uses the TLS listener's port, or the configured port if clients use another.
#[test]
fn the_port_is_that_of_tls() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let tls = |binds: &str| {
        format!(
            "[listener.tls]\nbind = [{binds}]\npassthrough = [{{ name = '*', service = 'a' }}]\n\
             [service.a]\nservers = 'http://127.0.0.1:1'\n[[route]]\nservice = 'a'\n"
        )
    };
    for (redirect, binds, expected) in [
        ("'https'", "'127.0.0.1:443'", Some("redirects 308 to https://{host}{target}")),
        ("'https'", "'127.0.0.1:8443'", Some("redirects 308 to https://{host}:8443{target}")),
        ("'https'", "'127.0.0.1:8443', '[::1]:8443'", Some("redirects 308 to https://{host}:8443{target}")),
        ("'https'", "'127.0.0.1:8443', '127.0.0.1:443'", Some("redirects 308 to https://{host}{target}")),
        ("'https'", "'127.0.0.1:0'", Some("redirects 308 to https://{host}{target}")),
        ("'https'", "'unix:/run/a.sock'", Some("redirects 308 to https://{host}{target}")),
        ("'https'", "'127.0.0.1:8443', '127.0.0.1:9443'", None),
        ("{ to = 'https', port = 443 }", "'127.0.0.1:8443'", Some("redirects 308 to https://{host}{target}")),
        (
            "{ to = 'https', port = 9443, status = 302 }",
            "'127.0.0.1:8443', '127.0.0.1:9443'",
            Some("redirects 302 to https://{host}:9443{target}"),
        ),
    ] {
        let config = format!("{WEB}redirect = {redirect}\n{}", tls(binds));
        let Some(expected) = expected else {
            refused(&config, "expected one to redirect clients to; write { to = \"https\", port = 8443 }");
            continue;
        };
        fs::write(&file, config).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap(), "--explain"]);
        assert!(ended.stdout.contains(expected), "{redirect} {binds}: {}{}", ended.stdout, ended.stderr);
    }
}
