//! The gateway resolves server names again when their TTL expires, in the background.

pub(crate) mod server;

use super::{ask, get};
use crate::common::{Client, DEADLINE, Ending, Peer, Upstream, Weir, poll_until};
use rustix::process::Signal;
pub(super) use server::NameServer;
use server::{NXDOMAIN, SERVFAIL, Says};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use weir_http::Method;

const NAME: &str = "app.test";
const OLD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const NEW: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A gateway with two workers that uses this name server; `more` are further configuration lines.
fn gateway(names: &NameServer, server: &str, more: &str) -> Weir {
    Weir::configured(&config(names, server, more), 1)
}

fn config(names: &NameServer, server: &str, more: &str) -> String {
    format!(
        "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = '{server}'\n\
         [[route]]\nservice = 'app'\n[dns]\nservers = '{}'\n{more}",
        names.address
    )
}

/// Two upstreams on the same port, which respond with their names.
pub(super) fn twins() -> (Upstream, Upstream) {
    let mut found = None;
    poll_until(DEADLINE, "a port that is free on both addresses", || {
        let old = TcpListener::bind((OLD, 0)).unwrap();
        let new = TcpListener::bind((NEW, old.local_addr().unwrap().port()));
        found = new.ok().map(|new| (old, new));
        found.is_some()
    });
    let (old, new) = found.unwrap();
    let answering = |name: &'static str| {
        move |peer: &mut Peer| {
            peer.serve(format!("HTTP/1.1 200 OK\r\nX-Server: {name}\r\nContent-Length: 0\r\n\r\n"));
        }
    };
    (Upstream::on(old, None, answering("old")), Upstream::on(new, None, answering("new")))
}

/// The server that responds to a request, which must not fail.
fn server(weir: &Weir) -> String {
    let answer = get(weir, "h", "/");
    assert_eq!(answer.status, 200, "{}", weir.stderr());
    answer.fields("x-server")[0].to_owned()
}

fn wait_until_asked(names: &NameServer, name: &str, more: usize) {
    let before = names.asked(name);
    poll_until(DEADLINE, &format!("{more} more questions for {name}"), || names.asked(name) >= before + more);
}

#[test]
fn a_server_moves_when_its_address_is_gone_and_no_request_fails() {
    let (names, (old, new)) = (NameServer::start(), twins());
    names.say_addresses(NAME, 1, &[OLD]);
    let weir = gateway(&names, &format!("http://{NAME}:{}", old.address.port()), "");
    for _ in 0..10 {
        assert_eq!(server(&weir), "old");
    }
    // Another order with a further address: the current address is still listed, so the server stays.
    names.say_addresses(NAME, 1, &[NEW, OLD]);
    wait_until_asked(&names, NAME, 3);
    assert_eq!((server(&weir).as_str(), new.connections()), ("old", 0));
    let pooled = old.connections();
    names.say_addresses(NAME, 1, &[NEW]);
    poll_until(DEADLINE, "requests go to the new address", || server(&weir) == "new");
    weir.wait_for_stderr(&["weir: app: http://app.test:", " is at 127.0.0.2:", " now"]);
    for index in 0..pooled {
        assert_eq!(old.wait_for_ending(index), Ending::Clean, "gently");
    }
    poll_until(DEADLINE, "both workers have moved", || (0..20).all(|_| server(&weir) == "new"));
    let ended = weir.stop();
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stderr.matches(" is at ").count(), 1, "{}", ended.stderr);
}

/// A request in flight keeps its connection, which the gateway does not reuse.
#[test]
fn a_request_in_flight_ends_at_the_old_address() {
    let (names, (old, _new)) = (NameServer::start(), twins());
    names.say_addresses(NAME, 1, &[OLD]);
    let weir = gateway(&names, &format!("http://{NAME}:{}", old.address.port()), "");
    let mut client = Client::connect(weir.address(), None);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbo");
    poll_until(DEADLINE, "the request is at the old address", || old.received_bytes() > 0);
    names.say_addresses(NAME, 1, &[NEW]);
    poll_until(DEADLINE, "others go to the new one", || (0..20).all(|_| server(&weir) == "new"));
    client.send("dy");
    let answer = client.answer(Method::Post);
    assert_eq!((answer.status, answer.fields("x-server")), (200, vec!["old"]));
    assert_eq!(old.wait_for_ending(0), Ending::Clean);
}

