//! Connection limits of servers, and queues of waiting requests.

use super::{counting_once, metric, named};
use crate::common::{Client, DEADLINE, Peer, Switch, Upstream, Weir, pattern, poll_until};
use serde_json::Value;
use std::fs;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn gateway(service: &str, rest: &str, upstream: &Upstream) -> Weir {
    let config = format!(
        "workers = 1
        [listener.web]
        bind = '127.0.0.1:0'
        [service.app]
        servers = 'http://{}'
        {service}
        [[route]]
        service = 'app'
        [admin]
        bind = '127.0.0.1:0'
        {rest}",
        upstream.address
    );
    Weir::configured(&config, 1)
}

fn waiting(weir: &Weir) -> u64 {
    metric(weir, "weir_waiting_requests")
}

#[test]
fn requests_wait_for_a_connection_and_keep_their_bodies() {
    let switch = Switch::default();
    let upstream = counting_once(&switch);
    let weir = gateway("max_connections = 1", "", &upstream);
    let mut clients: Vec<_> = (0..6).map(|_| Client::connect(weir.address(), None)).collect();
    let body = pattern(100_000);
    for (index, client) in clients.iter_mut().enumerate() {
        let length = index * 20_000;
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"));
        client.send(&body[..length]);
        poll_until(DEADLINE, "it waits", || waiting(&weir) == index as u64);
    }
    switch.throw();
    for (index, client) in clients.iter_mut().enumerate() {
        let answer = client.answer(Method::Post);
        assert_eq!((answer.status, answer.text()), (200, (index * 20_000).to_string().as_str()));
    }
    assert_eq!((upstream.connections(), waiting(&weir)), (1, 0));
    // No place in the queue was lost.
    assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
}

#[test]
fn a_queue_is_bounded_in_length_and_time() {
    let switch = Switch::default();
    let upstream = counting_once(&switch);
    let weir = gateway("max_connections = 1\nmax_waiting = 1", "[timeouts]\nqueue = '300ms'", &upstream);
    let mut busy = Client::connect(weir.address(), None);
    busy.send(GET);
    upstream.wait_for_requests(1);
    let mut second = Client::connect(weir.address(), None);
    second.send(GET.replace("GET", "HEAD"));
    poll_until(DEADLINE, "it waits", || waiting(&weir) == 1);
    let refused = Client::connect(weir.address(), None).ask(GET);
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("queue_full"), "{}", refused.text());
    let late = second.answer(Method::Head);
    assert!(late.status == 503 && late.says_close(), "{}", late.status);
    weir.wait_for_stderr(&["503 queue_timeout"]);
    assert_eq!(waiting(&weir), 0);
    switch.throw();
    assert_eq!(busy.answer(Method::Get).status, 200);
}

/// Regression test: the lines of requests that ended before they had a connection lacked their times and their service.
#[test]
fn requests_that_end_without_a_connection_have_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let switch = Switch::default();
    let upstream = counting_once(&switch);
    let rest = format!(
        "[[route]]
        path = '/held'
        service = 'app'
        request_buffer = '16KiB'
        timeouts.stall = '300ms'
        [timeouts]
        queue = '300ms'
        [log]
        access = '{}'",
        log.display()
    );
    let weir = gateway("max_connections = 1\nmax_waiting = 1", &rest, &upstream);
    let mut busy = Client::connect(weir.address(), None);
    busy.send(GET);
    upstream.wait_for_requests(1);
    let ask = |target: &str, rest: &str| {
        let mut client = Client::connect(weir.address(), None);
        client.send(format!("POST {target} HTTP/1.1\r\nHost: h.example\r\n{rest}\r\n"));
        client
    };
    let mut late = ask("/late", "Content-Length: 0\r\n");
    poll_until(DEADLINE, "it waits", || waiting(&weir) == 1);
    let mut full = ask("/full", "Content-Length: 0\r\n");
    assert_eq!(full.answer(Method::Post).status, 503);
    assert_eq!(late.answer(Method::Post).status, 503);
    let leaving = ask("/left", "Content-Length: 0\r\n");
    poll_until(DEADLINE, "it waits", || waiting(&weir) == 1);
    leaving.stream.reset();
    poll_until(DEADLINE, "it is gone", || waiting(&weir) == 0);
    let mut held = ask("/held", "Content-Length: 9\r\n\r\na");
    assert_eq!(held.answer(Method::Post).status, 408);
    let read = || fs::read_to_string(&log).unwrap_or_default();
    poll_until(DEADLINE, "four lines", || read().lines().count() == 4);
    let lines: Vec<Value> = read().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (target, reason, received) in [
        ("/full", "queue_full", 0),
        ("/late", "queue_timeout", 0),
        ("/left", "client_closed", 0),
        ("/held", "body_timeout", 3),
    ] {
        let line = lines
            .iter()
            .find(|line| line["target"] == target)
            .unwrap_or_else(|| panic!("no {target}: {lines:?}"));
        for (name, value) in
            [("method", "POST"), ("host", "h.example"), ("service", "app"), ("reason", reason)]
        {
            assert_eq!(line[name], value, "{name} of {line}");
        }
        assert_eq!(line["received"], received, "{line}");
        assert!(
            line["total_ms"].as_f64().is_some_and(|ms| ms >= 0.0) && line.get("server").is_none(),
            "{line}"
        );
    }
    switch.throw();
    assert_eq!(busy.answer(Method::Get).status, 200);
}

