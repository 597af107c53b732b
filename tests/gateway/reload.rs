//! Reloads under load: accepted and rejected changes.

use super::{counting, held_back, metric, named};
use crate::common::sessions::{connect, connector, resumes};
use crate::common::{Answer, Certificates, Client, DEADLINE, Over, Peer, Switch, Upstream, Weir, poll_until};
use rustix::process::Signal;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;
use weir_http::Method;
use weir_tls::Version;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A gateway and its configuration file.
pub(crate) struct Case {
    pub(crate) folder: TempDir,
    pub(crate) weir: Weir,
}

impl Case {
    pub(crate) fn new(config: &str) -> Self {
        Self::listening(config, 1)
    }

    /// Like [`Case::new`], with this many listening addresses.
    pub(crate) fn listening(config: &str, listeners: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("weir.toml");
        fs::write(&file, with_admin(config)).unwrap();
        let weir = Weir::of_file(&file, listeners);
        Self { folder, weir }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("weir.toml")
    }

    pub(super) fn write(&self, config: &str) {
        fs::write(self.file(), with_admin(config)).unwrap();
    }

    pub(super) fn reload(&self) -> Answer {
        self.weir.ask_admin("POST /reload")
    }

    /// Writes a configuration that the gateway accepts; returns the reported changes.
    pub(crate) fn take(&self, config: &str) -> String {
        self.write(config);
        let answer = self.reload();
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text().to_owned()
    }

    fn counted(&self, result: &str) -> u64 {
        metric(&self.weir, &format!("weir_reloads_total{{result=\"{result}\"}}"))
    }

    fn get(&self) -> Answer {
        Client::connect(self.weir.address(), None).ask(GET)
    }
}

pub(super) fn with_admin(config: &str) -> String {
    format!("{config}\n[admin]\nbind = '127.0.0.1:0'\n")
}

const LISTENER: &str = "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n";

fn answering(body: &str) -> String {
    format!("{LISTENER}[[route]]\nrespond = {{ status = 200, body = '{body}' }}\n")
}

fn to(service: &str, address: SocketAddr) -> String {
    format!("{LISTENER}[service.{service}]\nservers = 'http://{address}'\n[[route]]\nservice = '{service}'\n")
}

/// Replaces a file atomically by renaming.
fn replace(from: &Path, to: &Path) {
    let next = to.with_extension("next");
    fs::copy(from, &next).unwrap();
    fs::rename(next, to).unwrap();
}

#[test]
fn reloads_under_load_fail_no_request() {
    const RELOADS: usize = 100;
    let upstreams = [named("a"), named("b")];
    let certificates = [Certificates::new(), Certificates::new()];
    let files = tempfile::tempdir().unwrap();
    let [chain, key, both] = ["chain.pem", "key.pem", "both.pem"].map(|name| files.path().join(name));
    let present = |certificates: &Certificates| {
        replace(&certificates.cert, &chain);
        replace(&certificates.key, &key);
    };
    let cas = certificates.each_ref().map(|certificates| fs::read_to_string(&certificates.ca).unwrap());
    fs::write(&both, cas.concat()).unwrap();
    present(&certificates[0]);
    // The service's name changes each time.
    let config = |index: usize| {
        let name = ["a", "b"][index];
        let tls = format!(
            "tls = {{}}\n[[certificate]]\nchain = '{}'\nkey = '{}'\n",
            chain.display(),
            key.display()
        );
        to(name, upstreams[index].address)
            .replace("workers = 1", "workers = 2")
            .replace("[service", &(tls + "[service"))
    };
    let case = Case::new(&config(0));
    let address = case.weir.address();
    let (is_over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let connector = connector(&both, &[]);
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = connect(address, &connector).unwrap();
                    for _ in 0..20 {
                        let answer = client.ask(GET);
                        let text = answer.text();
                        assert!(answer.status == 200 && !answer.says_close(), "{}{text}", answer.head);
                        assert!(text.starts_with("a\n") || text.starts_with("b\n"), "{text}");
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let _over = Over(&is_over);
        let mut kept = connect(address, &connector(&certificates[0].ca, &[])).unwrap();
        for reload in 1..=RELOADS {
            let now = reload % 2;
            let before = served.load(Ordering::Relaxed);
            poll_until(DEADLINE, "requests", || served.load(Ordering::Relaxed) > before + 20);
            present(&certificates[now]);
            case.write(&config(now));
            match reload % 3 {
                0 => assert_eq!(case.reload().status, 200),
                _ => case.weir.signal(Signal::HUP),
            }
            poll_until(DEADLINE, "the reload", || case.counted("taken") == reload as u64);
            let name = ["a\n", "b\n"][now];
            assert!(kept.ask(GET).text().starts_with(name), "on a connection of before");
            // Clients without tickets, since tickets survive a change of certificates.
            let only = certificates.each_ref().map(|certificates| connector(&certificates.ca, &[]));
            let mut new = connect(address, &only[now]).expect("the certificate of now");
            assert!(new.ask(GET).text().starts_with(name));
            assert!(connect(address, &only[1 - now]).is_err(), "the certificate of before");
        }
    });
    assert_eq!((case.counted("taken"), case.counted("refused")), (RELOADS as u64, 0));
    let line = "reloaded; changed: listeners 0, certificates 1, services 2, routes 1, other settings 0";
    poll_until(DEADLINE, "a line of each", || case.weir.stderr().matches(line).count() == RELOADS);
    let stderr = case.weir.stderr();
    let early = stderr.lines().find(|line| line.contains(" 50") || line.contains("internal_error"));
    assert_eq!(early, None, "{stderr}");
    assert_eq!(case.weir.stop().code, Some(0));
}

