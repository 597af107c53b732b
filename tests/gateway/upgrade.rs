//! Upgrades: a new process takes over the sockets of a running one.

mod stand_in;
mod state;
mod turns;

use super::reload::with_admin;
use super::unix::exchange;
use super::{held_back, named};
use crate::common::sessions::{connector, resumes};
use crate::common::{
    Answer, Certificates, Client, DEADLINE, Over, Switch, Upstream, Weir, is_gone, poll_until, script,
};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const RELOAD: &str = "POST /reload HTTP/1.1\r\nHost: localhost\r\n\r\n";
pub(super) const UPGRADE: &str = "POST /upgrade HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A gateway with its configuration file and its program, which tests can replace.
pub(super) struct Line {
    folder: TempDir,
    pub(super) weir: Weir,
}

impl Line {
    /// Starts a gateway with an admin address and this many listening addresses.
    pub(super) fn new(config: &str, listeners: usize) -> Self {
        Self::with(config, listeners, &[])
    }

    /// Like [`Line::new`], with additional environment variables.
    fn with(config: &str, listeners: usize, environment: &[(&str, &Path)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [file, program] = ["weir.toml", "weir"].map(|name| folder.path().join(name));
        fs::write(&file, with_admin(config)).unwrap();
        symlink(env!("CARGO_BIN_EXE_weir"), &program).unwrap();
        let mut command = Command::new(program);
        command.args(["serve", "--config", file.to_str().unwrap()]).stdin(Stdio::null());
        command.envs(environment.iter().copied());
        let weir = Weir::of_command(command, None, listeners);
        Self { folder, weir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, config: &str) {
        fs::write(self.file("weir.toml"), with_admin(config)).unwrap();
    }

    /// Replaces the program by a script.
    fn replace(&self, text: &str) {
        let next = self.file("next");
        script(&next, text);
        fs::rename(next, self.file("weir")).unwrap();
    }

    /// Restores the program.
    fn restore(&self) {
        let next = self.file("next");
        symlink(env!("CARGO_BIN_EXE_weir"), &next).unwrap();
        fs::rename(next, self.file("weir")).unwrap();
    }

    /// All processes so far: the first one and those of its upgrades.
    pub(super) fn pids(&self) -> Vec<Pid> {
        let first = i32::try_from(self.weir.pid()).ok().and_then(Pid::from_raw);
        first.into_iter().chain(self.weir.successors()).collect()
    }

    fn last(&self) -> Pid {
        *self.pids().last().unwrap()
    }

    /// The current admin address.
    fn admin(&self) -> SocketAddr {
        let stdout = self.weir.stdout();
        let mut places = stdout.lines().filter_map(|line| line.strip_prefix("admin on http://"));
        places.next_back().unwrap().parse().unwrap()
    }

    pub(super) fn ask(&self, request: &str) -> Answer {
        Client::connect(self.admin(), None).ask(request)
    }

    fn metric(&self, name: &str) -> u64 {
        let metrics = self.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let line = metrics.text().lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        line.unwrap_or_else(|| panic!("no {name} in {}", metrics.text()))
    }

    /// The counters of results `taken` and `refused`.
    fn counts(&self) -> [u64; 2] {
        ["taken", "refused"].map(|result| self.metric(&format!("weir_upgrades_total{{result=\"{result}\"}}")))
    }

    /// Upgrades, and waits until the old process has exited.
    pub(super) fn upgrade(&self) {
        let before = self.pids();
        let answer = self.ask(UPGRADE);
        assert_eq!(answer.status, 200, "{}", answer.text());
        poll_until(DEADLINE, "it is said", || self.pids().len() > before.len());
        let pid = self.last().as_raw_nonzero();
        assert_eq!(answer.text(), format!("{{\"result\":\"taken\",\"pid\":{pid}}}\n"));
        poll_until(DEADLINE, "the one before is gone", || is_gone(*before.last().unwrap()));
    }

    /// Expects an upgrade to fail for this reason.
    fn fails(&self, why: &str) {
        let last = self.last();
        let answer = self.ask(UPGRADE);
        let text = answer.text();
        assert!(text.starts_with("{\"result\":\"refused\",\"error\":\""), "{text}");
        assert!(answer.status == 409 && text.contains(why), "{why}: {text}");
        self.weir.wait_for_stderr(&["weir: upgrade refused: ", why, "; this process goes on"]);
        assert!(self.last() == last && !is_gone(last));
    }

    fn get(&self) -> Answer {
        Client::connect(self.weir.address(), None).ask(GET)
    }

    /// Stops the current process, and waits until it has exited.
    pub(super) fn stop(&self) {
        kill_process(self.last(), Signal::TERM).unwrap();
        poll_until(DEADLINE, "the last one ends", || is_gone(self.last()));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The owner kills the first process. An error means that a process has already exited.
        for pid in self.weir.successors() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

pub(super) fn answering(body: &str) -> String {
    format!(
        "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond = {{ status = 200, body = '{body}' }}\n"
    )
}

pub(super) fn to(upstream: &Upstream, workers: usize) -> String {
    format!(
        "workers = {workers}\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n",
        upstream.address
    )
}

/// The number of a process's threads whose names begin like this.
fn threads(pid: Pid, name: &str) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|found| found.starts_with(name)).count()
}

/// Rule 24: an upgrade loses no connection in the accept queues.
#[test]
fn upgrades_under_load_fail_no_request() {
    const UPGRADES: usize = 20;
    let (upstream, certificates) = (named("a"), Certificates::new());
    // A client that a busy machine delays must not count as idle.
    let config = format!(
        "{}[timeouts]\ndrain_idle = '20s'\n[listener.secure]\nbind = '127.0.0.1:0'\ntls = {{}}\n\
         [[certificate]]\nchain = '{}'\nkey = '{}'\n",
        to(&upstream, 2),
        certificates.cert.display(),
        certificates.key.display()
    );
    let line = Line::new(&config, 2);
    let (secure, address) = (line.weir.address_of(0), line.weir.address_of(1));
    let admin = line.admin();
    let is_over = AtomicBool::new(false);
    // On keep-alive connections, on new ones, on keep-alive ones with TLS, and at the admin address.
    let served = [const { AtomicUsize::new(0) }; 4];
    std::thread::scope(|scope| {
        let load = |index: usize, persists: bool, is_secure: bool| {
            let (is_over, served, certificates) = (&is_over, &served[index], &certificates);
            let connect = move || match is_secure {
                true => Client::connect(secure, Some(certificates.session())),
                false => Client::connect(address, None),
            };
            move || {
                let mut kept = None;
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = kept.take().unwrap_or_else(connect);
                    let answer = client.ask(GET);
                    assert!(answer.status == 200 && answer.complete, "{}", answer.head);
                    assert!(answer.text().starts_with("a\n"));
                    served.fetch_add(1, Ordering::Relaxed);
                    kept = (persists && !answer.says_close()).then_some(client);
                }
            }
        };
        for _ in 0..2 {
            scope.spawn(load(0, true, false));
            scope.spawn(load(1, false, false));
        }
        scope.spawn(load(2, true, true));
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let answer =
                    Client::connect(admin, None).ask("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
                assert_eq!((answer.status, answer.text()), (200, "ready\n"));
                served[3].fetch_add(1, Ordering::Relaxed);
            }
        });
        // If one of the upgrades fails, the threads stop too.
        let over = Over(&is_over);
        for upgrades in 1..=UPGRADES {
            let before = served.each_ref().map(|served| served.load(Ordering::Relaxed));
            poll_until(DEADLINE, "requests of all kinds", || {
                served.iter().zip(before).all(|(served, before)| served.load(Ordering::Relaxed) > before + 5)
            });
            if upgrades % 2 == 0 {
                let last = line.last();
                kill_process(last, Signal::USR2).unwrap();
                poll_until(DEADLINE, "the upgrade", || line.pids().len() > upgrades);
                poll_until(DEADLINE, "the one before is gone", || is_gone(last));
            } else {
                line.upgrade();
            }
        }
        drop(over);
    });
    let answers: usize = served[..3].iter().map(|served| served.load(Ordering::Relaxed)).sum();
    assert_eq!(upstream.requests().len(), answers, "none was lost, and none sent twice");
    assert_eq!(line.pids().len(), 1 + UPGRADES);
    assert_eq!(line.counts(), [UPGRADES as u64, 0]);
    line.stop();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_process_whose_successor_fails_goes_on() {
    let config = answering("old");
    let mut line = Line::new(&config, 1);
    let upgrade_within = |time: &str| format!("{config}[timeouts]\nupgrade = '{time}'\n");
    let mut kept = Client::connect(line.weir.address(), None);
    line.write(&config.replace("respond", "resopnd"));
    line.fails("weir.toml:4: route.0.resopnd: unknown field `resopnd`");
    line.write(&config);
    line.replace("exit 1");
    line.fails("the new process ended before it was ready (exit status: 1)");
    line.replace("exec 0</dev/null; exec tail -f /dev/null");
    line.fails("the new process has no part in an upgrade");
    fs::remove_file(line.file("weir")).unwrap();
    line.fails(&format!("cannot start {}: No such file", line.file("weir").display()));
    // The running process's timeout applies.
    line.replace("exec tail -f /dev/null");
    line.write(&upgrade_within("200ms"));
    assert_eq!(line.ask(RELOAD).status, 200);
    line.fails("the new process was not ready within 200ms");
    assert_eq!(kept.ask(GET).text(), "old");
    assert_eq!(line.get().text(), "old");
    assert_eq!(line.counts(), [0, 5]);
    // A longer timeout, which a busy machine may need.
    line.write(&config);
    assert_eq!(line.ask(RELOAD).status, 200);
    line.restore();
    line.write(&answering("new"));
    line.upgrade();
    assert_eq!(line.get().text(), "new");
    assert_eq!(line.counts(), [1, 5], "the count goes on");
    assert_eq!(line.weir.exit_code(), Some(0));
}