#[test]
fn trouble_keeps_the_last_address_and_is_reported_once() {
    let troubles = [
        (Says::Code(SERVFAIL), "Server Failure"),
        (Says::Nothing, "no answer within 200ms"),
        (Says::Code(NXDOMAIN), "there is no such name"),
        (Says::Addresses(1, Vec::new()), "it has no address"),
    ];
    let check = |trouble: Says, why: &str| {
        let (names, (old, _new)) = (NameServer::start(), twins());
        names.say_addresses(NAME, 1, &[OLD]);
        let weir = gateway(&names, &format!("http://{NAME}:{}", old.address.port()), "timeout = '200ms'");
        names.say(NAME, trouble);
        weir.wait_for_stderr(&["weir: cannot resolve `app.test`: ", why, "; its last address stays in use"]);
        // The next lookup fails too.
        wait_until_asked(&names, NAME, 3);
        assert_eq!(server(&weir), "old");
        names.say_addresses(NAME, 1, &[NEW]);
        poll_until(DEADLINE, "the server moves", || server(&weir) == "new");
        weir.wait_for_stderr(&["weir: `app.test` resolves again"]);
        let ended = weir.stop();
        assert_eq!(ended.stderr.matches("cannot resolve").count(), 1, "{}", ended.stderr);
    };
    // In parallel, since each case waits for a retry.
    std::thread::scope(|scope| {
        for (trouble, why) in troubles {
            scope.spawn(move || check(trouble, why));
        }
    });
}

#[test]
fn the_next_name_server_is_asked_if_one_is_in_trouble() {
    let (names, broken, (old, _new)) = (NameServer::start(), NameServer::start(), twins());
    broken.say(NAME, Says::Code(SERVFAIL));
    names.say_addresses(NAME, 1, &[OLD]);
    let server_url = format!("http://{NAME}:{}", old.address.port());
    let both = format!("servers = ['{}', '{}']", broken.address, names.address);
    let config = config(&names, &server_url, "timeout = '200ms'")
        .replace(&format!("servers = '{}'", names.address), &both);
    let weir = Weir::configured(&config, 1);
    assert_eq!(server(&weir), "old");
    broken.say(NAME, Says::Nothing);
    names.say_addresses(NAME, 1, &[NEW]);
    poll_until(DEADLINE, "the server moves", || server(&weir) == "new");
    assert!(broken.asked(NAME) > 1);
    let ended = weir.stop();
    assert!(!ended.stderr.contains("cannot resolve"), "{}", ended.stderr);
}

#[test]
fn aliases_are_followed() {
    let (names, (old, _new)) = (NameServer::start(), twins());
    names.say(NAME, Says::Alias(1, "app.cdn.test"));
    names.say_addresses("app.cdn.test", 3600, &[OLD]);
    names.say_addresses("other.cdn.test", 3600, &[NEW]);
    let weir = gateway(&names, &format!("http://{NAME}:{}", old.address.port()), "");
    assert_eq!(server(&weir), "old");
    // The alias has a TTL of a second, its target of an hour.
    names.say(NAME, Says::Alias(1, "other.cdn.test"));
    poll_until(DEADLINE, "the server moves", || server(&weir) == "new");
}

/// Compares numbers of queries, since times would depend on the machine.
#[test]
fn the_time_between_lookups_is_bounded_below() {
    let names = NameServer::start();
    names.say_addresses("zero.test", 0, &[OLD]);
    names.say_addresses("one.test", 1, &[OLD]);
    names.say_addresses("rare.test", 1, &[OLD]);
    let rare = gateway(&names, "http://rare.test:1", "min_ttl = '1h'\nmax_ttl = '1h'");
    let servers = "servers = ['http://zero.test:1', 'http://one.test:1']";
    let config = config(&names, "x", "").replace("servers = 'x'", servers);
    let weir = Weir::configured(&config, 1);
    wait_until_asked(&names, "one.test", 4);
    let (zero, one) = (names.asked("zero.test"), names.asked("one.test"));
    assert!(zero.abs_diff(one) <= 2, "a TTL of 0 counts as 1 s: {zero}, {one}");
    assert_eq!(names.asked("rare.test"), 1);
    drop((rare, weir));
}

