//! Listeners that a reload adds, removes and moves.

use super::reload::Case;
use super::unix::exchange;
use super::upgrade::Line;
use super::{held_back, metric};
use crate::common::sessions::{connect, connector};
use crate::common::{
    Answer, Certificates, Client, DEADLINE, Over, Peer, Stream, Switch, Upstream, Weir, peer, poll_until,
};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const HELD: &str = "GET /held HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// The kernel repeats a dropped SYN after a second.
const CONNECT: Duration = Duration::from_millis(200);
const ANY: &str = "127.0.0.1:0";

/// A gateway of two workers with listeners of these names, addresses and further lines. Each responds to `/name` with
/// its name. All other requests go to the upstream.
fn config(upstream: &Upstream, listeners: &[(&str, &str, &str)]) -> String {
    let mut text = "workers = 2\n".to_owned();
    for (name, bind, lines) in listeners {
        text += &format!("[listener.{name}]\nbind = '{bind}'\n{lines}\n");
    }
    for (name, ..) in listeners {
        text += &format!(
            "[[route]]\nlistener = '{name}'\npath = '/name'\nrespond = {{ status = 200, body = '{name}' }}\n"
        );
    }
    text + &format!("[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n", upstream.address)
}

/// An upstream that responds to `/held` once the switch is thrown, and to others at once.
fn holding(switch: &Switch) -> Upstream {
    let switch = switch.clone();
    Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            if request.head.contains(" /held ") {
                switch.wait();
            }
            peer.answer(OK);
        }
    })
}

/// The addresses that reloads have added so far, from the log.
fn added(weir: &Weir) -> Vec<SocketAddr> {
    let stderr = weir.stderr();
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("weir: listening on "));
    lines.filter_map(|place| place.split_once("://")?.1.parse().ok()).collect()
}

/// Waits for this number of added addresses; returns the last one.
fn last_added(weir: &Weir, count: usize) -> SocketAddr {
    poll_until(DEADLINE, "a line on the new address", || added(weir).len() == count);
    added(weir)[count - 1]
}

fn wait_for_close(weir: &Weir, address: SocketAddr) {
    weir.wait_for_stderr(&["weir: no longer listening on ", &address.to_string()]);
    poll_until(DEADLINE, "the port is released", || TcpStream::connect(address).is_err());
}

fn ask(address: SocketAddr, target: &str) -> Answer {
    Client::connect(address, None).ask(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"))
}

/// A free address with a port that the system does not assign to client connections, since its range starts at 32768.
fn free() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let ports = std::iter::repeat_with(|| {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id().wrapping_mul(31));
        10_000 + (nth % 20_000) as u16
    });
    let mut addresses = ports.take(20_000).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    addresses.find(|at| TcpListener::bind(("0.0.0.0", at.port())).is_ok()).expect("a free port")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_added_listener_serves_and_a_removed_one_drains() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let web = ("web", ANY, "");
    let case = Case::new(&config(&upstream, &[web]));
    let mut kept = Client::connect(case.weir.address(), None);
    assert_eq!(kept.ask(GET).text(), "ok");
    let changes = case.take(&config(&upstream, &[web, ("more", ANY, "")]));
    assert!(changes.contains("\"listeners\":1"), "{changes}");
    let more = last_added(&case.weir, 1);
    // Enough connections for each worker to get some.
    let mut idle: Vec<_> = (0..10).map(|_| Client::connect(more, None)).collect();
    for client in &mut idle {
        assert_eq!(client.ask("GET /name HTTP/1.1\r\nHost: h\r\n\r\n").text(), "more");
    }
    let mut held: Vec<_> = (0..10).map(|_| Client::connect(more, None)).collect();
    for client in &mut held {
        client.send(HELD);
    }
    upstream.wait_for_requests(11);
    let changes = case.take(&config(&upstream, &[web]));
    assert!(changes.contains("\"listeners\":1"), "{changes}");
    wait_for_close(&case.weir, more);
    for client in &mut idle {
        client.expect_end();
    }
    assert!(!kept.ask(GET).says_close(), "the other listener goes on");
    switch.throw();
    for client in &mut held {
        let last = client.answer(Method::Get);
        assert_eq!((last.text(), last.says_close()), ("ok", true));
        client.expect_end();
    }
    let last = kept.ask("GET /name HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((last.text(), last.says_close()), ("web", false));
    poll_until(DEADLINE, "its clients are gone", || metric(&case.weir, "weir_clients") == 1);
    assert_eq!(case.weir.stop().code, Some(0));
}