#[test]
fn while_an_upgrade_goes_on_there_is_no_other_and_the_process_can_be_stopped() {
    let mut line = Line::new(&answering("old"), 1);
    line.replace(&format!(
        "echo $$ > {0}.next; mv {0}.next {0}; exec tail -f /dev/null",
        line.file("pid").display()
    ));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| line.ask(UPGRADE));
        let pid = || crate::common::pid_in(&fs::read_to_string(line.file("pid")).ok()?);
        poll_until(DEADLINE, "the new process", || pid().is_some());
        let second = line.ask(UPGRADE);
        assert_eq!(second.text(), "{\"result\":\"refused\",\"error\":\"an upgrade is going on\"}\n");
        line.weir.signal(Signal::USR2);
        line.weir.wait_for_stderr(&["weir: upgrade refused: an upgrade is going on"]);
        assert_eq!(line.get().text(), "old");
        line.weir.terminate();
        let first = first.join().unwrap();
        assert_eq!(
            (first.status, first.text()),
            (409, "{\"result\":\"refused\",\"error\":\"this process is stopping\"}\n")
        );
        poll_until(DEADLINE, "the new process ends", || is_gone(pid().unwrap()));
    });
    assert_eq!(line.weir.exit_code(), Some(0));
    assert!(TcpStream::connect(line.weir.address()).is_err(), "the port is released");
}