#[test]
fn a_broken_file_keeps_the_old_and_mending_it_clears_the_metric() {
    let case = Case::new(&answering("old"));
    let stale = || metric(&case.weir, "weir_configuration_stale");
    let since = metric(&case.weir, "weir_configuration_since_seconds");
    for (index, (broken, why)) in [
        ("[[route]]\nrespond.status = ", "weir.toml:1"),
        (
            "workers = 0\n[listener.web]\nbind = '127.0.0.1:0'",
            "weir.toml:1: workers: invalid value `0`: expected at least 1",
        ),
        (
            "[listener.web]\nbind = '127.0.0.1:0'\ntls = {}",
            "weir.toml:3: listener.web.tls: a listener with TLS needs",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(case.file(), broken).unwrap();
        let checked = Weir::run(&["check", "--config", case.file().to_str().unwrap()]).stderr;
        case.weir.signal(Signal::HUP);
        poll_until(DEADLINE, "it is refused", || case.counted("refused") == index as u64 + 1);
        poll_until(DEADLINE, "its line", || case.weir.stderr().lines().count() == index + 1);
        let said = case.weir.stderr();
        let said = said.lines().last().unwrap();
        let error = said.strip_prefix("weir: reload refused: ").unwrap();
        let error = error.strip_suffix("; the configuration in use stays").unwrap();
        assert!(error.contains(why) || index == 0, "{said}");
        assert!(checked.contains(error), "{checked} is not {error}");
        assert_eq!(case.get().text(), "old");
        assert_eq!((stale(), metric(&case.weir, "weir_configuration_since_seconds")), (1, since));
    }
    case.write(&answering("new"));
    case.weir.signal(Signal::HUP);
    poll_until(DEADLINE, "it is taken", || stale() == 0);
    assert_eq!((case.counted("taken"), case.counted("refused")), (1, 3));
    assert_eq!(case.get().text(), "new");
}

#[test]
fn what_needs_a_restart_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket").display().to_string();
    let config = format!(
        "workers = 1\n[listener.web]\nbind = ['127.0.0.1:0', 'unix:{socket}']\nmode = '600'\n[[route]]\nrespond.status = 200\n"
    );
    let file = folder.path().join("weir.toml");
    fs::write(&file, with_admin(&config)).unwrap();
    let case = Case { weir: Weir::of_file(&file, 2), folder };
    let log = format!("[log]\naccess = '{}'\n", case.folder.path().join("log").display());
    for (change, expected) in [
        (
            config.replace("workers = 1", "workers = 2"),
            "1: workers: `2`, and `1` since the start: a change needs an upgrade (SIGUSR2) or a restart",
        ),
        (config.replace("workers = 1\n", ""), "weir.toml: workers: not set, and `1` since the start"),
        (format!("cores = '0'\n{config}"), "1: cores: `0`, and not set since the start"),
        (format!("{config}{log}"), "log.access: `"),
        // The listeners stay as they are, too.
        (
            config
                .replace("'127.0.0.1:0', ", "")
                .replace("'600'", "'660'")
                .replace("workers = 1", "workers = 2"),
            "1: workers: `2`, and `1` since the start",
        ),
    ] {
        case.write(&change);
        let answer = case.reload();
        assert_eq!(answer.status, 409, "{change}: {}", answer.text());
        let text = answer.text();
        assert!(text.starts_with("{\"result\":\"refused\",\"error\":") && text.contains(expected), "{text}");
    }
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(case.get().status, 200);
    let moved = with_admin(&config).replace("[admin]\nbind = '127.0.0.1:0'", "[admin]\nbind = '127.0.0.1:1'");
    fs::write(&file, moved).unwrap();
    assert!(case.reload().text().contains("admin.bind: `127.0.0.1:1`, and `127.0.0.1:0` since the start"));
    // Renaming a listener needs no new socket.
    assert!(case.take(&config.replace("[listener.web]", "[listener.other]")).contains("\"listeners\":2"));
}