#[test]
fn the_preferred_kind_comes_first() {
    let names = NameServer::start();
    let both = [OLD.into(), Ipv6Addr::LOCALHOST.into()];
    names.say(NAME, Says::Addresses(7, both.into()));
    for (prefer, at) in [("ipv4", "127.0.0.1:80"), ("ipv6", "[::1]:80")] {
        if prefer == "ipv6" && TcpListener::bind("[::1]:0").is_err() {
            println!("skipped: no IPv6 here");
            continue;
        }
        let (folder, file) = written(&config(&names, "http://app.test", &format!("prefer = '{prefer}'")));
        let ended = Weir::run(&["check", "--config", &file, "--explain"]);
        assert!(
            ended.stdout.contains(&format!("http://app.test at {at}\n")),
            "{}{}",
            ended.stdout,
            ended.stderr
        );
        let by = format!("by /etc/hosts and {}, again after their TTL, 1s to 60s\n", names.address);
        assert!(ended.stdout.contains(&by) && ended.stdout.contains("TTL 7s\n"), "{}", ended.stdout);
        drop(folder);
    }
}

#[test]
fn a_name_without_an_address_is_a_fault_of_the_configuration() {
    let names = NameServer::start();
    names.say("mute.test", Says::Nothing);
    for (server, more, fault) in [
        ("http://none.test", "", "service.app.servers.0: cannot resolve `none.test`: there is no such name"),
        (
            "http://mute.test",
            "timeout = '100ms'",
            "service.app.servers.0: cannot resolve `mute.test`: name server 127.0.0.1:",
        ),
        ("http://127.0.0.1", "min_ttl = '2min'", "dns.max_ttl: invalid value 60s: expected 120s to 86400s"),
        ("http://127.0.0.1", "min_ttl = '0.5s'", "dns.min_ttl: invalid value 500ms: expected 1s to 3600s"),
        ("http://127.0.0.1", "timeout = '1min'", "dns.timeout: invalid value 60s: expected 100ms to 30s"),
        (
            "http://127.0.0.1",
            "prefer = 'ipv5'",
            "unknown variant `ipv5`, expected one of `any`, `ipv4`, `ipv6`",
        ),
    ] {
        let (_folder, file) = written(&config(&names, server, more));
        let ended = Weir::run(&["check", "--config", &file]);
        assert!(ended.code == Some(2) && ended.stderr.contains(fault), "{fault}: {}", ended.stderr);
    }
}

/// Addresses need no lookup.
#[test]
fn addresses_need_no_thread() {
    let threads = |weir: &Weir| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", weir.pid())).unwrap();
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default()
        };
        tasks.map(name).collect::<String>()
    };
    let names = NameServer::start();
    names.say_addresses(NAME, 1, &[OLD]);
    assert!(!threads(&gateway(&names, "http://127.0.0.1:1", "")).contains("names"));
    let named = gateway(&names, "http://app.test:1", "");
    // A thread sets its own name after it starts.
    poll_until(DEADLINE, "the thread is there", || threads(&named).contains("names"));
}

/// Without `servers`, the system resolves names.
#[test]
fn the_hosts_file_is_read_before_any_name_server_is_asked() {
    let (old, _new) = twins();
    let names = NameServer::start();
    let weir = gateway(&names, &format!("http://localhost:{}", old.address.port()), "prefer = 'ipv4'");
    assert_eq!(ask(&weir, "GET / HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    assert_eq!(names.asked("localhost"), 0);
}

fn written(config: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    std::fs::write(&file, config).unwrap();
    let path = file.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn names_are_followed_from_a_reload_on_and_stay_where_they_are_at_the_next() {
    let (names, (old, _new)) = (NameServer::start(), twins());
    names.say_addresses(NAME, 1, &[OLD]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let write = |host: &str, more: &str| {
        let server = format!("http://{host}:{}", old.address.port());
        std::fs::write(&file, config(&names, &server, more)).unwrap();
    };
    write("127.0.0.1", "");
    let weir = Weir::of_file(&file, 1);
    assert_eq!((server(&weir).as_str(), names.asked(NAME)), ("old", 0));
    write(NAME, "");
    weir.signal(Signal::HUP);
    weir.wait_for_stderr(&["reloaded; changed: listeners 0, certificates 0, services 1"]);
    names.say_addresses(NAME, 1, &[NEW]);
    poll_until(DEADLINE, "requests go to the new address", || server(&weir) == "new");
    poll_until(DEADLINE, "both workers have moved", || (0..20).all(|_| server(&weir) == "new"));
    // The first address differs from the current one, but that alone does not move the server.
    names.say_addresses(NAME, 1, &[OLD, NEW]);
    let connections = old.connections();
    write(NAME, "[limits]\nbody = 1\n");
    weir.signal(Signal::HUP);
    weir.wait_for_stderr(&["services 0, routes 0, other settings 1"]);
    assert!((0..20).all(|_| server(&weir) == "new"));
    assert_eq!(old.connections(), connections);
    assert_eq!(weir.stop().code, Some(0));
}
