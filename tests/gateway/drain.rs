//! Drains as reported by the admin address, also next to a new process and after an upgrade.

use super::unix::exchange;
use super::upgrade::{Line, UPGRADE, to};
use super::{held_back, metric};
use crate::common::{Client, DEADLINE, Ending, Peer, Switch, Upstream, Weir, poll_until};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OLD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold";

/// Two workers, a listener and an admin address.
fn config(upstream: &Upstream, listener: &str, admin: &str) -> String {
    format!(
        "workers = 2\n[listener.web]\nbind = '{listener}'\n[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n\
         [admin]\nbind = '{admin}'\n",
        upstream.address
    )
}

/// A request in flight at the upstream, on its own connection.
fn waiting(weir: &Weir, upstream: &Upstream) -> Client {
    let mut client = Client::connect(weir.address(), None);
    client.send(GET);
    upstream.wait_for_requests(1);
    client
}

fn wait_for_refusal(address: SocketAddr) {
    poll_until(DEADLINE, "the port is released", || TcpStream::connect(address).is_err());
}

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Regression test: once the first worker had drained, `/metrics` and `/health` returned 503, and a liveness probe
/// restarted the process during its drain.
#[test]
fn all_workers_report_until_the_last_has_drained() {
    let answer = Switch::default();
    let upstream = held_back(&answer, OLD);
    let mut weir = Weir::configured(&config(&upstream, "127.0.0.1:0", "127.0.0.1:0"), 1);
    // Enough connections for each worker to serve some; all have closed.
    for _ in 0..20 {
        let mut early = Client::connect(weir.address(), None);
        assert_eq!(early.ask("GET / HTTP/1.1\r\n\r\n").status, 400);
    }
    let mut client = waiting(&weir, &upstream);
    assert_eq!(metric(&weir, "weir_responses_total"), 20);
    let top = Weir::spawn(&["top", "--admin", &format!("http://{}", weir.admin()), "--once"]).wait();
    assert_eq!(top.code, Some(0), "{}", top.stderr);
    weir.terminate();
    // One of the workers is idle and has drained.
    wait_for_refusal(weir.address());
    for _ in 0..20 {
        for (path, status) in
            [("health", 200), ("ready", 503), ("status", 200), ("metrics", 200), ("services", 200)]
        {
            let shown = weir.ask_admin(&format!("GET /{path}"));
            assert_eq!(shown.status, status, "/{path}: {}", shown.text());
        }
        assert_eq!(metric(&weir, "weir_responses_total"), 20, "those of a worker that has drained, too");
    }
    let top = Weir::spawn(&["top", "--admin", &format!("http://{}", weir.admin()), "--once"]).wait();
    assert_eq!(top.code, Some(0), "{}", top.stderr);
    assert!(top.stdout.contains("draining"), "{}", top.stdout);
    answer.throw();
    assert_eq!(client.answer(Method::Get).text(), "old");
    assert_eq!(weir.exit_code(), Some(0));
}

/// Regression test: the documented way to start a new process beside a draining one failed because the admin address
/// was in use.
#[test]
fn a_new_process_starts_beside_one_that_drains() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    for admin in [free_port().to_string(), format!("unix:{}", path.display())] {
        let is_path = admin.starts_with("unix:");
        let (web, answer) = (free_port().to_string(), Switch::default());
        let upstream = held_back(&answer, OLD);
        let file = folder.path().join("weir.toml");
        fs::write(&file, config(&upstream, &web, &admin)).unwrap();
        let serve = ["serve", "--config", file.to_str().unwrap()];
        let mut old = Weir::of_file(&file, 1);
        let mut client = waiting(&old, &upstream);
        let second = Weir::run(&serve);
        assert_eq!(
            second.code,
            Some(1),
            "{admin}: a process that serves keeps its addresses: {}",
            second.stderr
        );
        // An older connection to the admin address belongs to the old process.
        let mut watcher = (!is_path).then(|| Client::connect(old.admin(), None));
        let ready =
            |watcher: &mut Client| watcher.ask("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").status;
        assert!(watcher.as_mut().is_none_or(|watcher| ready(watcher) == 200));
        old.terminate();
        wait_for_refusal(old.address());
        assert_eq!(status(&admin, &path), 503, "{admin}: it drains");
        let new = Weir::of_file(&file, 1);
        for _ in 0..20 {
            assert_eq!(status(&admin, &path), 200, "{admin}: the new one has the address");
        }
        assert!(watcher.as_mut().is_none_or(|watcher| ready(watcher) == 503), "{admin}: the old one");
        answer.throw();
        assert_eq!(client.answer(Method::Get).text(), "old");
        drop(watcher);
        assert_eq!(old.exit_code(), Some(0));
        assert_eq!(status(&admin, &path), 200, "{admin}: the old one has left nothing to clean up");
        drop(new);
    }
}

