//! Access control and rate limits for clients.

use super::preface::announced;
use super::{metric, named};
use crate::common::{Client, DEADLINE, Upstream, Weir, poll_until};
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A gateway to an upstream, with general, listener and route settings.
fn gateway(upstream: &Upstream, general: &str, listener: &str, route: &str) -> Weir {
    let config = format!(
        "{general}
        [admin]
        bind = '127.0.0.1:0'
        [service.app]
        servers = 'http://{}'
        [listener.web]
        bind = '127.0.0.1:0'
        {listener}
        [[route]]
        service = 'app'
        {route}",
        upstream.address
    );
    Weir::configured(&config, 1)
}

/// A connection of this client according to its PROXY header.
fn of(client: &str, weir: &Weir) -> Client {
    let header = format!("PROXY TCP4 {client} 192.0.2.1 1000 80\r\n");
    announced(weir.address(), header.as_bytes(), None)
}

/// Whether a new connection gets a response. Sending may fail after a close.
fn is_served(weir: &Weir) -> bool {
    let mut client = Client::connect(weir.address(), None);
    client.stream.send(GET.as_bytes()).is_ok() && client.next_answer(Method::Get).is_ok()
}

#[test]
fn clients_are_let_in_by_their_network() {
    let upstream = named("a");
    for (lists, lets_in) in [
        ("allow = '127.0.0.0/8'", true),
        ("allow = ['192.0.2.0/24', '127.0.0.1']", true),
        ("allow = '192.0.2.0/24'", false),
        ("deny = '192.0.2.0/24'", true),
        ("deny = '127.0.0.0/8'", false),
        ("allow = '127.0.0.0/8'\ndeny = '127.0.0.1'", false),
    ] {
        let weir = gateway(&upstream, "workers = 1", lists, "");
        assert_eq!(is_served(&weir), lets_in, "{lists}");
        if !lets_in {
            weir.wait_for_stderr(&["client_denied", "client=127.0.0.1"]);
        }
    }
}

/// If a load balancer sends PROXY headers, its own address says nothing about the client.
#[test]
fn the_address_that_a_proxy_header_names_counts() {
    let upstream = named("a");
    let listener = "proxy_protocol = '127.0.0.1'\ndeny = ['127.0.0.1', '192.0.2.9']";
    let weir = gateway(&upstream, "workers = 1\nlimits.connections_per_client = 1", listener, "");
    let mut first = of("192.0.2.7", &weir);
    assert_eq!(first.ask(GET).status, 200);
    of("192.0.2.9", &weir).expect_end();
    weir.wait_for_stderr(&["client_denied", "client=192.0.2.9"]);
    of("192.0.2.7", &weir).expect_end();
    weir.wait_for_stderr(&["too_many_connections", "client=192.0.2.7"]);
    assert_eq!(of("192.0.2.8", &weir).ask(GET).status, 200);
    assert_eq!(first.ask(GET).status, 200, "what is open stays so");
}

#[test]
fn a_client_has_as_many_connections_as_it_may_in_all_workers_together() {
    let upstream = named("a");
    let weir = gateway(&upstream, "workers = 2\nlimits.connections_per_client = 3", "", "");
    let mut open: Vec<_> = (0..3).map(|_| Client::connect(weir.address(), None)).collect();
    for client in &mut open {
        assert_eq!(client.ask(GET).status, 200);
    }
    assert!(!is_served(&weir));
    weir.wait_for_stderr(&["too_many_connections"]);
    open.pop();
    poll_until(DEADLINE, "a closed connection counts no longer", || is_served(&weir));
    assert!(metric(&weir, "weir_ended_early_total{reason=\"too_many_connections\"}") >= 1);
}

#[test]
fn requests_beyond_the_rate_are_declined_and_the_connection_goes_on() {
    let upstream = named("a");
    let slow = "path = '/slow'\nrate = { requests = 2, per = '1h' }\n[[route]]\nservice = 'app'";
    let weir = gateway(&upstream, "workers = 2", "", slow);
    let slow = "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut client = Client::connect(weir.address(), None);
    for status in [200, 200, 429, 429] {
        let answer = client.ask(slow);
        assert_eq!(answer.status, status);
        if status == 429 {
            let wait: u64 = answer.fields("retry-after")[0].parse().unwrap();
            assert!((1..=1800).contains(&wait), "{wait}");
            assert!(!answer.says_close());
        }
    }
    assert_eq!(client.ask(GET).status, 200, "another route has no limit");
    assert_eq!(
        Client::connect(weir.address(), None).ask(slow).status,
        429,
        "all connections of a client count"
    );
    assert_eq!(upstream.requests().len(), 3);
    assert_eq!(metric(&weir, "weir_ended_early_total{reason=\"rate_limited\"}"), 3);
}

#[test]
fn a_burst_is_as_large_as_it_is_set_and_clients_have_buckets_of_their_own() {
    let upstream = named("a");
    for (by, other) in [("", 200), (", by = 'route'", 429)] {
        let rate = format!("rate = {{ requests = 1, per = '1h', burst = 2{by} }}");
        let weir = gateway(&upstream, "workers = 1", "proxy_protocol = '127.0.0.1'", &rate);
        let ask = |client: &str| of(client, &weir).ask(GET).status;
        assert_eq!([ask("192.0.2.7"), ask("192.0.2.7"), ask("192.0.2.7")], [200, 200, 429]);
        assert_eq!(ask("192.0.2.8"), other, "{by}");
    }
}
