//! Descriptors: their shares, evictions, and shortage.

use super::super::check;
use super::{DEADLINE, GET, OK, held_back, metric, named, poll_until, reload};
use crate::common::{Client, Switch, Upstream, Weir};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::collections::BTreeSet;
use std::fs;
use weir_http::Method;

/// An open-file limit that no test reaches.
const ENOUGH: u32 = 256;

/// A gateway with one worker and one service, at an open-file limit.
fn gateway(files: u32, upstream: &Upstream, more: &str) -> Weir {
    Weir::limited(files, &config(&format!("'http://{}'", upstream.address), more), 1)
}

fn config(servers: &str, more: &str) -> String {
    format!(
        "workers = 1\n{more}\n[listener.web]\nbind = '127.0.0.1:0'\n[admin]\nbind = '127.0.0.1:0'\n\
         [service.app]\nservers = [{servers}]\n[[route]]\nservice = 'app'\n"
    )
}

fn descriptors(weir: &Weir, kind: &str) -> usize {
    metric(weir, &format!("weir_descriptors{{kind=\"{kind}\"}}")) as usize
}

fn evicted(weir: &Weir, kind: &str, cause: &str) -> u64 {
    metric(weir, &format!("weir_evicted_total{{kind=\"{kind}\",cause=\"{cause}\"}}"))
}

/// Connections with a partial request, which are not idle.
fn begun(weir: &Weir, count: usize) -> Vec<Client> {
    let begin = |_| {
        let mut client = Client::connect(weir.address(), None);
        client.send("GET / HT");
        client
    };
    (0..count).map(begin).collect()
}

/// A gateway's open descriptors, once stable: connections to its admin address close with a delay. Ignores high
/// numbers, which may be inherited.
fn open(weir: &Weir) -> BTreeSet<u64> {
    let open = || -> BTreeSet<u64> {
        let files = fs::read_dir(format!("/proc/{}/fd", weir.pid())).unwrap();
        let numbers = files.map(|file| file.unwrap().file_name().to_str().unwrap().parse().unwrap());
        numbers.filter(|number| *number < u64::from(ENOUGH / 2)).collect()
    };
    let (mut seen, mut same) = (open(), 0);
    poll_until(DEADLINE, "descriptors stay the same", || {
        let now = open();
        same = if now == seen { same + 1 } else { 0 };
        seen = now;
        same > 20
    });
    seen
}

/// Lowers a gateway's open-file limit so that it can open nothing before it closes something. Clients take the free
/// numbers below the limit; returns them with the former limit.
fn squeeze(weir: &Weir) -> (Rlimit, Vec<Client>) {
    let mut fillers = Vec::new();
    let mut seen = open(weir);
    let end = loop {
        let last = seen.last().copied();
        let before = seen.len();
        fillers.extend(begun(weir, 1));
        poll_until(DEADLINE, "it is accepted", || {
            seen = open(weir);
            seen.len() > before
        });
        if seen.last().copied() > last {
            break seen.last().map(|last| last + 1);
        }
    };
    (set(weir, Rlimit { current: end, maximum: Some(ENOUGH.into()) }), fillers)
}

/// Sets the limit; returns the former one.
fn set(weir: &Weir, limit: Rlimit) -> Rlimit {
    prlimit(Pid::from_raw(weir.pid() as i32), Resource::Nofile, limit).unwrap()
}

#[test]
fn at_the_limit_clients_wait_and_all_else_goes_on() {
    let switch = Switch::default();
    let upstream = held_back(&switch, OK);
    let weir = gateway(64, &upstream, "");
    assert!((12..36).contains(&descriptors(&weir, "clients_limit")), "three quarters of what is left of 64");
    let most = 10;
    let weir = gateway(64, &upstream, &format!("limits.connections = {most}"));
    assert_eq!(descriptors(&weir, "clients_limit"), most);
    let mut clients: Vec<_> = (0..most).map(|_| Client::connect(weir.address(), None)).collect();
    for client in &mut clients {
        client.send(GET);
    }
    upstream.wait_for_requests(most);
    let mut late = Client::connect(weir.address(), None);
    late.send(GET);
    weir.wait_for_stderr(&[&format!("weir: accept: clients have all {most} connections")]);
    assert_eq!((descriptors(&weir, "clients"), descriptors(&weir, "servers")), (most, most));
    assert!(metric(&weir, "weir_accept_rests_total{cause=\"connections\"}") >= 1);
    assert_eq!(reload(&weir), 200);
    switch.throw();
    for client in &mut clients {
        assert_eq!(client.answer(Method::Get).status, 200);
    }
    clients.truncate(most / 2);
    assert_eq!(late.answer(Method::Get).status, 200);
    for client in &mut clients {
        assert_eq!(client.ask(GET).status, 200, "those that stayed are served");
    }
    assert_eq!(weir.stderr().matches("weir: accept").count(), 1, "it is said once: {}", weir.stderr());
}