/// The status of `/ready`.
fn status(admin: &str, path: &Path) -> u16 {
    let request = "GET /ready HTTP/1.1\r\nHost: localhost\r\n";
    if admin.starts_with("unix:") {
        let answer = exchange(path, &format!("{request}Connection: close\r\n\r\n"));
        return answer.split(' ').nth(1).unwrap().parse().unwrap();
    }
    Client::connect(admin.parse().unwrap(), None).ask(format!("{request}\r\n")).status
}

/// An upstream that switches protocols and sends, or responds, when the switch is thrown.
fn chatting(switch: &Switch) -> Upstream {
    let switch = switch.clone();
    Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            if request.head.starts_with("GET /chat") {
                peer.answer(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n",
                );
                switch.wait();
                peer.answer("still here");
                peer.read_to_end();
                return;
            }
            switch.wait();
            peer.answer(OLD);
        }
    })
}

const CHAT: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n";

/// An upgraded gateway with these timeouts, an exchange in flight and a tunnel; both belong to the old process, whose
/// `drain_idle` has passed.
fn upgraded(timeouts: &str, upstream: &Upstream) -> (Line, Client, Client) {
    let line = Line::new(&format!("{}[timeouts]\n{timeouts}\n", to(upstream, 1)), 1);
    let [mut exchange, mut tunnel, mut idle] = [(); 3].map(|()| Client::connect(line.weir.address(), None));
    exchange.send(GET);
    upstream.wait_for_requests(1);
    assert_eq!(tunnel.ask(CHAT).status, 101);
    assert_eq!(line.ask(UPGRADE).status, 200);
    idle.expect_end();
    (line, exchange, tunnel)
}

/// Regression test: an upgrade ended each exchange that outlasted `timeouts.drain`, and silent WebSockets at once.
#[test]
fn exchanges_and_tunnels_outlive_an_upgrade() {
    let switch = Switch::default();
    let upstream = chatting(&switch);
    // `drain_idle` closes the idle connections, and it is longer than `drain`.
    let (mut line, mut exchange, mut tunnel) = upgraded("drain = '50ms'\ndrain_idle = '500ms'", &upstream);
    switch.throw();
    let last = exchange.answer(Method::Get);
    assert_eq!((last.text(), last.says_close()), ("old", true));
    let mut heard = Vec::new();
    while heard.len() < "still here".len() {
        assert_eq!(tunnel.stream.receive(&mut heard), None);
    }
    assert_eq!(heard, b"still here");
    drop(tunnel);
    assert_eq!(line.weir.exit_code(), Some(0));
}

#[test]
fn a_replaced_process_ends_within_its_limit() {
    let upstream = chatting(&Switch::default());
    let (mut line, mut exchange, mut tunnel) =
        upgraded("drain_idle = '10ms'\nupgrade_drain = '300ms'", &upstream);
    assert_eq!(exchange.answer(Method::Get).status, 503);
    assert_eq!(tunnel.read_to_end(), (Vec::new(), Ending::Reset));
    assert_eq!(line.weir.exit_code(), Some(0));
    line.weir.wait_for_stderr(&["drain_timeout"]);
}

#[test]
fn a_replaced_process_that_is_told_to_stop_drains_as_usual() {
    for (drain, signals) in [("300ms", 1), ("1h", 2)] {
        let upstream = chatting(&Switch::default());
        let timeouts = format!("drain_idle = '10ms'\ndrain = '{drain}'");
        let (mut line, mut exchange, mut tunnel) = upgraded(&timeouts, &upstream);
        for _ in 0..signals {
            line.weir.terminate();
            // The tunnel is silent.
            assert_eq!(tunnel.read_to_end(), (Vec::new(), Ending::Reset));
        }
        assert_eq!(exchange.answer(Method::Get).status, 503, "{drain}");
        assert_eq!(line.weir.exit_code(), Some(0));
        assert_eq!(
            line.ask("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").status,
            200,
            "the new one goes on"
        );
    }
}