#[test]
fn in_watch_mode_a_swapped_link_is_seen_and_a_half_written_file_is_not_taken() {
    let certificates = [Certificates::new(), Certificates::new()];
    let files = tempfile::tempdir().unwrap();
    // As Kubernetes mounts a secret: a symlink to a version's directory, replaced by renaming.
    let data = files.path().join("data");
    let present = |index: usize| {
        let version = files.path().join(format!("version-{index}"));
        fs::create_dir_all(&version).unwrap();
        fs::copy(&certificates[index].cert, version.join("tls.crt")).unwrap();
        fs::copy(&certificates[index].key, version.join("tls.key")).unwrap();
        let next = files.path().join("next");
        symlink(version, &next).unwrap();
        fs::rename(next, &data).unwrap();
    };
    present(0);
    let config = |body: &str| {
        let tls = format!(
            "tls = {{}}\n[[certificate]]\nchain = '{0}/tls.crt'\nkey = '{0}/tls.key'\n[[route]]",
            data.display()
        );
        format!("reload = 'watch'\n{}", answering(body).replace("[[route]]", &tls))
    };
    let case = Case::new(&config("old"));
    let address = case.weir.address();
    let only = certificates.each_ref().map(|certificates| connector(&certificates.ca, &[]));
    assert!(connect(address, &only[0]).is_ok());
    present(1);
    poll_until(DEADLINE, "the new certificate", || connect(address, &only[1]).is_ok());
    case.weir.wait_for_stderr(&["reloaded; changed: listeners 0, certificates 1, services 0, routes 0"]);
    assert_eq!(case.counted("taken"), 1);

    let whole = with_admin(&config("new"));
    fs::write(case.file(), &whole[..whole.len() / 2]).unwrap();
    poll_until(DEADLINE, "half of it is refused", || metric(&case.weir, "weir_configuration_stale") == 1);
    let body = || connect(address, &only[1]).unwrap().ask(GET).text().to_owned();
    assert_eq!(body(), "old");
    fs::write(case.file(), &whole).unwrap();
    poll_until(DEADLINE, "all of it is taken", || metric(&case.weir, "weir_configuration_stale") == 0);
    assert_eq!(body(), "new");
    assert_eq!((case.counted("taken"), case.counted("refused")), (2, 1));

    // A certificate without its key.
    fs::copy(&certificates[0].cert, data.join("tls.crt")).unwrap();
    poll_until(DEADLINE, "it is refused", || case.counted("refused") == 2);
    assert!(connect(address, &only[1]).is_ok());
    fs::copy(&certificates[0].key, data.join("tls.key")).unwrap();
    poll_until(DEADLINE, "its key has come", || connect(address, &only[0]).is_ok());
}