#[test]
fn the_last_requests_to_a_removed_listener_end_in_time() {
    let switch = Switch::default();
    let upstream = held_back(&switch, OK);
    let limit = "[timeouts]\nupgrade_drain = '300ms'\n";
    let configured = |listeners: &[(&str, &str, &str)]| config(&upstream, listeners) + limit;
    let (web, more) = (("web", ANY, ""), ("more", "127.0.0.2:0", ""));
    let case = Case::listening(&configured(&[web, more]), 2);
    let [gone, stays] = [0, 1].map(|index| case.weir.address_of(index));
    let mut clients = [gone, stays].map(|address| Client::connect(address, None));
    for client in &mut clients {
        client.send(GET);
    }
    upstream.wait_for_requests(2);
    case.take(&configured(&[web]));
    let last = clients[0].answer(Method::Get);
    assert!(last.status == 503 && last.text().contains("drain_timeout"), "{}", last.text());
    switch.throw();
    let other = clients[1].answer(Method::Get);
    assert_eq!((other.text(), other.says_close()), ("ok", false));
}

#[test]
fn a_listener_moves() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let case = Case::new(&config(&upstream, &[("web", ANY, "")]));
    let before = case.weir.address();
    let changes = case.take(&config(&upstream, &[("web", "127.0.0.2:0", "")]));
    assert!(changes.contains("\"listeners\":1"), "{changes}");
    let now = last_added(&case.weir, 1);
    assert_eq!(ask(now, "/name").text(), "web");
    wait_for_close(&case.weir, before);
    assert_eq!(ask(now, "/").text(), "ok");
}

/// From all addresses to a single one and back: the kernel treats one as a conflict with the other.
#[test]
fn a_listener_moves_from_all_addresses_to_one_and_back() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let port = free().port();
    let [all, one] = ["0.0.0.0", "127.0.0.1"].map(|host| format!("{host}:{port}"));
    let case = Case::new(&config(&upstream, &[("web", &all, "")]));
    for (bind, is_everywhere) in [(&one, false), (&all, true)] {
        case.take(&config(&upstream, &[("web", bind, "")]));
        assert_eq!(ask(one.parse().unwrap(), "/name").text(), "web", "{bind}");
        let other = || TcpStream::connect(("127.0.0.2", port)).is_ok();
        poll_until(DEADLINE, "the other addresses", || other() == is_everywhere);
    }
}

#[test]
fn addresses_that_swap_their_listeners_stay_open() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let [one, two] = ["127.0.0.1:0", "127.0.0.2:0"];
    let swapped = [[("a", one, ""), ("b", two, "")], [("a", two, ""), ("b", one, "")]];
    let configs = swapped.map(|listeners| config(&upstream, &listeners));
    let case = Case::listening(&configs[0], 2);
    let addresses = [0, 1].map(|index| case.weir.address_of(index));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for address in addresses {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(ask(address, "/").text(), "ok", "without a gap");
                }
            });
        }
        let _over = Over(&is_over);
        for swap in 1..=20 {
            case.take(&configs[swap % 2]);
            let names = addresses.map(|address| ask(address, "/name").text().to_owned());
            assert_eq!(names, [["a", "b"], ["b", "a"]][swap % 2]);
        }
    });
    let stderr = case.weir.stderr();
    assert!(!stderr.contains("listening on"), "{stderr}");
}

#[test]
fn an_address_in_use_refuses_all_and_changes_nothing() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let other = TcpListener::bind(ANY).unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let case = Case::new(&config(&upstream, &[("web", ANY, "")]));
    let path = case.folder.path().join("socket");
    let (unix, fresh) = (format!("unix:{}", path.display()), free());
    let new = config(
        &upstream,
        &[("a", &unix, ""), ("b", &taken, ""), ("c", &fresh.to_string(), ""), ("new", "127.0.0.2:0", "")],
    );
    case.write(&new);
    let refused = case.reload();
    let pid = std::process::id();
    let line = 1 + new.lines().position(|line| line.contains(&taken)).unwrap();
    let expected = format!("weir.toml:{line}: listener.b.bind.0: {taken} is in use by process {pid} (");
    assert!(refused.status == 409 && refused.text().contains(&expected), "{expected}: {}", refused.text());
    assert!(!path.exists() && TcpStream::connect(fresh).is_err());
    assert_eq!(ask(case.weir.address(), "/name").text(), "web");
    assert!(added(&case.weir).is_empty());
    drop(other);
    case.take(&new);
    assert_eq!(ask(fresh, "/name").text(), "c");
    assert_eq!(ask(taken.parse().unwrap(), "/name").text(), "b");
    assert!(path.exists());
    wait_for_close(&case.weir, case.weir.address());
}