#[test]
fn idle_connections_to_servers_are_closed_for_clients() {
    const IDLE: usize = 9;
    let switch = Switch::default();
    let upstream = held_back(&switch, OK);
    let weir = gateway(64, &upstream, "limits.connections = 1000\ntimeouts.head = '1h'");
    weir.wait_for_stderr(&["limits.connections: `1000`", "open-file limit of 64"]);
    let all = descriptors(&weir, "connections_limit");
    assert_eq!(descriptors(&weir, "clients_limit"), all);
    let mut first: Vec<_> = (0..IDLE).map(|_| Client::connect(weir.address(), None)).collect();
    for client in &mut first {
        client.send(GET);
    }
    upstream.wait_for_requests(IDLE);
    switch.throw();
    for client in &mut first {
        assert_eq!(client.answer(Method::Get).status, 200);
    }
    drop(first);
    poll_until(DEADLINE, "the clients are gone", || descriptors(&weir, "clients") == 0);
    assert_eq!(metric(&weir, "weir_server_idle_connections") as usize, IDLE);
    let mut clients = begun(&weir, all);
    poll_until(DEADLINE, "all are accepted", || descriptors(&weir, "clients") == all);
    assert_eq!(evicted(&weir, "server", "descriptors") as usize, IDLE);
    assert_eq!(evicted(&weir, "client", "descriptors"), 0);
    // No descriptor remains for an upstream connection, so it takes a spare one.
    clients[0].send("TP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(clients[0].answer(Method::Get).status, 200);
    clients[0].send("GET / HT");
    let late = begun(&weir, 1);
    weir.wait_for_stderr(&[&format!("weir: accept: connections have all {all} descriptors")]);
    drop((clients, late));
    poll_until(DEADLINE, "they are gone", || descriptors(&weir, "clients") == 0);
    assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
}

/// Upstream connections use the spare descriptors beyond the share of all connections; each service in turn closes the
/// other's connection.
#[test]
fn two_services_share_a_place_when_clients_have_all_others() {
    let (one, other) = (named("one"), named("other"));
    let config = format!(
        "{}[service.b]\nservers = 'http://{}'\n[[route]]\npath = '/b'\nservice = 'b'\n",
        config(
            &format!("'http://{}'", one.address),
            "limits.connections = 1000\ntimeouts.head = '1h'\ntimeouts.idle = '1h'"
        ),
        other.address
    );
    let weir = Weir::limited(64, &config, 1);
    let all = descriptors(&weir, "connections_limit");
    let mut client = Client::connect(weir.address(), None);
    let _others = begun(&weir, all - 1);
    poll_until(DEADLINE, "all are accepted", || descriptors(&weir, "clients") == all);
    for nth in 0..4 {
        for (request, server) in [(GET, "one"), ("GET /b HTTP/1.1\r\nHost: h\r\n\r\n", "other")] {
            let answer = client.ask(request);
            assert_eq!(
                (answer.status, answer.fields("x-server")),
                (200, vec![server]),
                "{nth}: {}",
                answer.head
            );
        }
    }
    assert!(evicted(&weir, "server", "descriptors") >= 7);
}

/// The existing clients exhaust the limit and are idle, so the gateway closes them.
#[test]
fn idle_clients_are_closed_for_new_ones() {
    let upstream = named("a");
    let weir = gateway(ENOUGH, &upstream, "limits.connections = 3");
    let mut idle: Vec<_> = (0..3).map(|_| Client::connect(weir.address(), None)).collect();
    for client in &mut idle {
        assert_eq!(client.ask(GET).status, 200);
    }
    let late = Client::connect(weir.address(), None).ask(GET);
    assert_eq!(late.status, 200);
    assert!(evicted(&weir, "client", "connections") >= 1);
    idle[0].expect_end();
    let own =
        "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n[limits]\nconnections = 0\n";
    check::refused(own, "limits.connections: invalid value `0`: expected at least 1");
}

#[test]
fn a_connection_to_a_server_takes_the_place_of_an_idle_one() {
    let (one, other) = (named("one"), named("other"));
    let config = format!(
        "{}[service.b]\nservers = 'http://{}'\n[[route]]\npath = '/b'\nservice = 'b'\n",
        config(&format!("'http://{}'", one.address), ""),
        other.address
    );
    let weir = Weir::limited(ENOUGH, &config, 1);
    let mut client = Client::connect(weir.address(), None);
    let b = "GET /b HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(client.ask(b).status, 200, "one is idle now");
    let (before, _fillers) = squeeze(&weir);
    let answer = client.ask(GET);
    assert_eq!((answer.status, answer.fields("x-server")), (200, vec!["one"]), "{}", weir.stderr());
    assert_eq!((one.connections(), other.connections()), (1, 1));
    assert_eq!(client.ask(b).status, 200, "and back");
    set(&weir, before);
    assert_eq!(evicted(&weir, "server", "system"), 2);
}

#[test]
fn without_a_descriptor_and_anything_idle_a_request_fails_without_blame() {
    let upstream = named("a");
    let servers = format!("'http://{0}', 'http://{0}'", upstream.address);
    let more = "eject.failures = 1\n[[route]]\n";
    let weir = Weir::limited(ENOUGH, &config(&servers, "").replace("[[route]]\n", more), 1);
    let mut client = Client::connect(weir.address(), None);
    client.send("GET / HT");
    poll_until(DEADLINE, "it is accepted", || descriptors(&weir, "clients") == 1);
    let (before, _fillers) = squeeze(&weir);
    client.send("TP/1.1\r\nHost: h\r\n\r\n");
    let refused = client.answer(Method::Get);
    assert_eq!((refused.status, refused.text().contains("no_descriptors")), (503, true), "{}", refused.head);
    set(&weir, before);
    assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
    assert_eq!(metric(&weir, "weir_ended_early_total{reason=\"no_descriptors\"}"), 1);
    assert_eq!((metric(&weir, "weir_ejections_total"), metric(&weir, "weir_server_ejected")), (0, 0));
}

/// Everything else that opens descriptors at run time.
#[test]
fn whatever_finds_no_descriptor_is_done_later() {
    const OWN: &str = "GET /own HTTP/1.1\r\nHost: h\r\n\r\n";
    let upstream = named("a");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let more = format!("[log]\naccess = '{}'", log.display());
    let service =
        "health = { every = '20ms', fall = 1 }\n[[route]]\npath = '/own'\nrespond.status = 200\n[[route]]\n";
    let config = config(&format!("'http://{}'", upstream.address), &more).replace("[[route]]\n", service);
    let weir = Weir::limited(ENOUGH, &config, 1);
    let mut known = Client::connect(weir.address(), None);
    assert_eq!(known.ask(OWN).status, 200);
    // A connection that has been idle for a second may be closed for others.
    let (begin, rest) = OWN.split_at(5);
    known.send(begin);
    let before = squeeze_between_checks(&weir);
    // Clients, a reload and a reopened log file all fail. The admin address waits. A client may take the descriptor of
    // a completed health check, and then a server connection would need another one.
    let mut late = [(); 3].map(|()| Client::connect(weir.address(), None));
    for late in &mut late {
        late.send(OWN);
    }
    weir.wait_for_stderr(&["weir: accept: ", "retrying in 100 ms"]);
    weir.signal(Signal::HUP);
    weir.wait_for_stderr(&["weir: reload refused: ", "Too many open files"]);
    fs::rename(&log, folder.path().join("old")).unwrap();
    let mut admin = Client::connect(weir.admin(), None);
    admin.send("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for _ in 0..20 {
        known.send(rest);
        assert_eq!(known.answer(Method::Get).status, 200, "what is open goes on");
        known.send(begin);
    }
    set(&weir, before);
    drop(late);
    assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
    assert_eq!(admin.answer(Method::Get).status, 200);
    assert_eq!(reload(&weir), 200);
    poll_until(DEADLINE, "the log has a new file", || log.exists());
    assert!(!weir.stderr().contains("is down"), "that was not the server's fault: {}", weir.stderr());
}

/// Health checks start and end; sets the limit at a moment when no descriptor is left for one.
fn squeeze_between_checks(weir: &Weir) -> Rlimit {
    let files = || fs::read_dir(format!("/proc/{}/fd", weir.pid())).unwrap().count();
    let mut least = files();
    for _ in 0..200 {
        least = least.min(files());
        std::thread::yield_now();
    }
    set(weir, Rlimit { current: Some(least as u64), maximum: Some(ENOUGH.into()) })
}