/// By default the gateway does not watch files.
#[test]
fn without_watching_a_change_waits_for_the_signal() {
    let case = Case::new(&answering("old"));
    case.write(&answering("new"));
    // A second gateway, which watches, has seen its change by now.
    let other = Case::new(&format!("reload = 'watch'\n{}", answering("old")));
    other.write(&format!("reload = 'watch'\n{}", answering("new")));
    poll_until(DEADLINE, "the other one", || other.get().text() == "new");
    assert_eq!((case.get().text(), case.counted("taken")), ("old", 0));
    case.weir.signal(Signal::HUP);
    poll_until(DEADLINE, "the signal", || case.get().text() == "new");
}

#[test]
fn sessions_outlive_a_reload_that_keeps_the_identity() {
    let certificates = Certificates::new();
    for (version, tls, after) in [
        (Version::Tls13, "tickets = 1", "tickets = 2"),
        (Version::Tls12, "tickets = 1", "tickets = 2"),
        // Stored sessions survive only if no TLS setting changes.
        (Version::Tls12, "tickets = 0", "tickets = 0"),
    ] {
        let config = |tls: &str, body: &str| {
            let own = format!(
                "tls = {{ {tls} }}\n[[certificate]]\nchain = '{}'\nkey = '{}'\n[[route]]",
                certificates.cert.display(),
                certificates.key.display()
            );
            answering(body).replace("[[route]]", &own)
        };
        let case = Case::new(&config(tls, "old"));
        let connector = connector(&certificates.ca, &[version]);
        assert!(!resumes(case.weir.address(), &connector));
        let issued = metric(&case.weir, "weir_tickets_issued_total");
        case.take(&config(after, "new"));
        assert!(resumes(case.weir.address(), &connector), "{version:?} {tls}");
        let now = metric(&case.weir, "weir_tickets_issued_total");
        assert!(now >= issued, "a counter goes on: {now}");
    }
}