#[test]
fn clients_that_leave_do_not_fill_the_queue() {
    let switch = Switch::default();
    let upstream = counting_once(&switch);
    let weir = gateway("max_connections = 1\nmax_waiting = 1", "", &upstream);
    let mut busy = Client::connect(weir.address(), None);
    busy.send(GET);
    upstream.wait_for_requests(1);
    for _ in 0..3 {
        let mut leaving = Client::connect(weir.address(), None);
        leaving.send(GET);
        poll_until(DEADLINE, "it waits", || waiting(&weir) == 1);
        leaving.stream.reset();
        poll_until(DEADLINE, "it is gone", || waiting(&weir) == 0);
    }
    switch.throw();
    assert_eq!(busy.answer(Method::Get).status, 200);
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_server_that_is_full_leaves_requests_to_others() {
    let switch = Switch::default();
    let (full, free) = (counting_once(&switch), named("free"));
    let config = format!(
        "workers = 1
        [listener.web]
        bind = '127.0.0.1:0'
        [service.app]
        servers = ['http://{}', {{ url = 'http://{}', backup = true }}]
        max_connections = 1
        [[route]]
        service = 'app'",
        full.address, free.address
    );
    let weir = Weir::configured(&config, 1);
    let mut busy = Client::connect(weir.address(), None);
    busy.send(GET);
    full.wait_for_requests(1);
    assert_eq!(Client::connect(weir.address(), None).ask(GET).fields("x-server"), ["free"]);
    switch.throw();
    assert_eq!(busy.answer(Method::Get).status, 200);
}

#[test]
fn a_drain_serves_those_that_wait() {
    let switch = Switch::default();
    let upstream = counting_once(&switch);
    let weir = gateway("max_connections = 1", "", &upstream);
    let mut clients: Vec<_> = (0..3).map(|_| Client::connect(weir.address(), None)).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        client.send(GET);
        poll_until(DEADLINE, "it waits", || waiting(&weir) == index as u64);
    }
    upstream.wait_for_requests(1);
    weir.terminate();
    switch.throw();
    for client in &mut clients {
        assert_eq!(client.answer(Method::Get).status, 200);
    }
    drop(clients);
    assert_eq!(weir.wait().code, Some(0));
}

/// Requests of both workers wait for the only connection, which moves between the workers.
#[test]
fn a_limit_holds_for_all_workers_together() {
    let switch = Switch::default();
    let upstream = counting_once(&switch);
    let config = format!(
        "workers = 2
        [listener.web]
        bind = '127.0.0.1:0'
        [service.app]
        servers = 'http://{}'
        max_connections = 1
        [[route]]
        service = 'app'
        [admin]
        bind = '127.0.0.1:0'",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    // The kernel spreads connections; all 24 on one worker is practically impossible.
    let mut clients: Vec<_> = (0..24).map(|_| Client::connect(weir.address(), None)).collect();
    for client in &mut clients {
        client.send(GET);
    }
    poll_until(DEADLINE, "all but one wait", || waiting(&weir) == 23);
    switch.throw();
    for client in &mut clients {
        assert_eq!(client.answer(Method::Get).status, 200);
    }
    assert!(metric(&weir, "weir_upstream_connections_taken_over_total") > 0);
    // An idle connection also moves to a worker that needs it.
    for client in clients
        .iter_mut()
        .chain(&mut (0..24).map(|_| Client::connect(weir.address(), None)).collect::<Vec<_>>())
    {
        assert_eq!(client.ask(GET).status, 200);
    }
    assert_eq!((upstream.connections(), waiting(&weir)), (1, 0));
}

/// If the server closes after each response, waiting requests get new connections, in whichever worker they wait.
#[test]
fn room_that_a_closed_connection_leaves_is_used_by_all_workers() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        if peer.request().is_some() {
            peer.answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let config = format!(
        "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\nmax_connections = 1\n[[route]]\nservice = 'app'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    let mut clients: Vec<_> = (0..24).map(|_| Client::connect(weir.address(), None)).collect();
    for round in 1..=5 {
        for client in &mut clients {
            client.send(GET);
        }
        for client in &mut clients {
            assert_eq!(client.answer(Method::Get).status, 200);
        }
        assert_eq!(upstream.connections(), round * 24);
    }
}

#[test]
fn limits_that_cannot_hold_are_refused() {
    super::check::refused(
        "[listener.web]\nbind = '127.0.0.1:0'\n[service.a]\nservers = 'http://127.0.0.1:1'\nmax_connections = 0\n[[route]]\nservice = 'a'\n",
        "service.a.max_connections: invalid value `0`: expected 1 to 1000000",
    );
}