#[test]
fn a_unix_socket_is_added_gets_other_permissions_and_is_removed() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let web = ("web", ANY, "");
    let case = Case::new(&config(&upstream, &[web]));
    let path = case.folder.path().join("socket");
    let unix = format!("unix:{}", path.display());
    let get = || exchange(&path, "GET /name HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    for (lines, permissions) in [("mode = '600'", 0o600), ("mode = '666'", 0o666), ("", 0o660)] {
        case.take(&config(&upstream, &[web, ("local", &unix, lines)]));
        assert_eq!(mode(&path), permissions);
        assert!(get().ends_with("\r\n\r\nlocal"), "{}", get());
    }
    case.weir.wait_for_stderr(&["weir: listening on ", &unix]);
    case.take(&config(&upstream, &[web]));
    case.weir.wait_for_stderr(&["weir: no longer listening on ", &unix]);
    assert!(!path.exists());
    // Again, while the workers may still hold the previous socket.
    case.take(&config(&upstream, &[web, ("again", &unix, "")]));
    assert!(get().ends_with("\r\n\r\nagain"), "{}", get());
    assert_eq!(case.weir.stop().code, Some(0));
    assert!(!path.exists(), "the socket goes with the gateway");
}

#[test]
fn a_listener_with_tls_is_added() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let certificates = Certificates::new();
    let case = Case::new(&config(&upstream, &[("web", ANY, "")]));
    let secure = config(&upstream, &[("secure", ANY, "tls = {}"), ("web", "127.0.0.1:0", "")]);
    let [chain, key] = [&certificates.cert, &certificates.key].map(|file| file.display());
    case.take(&format!("{secure}[[certificate]]\nchain = '{chain}'\nkey = '{key}'\n"));
    // The socket is the new one: a listener uses its own.
    let address = last_added(&case.weir, 1);
    case.weir.wait_for_stderr(&["weir: listening on https://"]);
    let mut client = connect(address, &connector(&certificates.ca, &[])).unwrap();
    assert_eq!(client.ask(GET).text(), "ok");
    assert_eq!(ask(case.weir.address(), "/name").text(), "web");
}

#[test]
fn an_upgrade_hands_over_the_listeners_of_the_last_reload() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let reload = "POST /reload HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let (a, b, c) = (("a", ANY, ""), ("b", "127.0.0.2:0", ""), ("c", "127.0.0.3:0", ""));
    let line = Line::new(&config(&upstream, &[a, b]), 2);
    let [a_at, b_at] = [0, 1].map(|index| line.weir.address_of(index));
    // `a` is renamed, `b` is removed, and `c` is added.
    let renamed = ("renamed", ANY, "");
    line.write(&config(&upstream, &[renamed, c]));
    assert_eq!(line.ask(reload).status, 200);
    let c_at = last_added(&line.weir, 1);
    line.upgrade();
    assert_eq!(ask(a_at, "/name").text(), "renamed");
    assert_eq!(ask(c_at, "/name").text(), "c");
    assert!(TcpStream::connect(b_at).is_err());
    // The new process also changes its listeners at a reload.
    line.write(&config(&upstream, &[c, b]));
    assert_eq!(line.ask(reload).status, 200);
    let b_at = last_added(&line.weir, 2);
    assert_eq!(ask(b_at, "/name").text(), "b");
    assert_eq!(ask(c_at, "/name").text(), "c");
    poll_until(DEADLINE, "the port is released", || TcpStream::connect(a_at).is_err());
    line.upgrade();
    assert_eq!(ask(b_at, "/name").text(), "b");
}

#[test]
fn a_process_that_drains_keeps_its_listeners() {
    let switch = Switch::default();
    let upstream = held_back(&switch, OK);
    let web = ("web", ANY, "");
    let mut case = Case::new(&config(&upstream, &[web]));
    let mut client = Client::connect(case.weir.address(), None);
    client.send(GET);
    upstream.wait_for_requests(1);
    case.weir.terminate();
    poll_until(DEADLINE, "it drains", || case.weir.ask_admin("GET /ready").status == 503);
    let fresh = free();
    case.write(&config(&upstream, &[web, ("more", &fresh.to_string(), "")]));
    let refused = case.reload();
    let expected = "listener.more.bind.0: this process is stopping";
    assert!(refused.status == 409 && refused.text().contains(expected), "{}", refused.text());
    assert!(TcpStream::connect(fresh).is_err());
    case.take(&config(&upstream, &[("renamed", ANY, "")]));
    switch.throw();
    assert_eq!(client.answer(Method::Get).text(), "ok");
    assert_eq!(case.weir.exit_code(), Some(0));
}