#[test]
fn connections_to_servers_outlive_a_reload_that_does_not_change_their_service() {
    let certificates = Certificates::new();
    let upstream = Upstream::start(Some(certificates.server().core()), |peer: &mut Peer| {
        peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let config = |more: &str| {
        let tls = format!("tls.ca = '{}'\n[[route]]", certificates.ca.display());
        to("app", upstream.address).replace("http://", "https://").replace("[[route]]", &tls) + more
    };
    let case = Case::new(&config(""));
    assert_eq!(case.get().status, 200);
    let changed =
        case.take(&config("[[route]]\npath = '/other'\nrespond.status = 204\n[limits]\nbody = 1\n"));
    assert!(changed.contains("\"routes\":1,\"settings\":1"), "{changed}");
    assert_eq!((case.get().status, upstream.connections()), (200, 1));
    // Changing the CA replaces the server.
    let other = Certificates::new();
    case.take(&config("").replace(certificates.ca.to_str().unwrap(), other.ca.to_str().unwrap()));
    assert_eq!(case.get().status, 502);
}

#[test]
fn a_request_that_waits_for_a_service_that_is_gone_is_routed_anew() {
    let answer = Switch::default();
    let slow = held_back(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow");
    let next = named("next");
    let case = Case::new(&to("slow", slow.address).replace("[[route]]", "max_connections = 1\n[[route]]"));
    let mut clients = [(); 3].map(|()| Client::connect(case.weir.address(), None));
    clients[0].send(GET);
    slow.wait_for_requests(1);
    for client in &mut clients[1..] {
        client.send(GET);
    }
    poll_until(DEADLINE, "two wait", || metric(&case.weir, "weir_waiting_requests") == 2);
    case.take(&to("next", next.address));
    for client in &mut clients[1..] {
        assert!(client.answer(Method::Get).text().starts_with("next\n"));
    }
    assert_eq!(metric(&case.weir, "weir_waiting_requests"), 0);
    answer.throw();
    assert_eq!(clients[0].answer(Method::Get).text(), "slow", "what has begun goes on");
}

/// Regression test: the gateway responded with 500, since the service was gone when the body was complete.
#[test]
fn a_buffered_request_of_a_service_that_is_gone_is_routed_anew() {
    let (old, next) = (named("old"), counting());
    let buffered = |service, address| to(service, address) + "request_buffer = '64KiB'\n";
    let gone = format!("{LISTENER}[[route]]\nrespond.status = 410\n");
    for (framing, first, second) in [
        ("Content-Length: 10", "abcde", "fghij"),
        ("Transfer-Encoding: chunked", "a\r\nabcde", "fghij\r\n0\r\n\r\n"),
    ] {
        for (now, status, text) in [
            (&buffered("next", next.address), 200, Some("10")),
            (&to("next", next.address), 200, Some("10")),
            (&gone, 410, None),
        ] {
            let case = Case::new(&buffered("old", old.address));
            let mut client = Client::connect(case.weir.address(), None);
            client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n{first}"));
            // The gateway serves in order of arrival, so it has read the first part by now.
            assert_eq!(case.get().status, 200);
            case.take(now);
            client.send(second);
            let answer = client.answer(Method::Post);
            assert_eq!(answer.status, status, "{framing}: {now}");
            if let Some(text) = text {
                assert_eq!(answer.text(), text, "{framing}: {now}");
                assert_eq!(client.ask(GET).text(), "0", "the connection continues");
            }
        }
    }
}

/// To the gateway, a server with another connection limit is a new server. The old connection closes before the
/// response, and the gateway retries the request.
#[test]
fn a_request_is_sent_again_to_a_server_that_was_replaced_meanwhile() {
    let close = Switch::default();
    let awaited = close.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        let mut requests = 0;
        while peer.request().is_some() {
            requests += 1;
            if peer.index == 0 && requests == 2 {
                return awaited.wait();
            }
            peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let config = to("app", upstream.address);
    let case = Case::new(&config);
    let mut client = Client::connect(case.weir.address(), None);
    assert_eq!(client.ask(GET).text(), "ok");
    client.send(GET);
    upstream.wait_for_requests(2);
    case.take(&config.replace("[[route]]", "max_connections = 7\n[[route]]"));
    close.throw();
    assert_eq!(client.answer(Method::Get).text(), "ok");
    assert_eq!(upstream.connections(), 2);
}

#[test]
fn a_servers_limit_counts_its_connections_of_before() {
    let answer = Switch::default();
    let upstream = held_back(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let url = format!("'http://{}'", upstream.address);
    let config = to("app", upstream.address).replace("[[route]]", "max_connections = 1\n[[route]]");
    let case = Case::new(&config);
    let mut clients = [(); 2].map(|()| Client::connect(case.weir.address(), None));
    clients[0].send(GET);
    upstream.wait_for_requests(1);
    case.take(&config.replace(&url, &format!("[{{ url = {url}, weight = 2 }}]")));
    clients[1].send(GET);
    poll_until(DEADLINE, "it waits", || metric(&case.weir, "weir_waiting_requests") == 1);
    assert_eq!(upstream.connections(), 1);
    answer.throw();
    for client in &mut clients {
        assert_eq!(client.answer(Method::Get).text(), "ok");
    }
}

#[test]
fn health_checks_begin_and_end_with_a_reload() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let status = if request.head.starts_with("GET /health ") { 500 } else { 200 };
            peer.answer(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    let config = to("app", upstream.address);
    let case = Case::new(&config);
    let checked = |every: &str| {
        let health = format!("health = {{ path = '/health', every = '{every}', fall = 1 }}\n[[route]]");
        config.replace("[[route]]", &health)
    };
    assert_eq!(case.get().status, 200);
    case.take(&checked("100ms"));
    poll_until(DEADLINE, "it is down", || case.get().status == 503);
    // The health state survives a change of settings.
    case.take(&checked("1h"));
    assert_eq!(case.get().status, 503);
    let url = format!("'http://{}'", upstream.address);
    case.take(&checked("1h").replace(&url, &format!("[{{ url = {url}, weight = 2 }}]")));
    assert_eq!(case.get().status, 503, "nor does another weight make it new");
    case.take(&config);
    poll_until(DEADLINE, "it is not asked any more", || case.get().status == 200);
}

/// Services are numbered by name, so a new first one changes the number.
#[test]
fn connections_that_are_passed_on_undecrypted_follow_a_reload() {
    let certificates = Certificates::new();
    let upstream = Upstream::start(Some(certificates.server().core()), |peer: &mut Peer| {
        peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let config = |more: &str| {
        let passthrough = "passthrough = [{ name = '*', service = 'm' }]";
        format!("{LISTENER}{passthrough}\n[service.m]\nservers = 'http://{}'\n{more}", upstream.address)
    };
    let case = Case::new(&config(""));
    let connector = connector(&certificates.ca, &[]);
    let mut early = std::net::TcpStream::connect(case.weir.address()).unwrap();
    let mut hello = Vec::new();
    let mut session = connector.connect(&"127.0.0.1".parse().unwrap());
    session.receive(&mut [], &mut Vec::new(), &mut hello).unwrap();
    early.write_all(&hello[..20]).unwrap();
    poll_until(DEADLINE, "it is accepted", || metric(&case.weir, "weir_clients") == 1);
    case.take(&config("[service.a]\nservers = 'http://127.0.0.1:1'\n"));
    assert_eq!(connect(case.weir.address(), &connector).unwrap().ask(GET).text(), "ok");
    early.write_all(&hello[20..]).unwrap();
    let mut first = [0; 6];
    early.read_exact(&mut first).unwrap();
    assert_eq!((first[0], first[5]), (22, 2), "a ServerHello");
}

#[test]
fn general_settings_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let [log, page] = ["log", "page.html"].map(|name| folder.path().join(name));
    fs::write(&page, "first page").unwrap();
    let config = |format: &str, limits: &str| {
        format!(
            "{LISTENER}[[route]]\npath = '/a'\nrespond.status = 200\n[error_pages]\n404 = '{}'\n\
             [log]\naccess = '{}'\nformat = '{format}'\n{limits}",
            page.display(),
            log.display()
        )
    };
    let case = Case::new(&config("before {target}", ""));
    assert_eq!(case.get().text(), "first page");
    fs::write(&page, "second page").unwrap();
    let changed = case.take(&config("after {target}", "[limits]\nline = 300\n[buffers]\nread = 4096\n"));
    assert!(changed.contains("\"settings\":4"), "{changed}");
    assert_eq!(case.get().text(), "second page");
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(400));
    assert_eq!(Client::connect(case.weir.address(), None).ask(&long).status, 414);
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    poll_until(DEADLINE, "the log", || lines().contains("after /\n"));
    assert!(lines().starts_with("before /\n"));
}

#[test]
fn certificates_of_flags_are_read_again() {
    let certificates = [Certificates::new(), Certificates::new()];
    let upstream = named("a");
    let files = tempfile::tempdir().unwrap();
    let [chain, key] = ["chain.pem", "key.pem"].map(|name| files.path().join(name));
    let present = |certificates: &Certificates| {
        replace(&certificates.cert, &chain);
        replace(&certificates.key, &key);
    };
    present(&certificates[0]);
    let to = format!("http://{}", upstream.address);
    let [cert_flag, key_flag] = [&chain, &key].map(|path| path.to_str().unwrap());
    let weir = Weir::start(&[
        "serve",
        "--listen",
        "https://127.0.0.1:0",
        "--to",
        &to,
        "--cert",
        cert_flag,
        "--key",
        key_flag,
        "--workers",
        "1",
    ]);
    let only = certificates.each_ref().map(|certificates| connector(&certificates.ca, &[]));
    assert!(connect(weir.address(), &only[0]).is_ok());
    fs::write(&key, "nothing").unwrap();
    weir.signal(Signal::HUP);
    weir.wait_for_stderr(&["reload refused: --key: ", key_flag]);
    present(&certificates[1]);
    weir.signal(Signal::HUP);
    weir.wait_for_stderr(&["reloaded; changed: listeners 0, certificates 1"]);
    assert!(connect(weir.address(), &only[1]).is_ok());
}

/// Health checks have their own descriptors.
#[test]
fn health_checks_of_a_new_configuration_have_descriptors_too() {
    const SERVERS: usize = 5;
    let upstream = named("a");
    let servers = vec![format!("'http://{}'", upstream.address); SERVERS].join(", ");
    let config = |health: &str| {
        format!(
            "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = [{servers}]\n{health}\n\
             [[route]]\nservice = 'app'\n"
        )
    };
    let case = Case::new(&config(""));
    let open = || metric(&case.weir, "weir_descriptors{kind=\"connections_limit\"}") as usize;
    let before = open();
    case.take(&config("health.every = '1h'"));
    assert_eq!(open(), before - SERVERS);
    case.take(&config(""));
    assert_eq!(open(), before);
}
