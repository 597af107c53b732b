//! Requests on connections of a listener that a reload has removed, or that now admits other clients.

use super::reload::Case;
use super::tls::certificate;
use super::{held_back, named};
use crate::common::sessions::{connect, connector};
use crate::common::{Certificates, Client, Switch};
use std::net::SocketAddr;
use weir_http::Method;

const SECRET: &str = "GET /secret HTTP/1.1\r\nHost: h\r\n\r\n";
const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const WEB: &str = "[listener.web]\nbind = '127.0.0.1:0'\n";
const EDGE: &str = "[listener.edge]\nbind = '127.0.0.2:0'\n";
const DENIED_AT_EDGE: &str =
    "[[route]]\nlistener = 'edge'\npath = '/secret'\nrespond = { status = 403, body = 'denied' }\n";

/// A gateway of one worker with these listeners and routes; all other requests go to a service of this name. Idle
/// connections stay open during the test.
fn config(listeners: &str, routes: &str, service: &str, server: SocketAddr) -> String {
    format!(
        "workers = 1\ntimeouts.drain_idle = '60s'\n{listeners}{routes}[service.{service}]\nservers = 'http://{server}'\n[[route]]\nservice = '{service}'\n"
    )
}

/// A client with a connection to the listener at this index that has already got a response.
fn warm(case: &Case, listener: usize) -> Client {
    let mut client = Client::connect(case.weir.address_of(listener), None);
    assert_eq!(client.ask(GET).status, 200);
    client
}

/// Regression test: a request that arrived after the reload used the new routes. These cannot name a removed listener,
/// so the service received requests that the listener had denied.
#[test]
fn a_removed_listener_denies_what_it_denied() {
    let app = named("app");
    let case = Case::listening(&config(&format!("{EDGE}{WEB}"), DENIED_AT_EDGE, "app", app.address), 2);
    let (mut late, mut other) = (warm(&case, 0), warm(&case, 1));
    let mut allowed = warm(&case, 0);
    case.take(&config(WEB, "", "app", app.address));
    let last = late.ask(SECRET);
    assert_eq!((last.status, last.text(), last.says_close()), (403, "denied", true));
    late.expect_end();
    let last = allowed.ask(GET);
    assert_eq!((last.status, last.says_close()), (200, true));
    let other = other.ask(SECRET);
    assert_eq!((other.status, other.says_close()), (200, false), "the other listener goes on");
}

/// A second reload does not affect these connections.
#[test]
fn late_requests_keep_their_routes_over_further_reloads() {
    let app = named("app");
    let case = Case::listening(&config(&format!("{EDGE}{WEB}"), DENIED_AT_EDGE, "app", app.address), 2);
    let mut late = warm(&case, 0);
    for body in ["first", "second"] {
        let routes = format!("[[route]]\npath = '/secret'\nrespond = {{ status = 200, body = '{body}' }}\n");
        case.take(&config(WEB, &routes, "app", app.address));
    }
    assert_eq!(late.ask(SECRET).text(), "denied");
}