/// The process cannot hand its sockets to another one, and does not need to.
#[test]
fn process_1_of_a_container_changes_its_listeners() {
    let Some(unshare) = peer("unshare") else { return };
    let own = |command: &mut Command| {
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child"]).stdin(Stdio::null());
    };
    let mut trial = Command::new(&unshare);
    own(&mut trial);
    if !trial.arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("skipped: this machine has no PID namespaces for users");
        return;
    }
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let web = ("web", ANY, "");
    let write = |listeners: &[(&str, &str, &str)]| {
        fs::write(&file, super::reload::with_admin(&config(&upstream, listeners))).unwrap();
    };
    write(&[web]);
    let mut command = Command::new(&unshare);
    own(&mut command);
    command.arg(env!("CARGO_BIN_EXE_weir")).args(["serve", "--config"]).arg(&file);
    let weir = Weir::of_command(command, None, 1);
    assert!(weir.ask_admin("POST /upgrade").text().contains("this is process 1"));
    write(&[web, ("more", "127.0.0.2:0", "")]);
    assert_eq!(weir.ask_admin("POST /reload").status, 200);
    let more = last_added(&weir, 1);
    assert_eq!(ask(more, "/name").text(), "more");
    write(&[web]);
    assert_eq!(weir.ask_admin("POST /reload").status, 200);
    wait_for_close(&weir, more);
    assert_eq!(ask(weir.address(), "/name").text(), "web");
}

#[test]
fn listeners_that_come_and_go_under_load_lose_no_request() {
    const ROUNDS: usize = 50;
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    // A client that a busy machine delays must not count as idle.
    let configured =
        |listeners: &[(&str, &str, &str)]| config(&upstream, listeners) + "[timeouts]\ndrain_idle = '20s'\n";
    // The same address each time.
    let at = free();
    let (web, bind) = (("web", ANY, ""), at.to_string());
    let configs = [configured(&[web]), configured(&[web, ("more", &bind, "")])];
    let case = Case::new(&configs[0]);
    let address = case.weir.address();
    let is_over = AtomicBool::new(false);
    let served = [const { AtomicUsize::new(0) }; 3];
    std::thread::scope(|scope| {
        let (is_over, served) = (&is_over, &served);
        let load = |index: usize, persists: bool| {
            move || {
                let mut kept = None;
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = kept.take().unwrap_or_else(|| Client::connect(address, None));
                    let answer = client.ask(GET);
                    assert_eq!((answer.status, answer.text(), answer.says_close()), (200, "ok", false));
                    served[index].fetch_add(1, Ordering::Relaxed);
                    kept = persists.then_some(client);
                }
            }
        };
        scope.spawn(load(0, true));
        scope.spawn(load(1, false));
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                // The connection is refused while the address is closed, or dropped while it drains. Once connected,
                // the request gets a response.
                let Ok(tcp) = TcpStream::connect_timeout(&at, CONNECT) else { continue };
                let answer = Client { stream: Stream::over(tcp, None).unwrap() }.ask(GET);
                assert_eq!((answer.status, answer.text()), (200, "ok"));
                served[2].fetch_add(1, Ordering::Relaxed);
            }
        });
        let _over = Over(is_over);
        for _ in 0..ROUNDS {
            case.take(&configs[1]);
            let before = served.each_ref().map(|served| served.load(Ordering::Relaxed));
            poll_until(DEADLINE, "requests of all kinds", || {
                served.iter().zip(before).all(|(served, before)| served.load(Ordering::Relaxed) > before)
            });
            case.take(&configs[0]);
        }
    });
    let answers: usize = served.iter().map(|served| served.load(Ordering::Relaxed)).sum();
    assert_eq!(upstream.requests().len(), answers, "none was lost, and none sent twice");
    assert_eq!(metric(&case.weir, "weir_reloads_total{result=\"taken\"}"), 2 * ROUNDS as u64);
    assert_eq!(metric(&case.weir, "weir_reloads_total{result=\"refused\"}"), 0);
    wait_for_close(&case.weir, at);
    assert_eq!(case.weir.stop().code, Some(0));
}