#[test]
fn requests_in_progress_finish_in_the_old_process_which_does_nothing_else() {
    let answer = Switch::default();
    let upstream = held_back(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold");
    let mut line = Line::new(&to(&upstream, 1), 1);
    let mut client = Client::connect(line.weir.address(), None);
    client.send(GET);
    upstream.wait_for_requests(1);
    line.write(&answering("new"));
    assert_eq!(line.ask(UPGRADE).status, 200);
    poll_until(DEADLINE, "its line", || line.pids().len() == 2);
    let pid = line.last().as_raw_nonzero();
    assert_ne!(pid.get().unsigned_abs(), line.weir.pid());
    for (signal, refused) in [
        (Signal::USR2, format!("weir: upgrade refused: process {pid} has taken this one's place already")),
        (Signal::HUP, format!("weir: reload refused: process {pid} has taken this one's place")),
    ] {
        line.weir.signal(signal);
        line.weir.wait_for_stderr(&[&refused]);
    }
    // The old process drains already, and now has less time.
    line.weir.terminate();
    for _ in 0..20 {
        assert_eq!(line.get().text(), "new");
    }
    answer.throw();
    let last = client.answer(Method::Get);
    assert_eq!((last.text(), last.says_close()), ("old", true));
    assert_eq!(line.weir.exit_code(), Some(0));
    assert_eq!(line.get().text(), "new");
}

#[test]
fn a_process_that_drains_refuses_an_upgrade() {
    let answer = Switch::default();
    let upstream = held_back(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold");
    let mut line = Line::new(&to(&upstream, 1), 1);
    let mut client = Client::connect(line.weir.address(), None);
    client.send(GET);
    upstream.wait_for_requests(1);
    line.weir.terminate();
    line.weir.signal(Signal::USR2);
    line.weir.wait_for_stderr(&["weir: upgrade refused: this process is stopping"]);
    assert_eq!(line.ask(UPGRADE).status, 409);
    answer.throw();
    assert_eq!(client.answer(Method::Get).text(), "old");
    assert_eq!(line.weir.exit_code(), Some(0));
}

/// Each socket of a reuseport group has its own queue, and some worker must accept from each.
#[test]
fn the_number_of_workers_may_change() {
    let upstream = named("a");
    let line = Line::new(&to(&upstream, 1), 1);
    for count in [2, 3, 1, 2] {
        line.write(&to(&upstream, count));
        line.upgrade();
        assert_eq!(threads(line.last(), "worker-"), count);
        assert_eq!(line.ask(RELOAD).status, 200);
        for _ in 0..50 {
            assert_eq!(line.get().status, 200);
        }
    }
    // That is 25 connections for each of two workers, twice.
    assert_eq!(line.metric("weir_connections_total"), 50);
}

#[test]
fn an_upgrade_changes_what_a_reload_cannot() {
    let config = |binds: &str, more: &str| {
        format!("[listener.web]\nbind = [{binds}]\n[[route]]\nrespond.status = 200\n{more}")
    };
    let mut line = Line::new(&config("'127.0.0.1:0', '127.0.0.2:0'", ""), 2);
    let addresses = [0, 1].map(|index| line.weir.address_of(index));
    let log = line.file("access.log");
    line.write(&config("'127.0.0.1:0', '127.0.0.3:0'", &format!("[log]\naccess = '{}'\n", log.display())));
    let first = line.admin();
    line.upgrade();
    assert_eq!(line.admin(), first, "the admin address is handed over");
    let stdout = line.weir.stdout();
    let places: Vec<_> =
        stdout.lines().filter_map(|line| line.strip_prefix("listening on http://")).collect();
    assert_eq!(places.len(), 4, "{stdout}");
    assert_eq!(places[2], addresses[0].to_string(), "the same socket");
    assert!(TcpStream::connect(addresses[1]).is_err(), "an address that is gone");
    for address in &places[2..] {
        assert_eq!(Client::connect(address.parse().unwrap(), None).ask(GET).status, 200);
    }
    poll_until(DEADLINE, "the log", || fs::read_to_string(&log).is_ok_and(|log| log.lines().count() == 2));
    // Another admin address, and then none.
    let moved = with_admin(&config("'127.0.0.1:0'", ""))
        .replace("[admin]\nbind = '127.0.0.1:0'", "[admin]\nbind = '127.0.0.2:0'");
    fs::write(line.file("weir.toml"), moved).unwrap();
    line.upgrade();
    assert!(line.admin() != first && TcpStream::connect(first).is_err());
    assert_eq!(line.counts(), [2, 0]);
    fs::write(line.file("weir.toml"), config("'127.0.0.1:0'", "")).unwrap();
    let last = line.admin();
    line.upgrade();
    assert!(TcpStream::connect(last).is_err());
    assert_eq!(line.get().status, 200);
    assert_eq!(line.weir.exit_code(), Some(0));
}

#[test]
fn a_unix_socket_is_handed_over_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.sock");
    let config = |mode: &str| {
        format!(
            "workers = 2\n[listener.web]\nbind = ['unix:{}', '127.0.0.1:0']\nmode = '{mode}'\n[[route]]\nrespond.status = 200\n",
            path.display()
        )
    };
    let line = Line::new(&config("600"), 2);
    let ask = || exchange(&path, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(ask().starts_with("HTTP/1.1 200 "));
    line.write(&config("660").replace("workers = 2", "workers = 1"));
    line.replace("exit 1");
    line.fails("exit status: 1");
    assert!(ask().starts_with("HTTP/1.1 200 "), "a failure leaves the file");
    line.restore();
    for _ in 0..2 {
        line.upgrade();
        assert!(ask().starts_with("HTTP/1.1 200 "));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    }
    line.stop();
    assert!(!path.exists(), "it goes with the last one");
}

/// The ticket secret survives, and so does the key derived from it and the certificates.
#[test]
fn sessions_survive_an_upgrade() {
    let certificates = Certificates::new();
    let config = format!(
        "[listener.web]\nbind = '127.0.0.1:0'\ntls = {{}}\n[[certificate]]\nchain = '{}'\nkey = '{}'\n[[route]]\nrespond.status = 200\n",
        certificates.cert.display(),
        certificates.key.display()
    );
    let line = Line::new(&config, 1);
    let connector = connector(&certificates.ca, &[]);
    assert!(!resumes(line.weir.address(), &connector));
    for _ in 0..2 {
        line.upgrade();
        assert!(resumes(line.weir.address(), &connector));
    }
    let pid = line.last().as_raw_nonzero();
    for file in ["environ", "cmdline"] {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
        assert!(!text.to_lowercase().contains("secret"), "{text}");
    }
}

#[test]
fn a_gateway_of_flags_is_upgraded_too() {
    let upstream = named("a");
    let to = format!("http://{}", upstream.address);
    let mut weir = Weir::start(&[
        "serve",
        "--listen",
        "http://127.0.0.1:0",
        "--listen",
        "http://127.0.0.1:0",
        "--to",
        &to,
    ]);
    let addresses = [0, 1].map(|index| weir.address_of(index));
    weir.signal(Signal::USR2);
    weir.wait_for_stderr(&["weir: upgraded; process ", " goes on, and this one drains"]);
    assert_eq!(weir.exit_code(), Some(0));
    for address in addresses {
        assert_eq!(Client::connect(address, None).ask(GET).status, 200);
    }
    let stderr = weir.stderr();
    let pid = stderr.split(' ').nth(3).unwrap().parse().ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    poll_until(DEADLINE, "it ends", || is_gone(pid));
}

#[test]
fn what_an_unknown_version_hands_over_is_refused() {
    let run = |version: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["serve", "--listen", "http://127.0.0.1:0", "--to", "http://127.0.0.1:1"]);
        let ended = command.env("WEIR_UPGRADE", version).stdin(Stdio::null()).output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    };
    let (code, words) = run("5");
    assert!(code == Some(1) && words.contains("unknown version `5` of the hand-over: expected 4"), "{words}");
    let (code, words) = run("4");
    assert!(code == Some(1) && words.contains("this is no upgrade of a gateway"), "{words}");
}