/// Regression test: the same with an unchanged address. Connections kept their listener's old name.
#[test]
fn a_renamed_listener_denies_old_clients_by_its_old_name_and_new_ones_by_its_new_name() {
    let app = named("app");
    let listening = |name: &str, denied: &str| {
        let listener = WEB.replace("web", name);
        let routes = format!(
            "[[route]]\nlistener = '{name}'\npath = '{denied}'\nrespond = {{ status = 403, body = '{name}' }}\n"
        );
        config(&listener, &routes, "app", app.address)
    };
    let case = Case::new(&listening("before", "/secret"));
    let mut late = [warm(&case, 0), warm(&case, 0)];
    case.take(&listening("after", "/other"));
    let last = late[0].ask(SECRET);
    assert_eq!((last.text(), last.says_close()), ("before", true));
    let last = late[1].ask("GET /other HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((last.status, last.says_close()), (200, true));
    let mut new = warm(&case, 0);
    assert_eq!(new.ask(SECRET).status, 200);
    let other = new.ask("GET /other HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((other.text(), other.says_close()), ("after", false));
}

/// The drain timeout closes the listener's old clients, but no new one.
#[test]
fn the_end_of_a_renamed_listeners_drain_spares_new_clients() {
    let switch = Switch::default();
    let held = held_back(&switch, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let named = |name: &str| {
        let limits = "timeouts.upgrade_drain = '300ms'\n";
        limits.to_owned() + &config(&WEB.replace("web", name), "", "app", held.address)
    };
    let case = Case::new(&named("before"));
    let mut old = Client::connect(case.weir.address(), None);
    old.send(GET);
    held.wait_for_requests(1);
    case.take(&named("after"));
    let mut new = Client::connect(case.weir.address(), None);
    new.send(GET);
    held.wait_for_requests(2);
    let last = old.answer(Method::Get);
    assert!(last.status == 503 && last.text().contains("drain_timeout"), "{}", last.text());
    switch.throw();
    let other = new.answer(Method::Get);
    assert_eq!((other.text(), other.says_close()), ("ok", false));
}

/// The old routes of a client are useless if their service was removed. The client may repeat the request on a new
/// connection.
#[test]
fn late_requests_for_a_service_that_is_gone_are_misdirected() {
    let app = named("app");
    let case = Case::listening(&config(&format!("{EDGE}{WEB}"), "", "before", app.address), 2);
    let mut late = warm(&case, 0);
    case.take(&config(WEB, "", "after", app.address));
    let last = late.ask(GET);
    assert_eq!((last.status, last.says_close()), (421, true));
    assert!(last.text().contains("listener_gone"), "{}", last.text());
    case.weir.wait_for_stderr(&["421 listener_gone"]);
    late.expect_end();
}

/// Each change of the admitted clients, or of their authentication, drains the clients from before.
#[test]
fn clients_drain_when_their_listener_admits_others() {
    let app = named("app");
    for (before, after) in [
        ("", "allow = ['127.0.0.0/8']"),
        ("deny = ['192.0.2.1']", ""),
        ("", "trusted_proxies = ['127.0.0.1']"),
        ("trusted_proxies = ['192.0.2.1']", "trusted_proxies = ['192.0.2.1']\nproxy_field = 'forwarded'"),
        ("", "proxy_protocol = ['192.0.2.0/24']"),
    ] {
        let listener = |lines: &str| config(&format!("{WEB}{lines}\n"), "", "app", app.address);
        let case = Case::new(&listener(before));
        let mut late = warm(&case, 0);
        case.take(&listener(after));
        let last = late.ask(GET);
        assert_eq!((last.status, last.says_close()), (200, true), "{before} -> {after}");
    }
}

/// Other changes do not affect the listener's connections.
#[test]
fn clients_stay_when_their_listener_changes_otherwise() {
    let app = named("app");
    for (before, after) in [
        ("", "limits.head = '8KiB'"),
        ("underscores_in_headers = 'pass'", ""),
        ("", "half_close = 'serve'"),
        ("", "http2 = false"),
    ] {
        let listener = |lines: &str| config(&format!("{WEB}{lines}\n"), "", "app", app.address);
        let case = Case::new(&listener(before));
        let mut client = warm(&case, 0);
        case.take(&listener(after));
        assert!(!client.ask(GET).says_close(), "{before} -> {after}");
    }
}

/// A route that relies on a listener's client certificates must not serve an older connection without one.
#[test]
fn clients_without_a_certificate_drain_when_their_listener_asks_for_one() {
    let [own, clients] = [&["127.0.0.1"][..], &["client.example"]].map(Certificates::for_names);
    let app = named("app");
    let listener = |tls: &str, route: &str| {
        let listener = format!("{WEB}tls = {{ {tls} }}\n{}", certificate(&own));
        config(&listener, route, "app", app.address)
    };
    let denied = DENIED_AT_EDGE.replace("edge", "web");
    let ca = format!("client_ca = '{}'", clients.ca.display());
    let case = Case::new(&listener("", &denied));
    let connector = connector(&own.ca, &[]);
    let mut late = connect(case.weir.address(), &connector).unwrap();
    assert_eq!(late.ask(GET).status, 200);
    // Renewed certificates and other TLS settings do not close connections.
    case.take(&listener("tickets = 1", &denied));
    assert!(!late.ask(GET).says_close());
    case.take(&listener(&ca, ""));
    let last = late.ask(SECRET);
    assert_eq!((last.text(), last.says_close()), ("denied", true));
    late.expect_end();
    // In TLS 1.3, the client learns of the rejection only after it has completed its part of the handshake.
    drop(connect(case.weir.address(), &connector));
    case.weir.wait_for_stderr(&["client_tls", "certificate"]);
}
