//! A gateway with a container's privileges works as it does without confinement.

use super::file;
use crate::common::{
    Answer, Certificates, Client, DEADLINE, Peer, Upstream, Weir, copy_program, peer, poll_until,
};
use rustix::process::{Signal, getuid};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use weir_http::Method;

/// The UID of `nobody` in containers; here it owns only the test's directory.
const USER: u32 = 65_534;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A directory in which confined programs run.
pub(super) struct Confined {
    python: PathBuf,
    folder: TempDir,
    /// Whether programs run as another user that can write only to this directory.
    is_complete: bool,
}

impl Confined {
    /// `None`, with the reason on stdout, if this machine cannot confine programs.
    pub(super) fn new() -> Option<Self> {
        let python = peer("python3")?;
        if cfg!(not(target_arch = "x86_64")) {
            println!("skipped: deploy/seccomp.json is for x86-64");
            return None;
        }
        let find = "import ctypes.util, sys; sys.exit(ctypes.util.find_library('seccomp') is None)";
        if !Command::new(&python).args(["-c", find]).status().unwrap().success() {
            println!("skipped: libseccomp is missing");
            return None;
        }
        let mut own_mounts = Command::new("unshare");
        own_mounts.args(["--mount", "true"]);
        let is_complete = getuid().is_root() && own_mounts.status().is_ok_and(|status| status.success());
        if !is_complete {
            println!("partly skipped: another user and a read-only root need root, and unshare(2)");
        }
        Some(Self { python, folder: tempfile::tempdir().unwrap(), is_complete })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Copies a file into the directory.
    pub(super) fn take(&self, file: &Path, name: &str) {
        copy_program(file, &self.path(name));
    }

    /// `weir ARGS` with the confined privileges.
    pub(super) fn weir(&self, profile: &Path, args: &[&str]) -> Command {
        if self.is_complete {
            for entry in fs::read_dir(self.folder.path()).unwrap() {
                chown(entry.unwrap().path(), Some(USER), Some(USER)).unwrap();
            }
            chown(self.folder.path(), Some(USER), Some(USER)).unwrap();
        }
        let mut command = Command::new(&self.python);
        command
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/deploy/confined.py"))
            .args([profile, self.folder.path()])
            .arg(if self.is_complete { USER.to_string() } else { "-".to_owned() })
            .arg(env!("CARGO_BIN_EXE_weir"))
            .args(args);
        command
    }

    pub(super) fn admin(&self, request: &str) -> String {
        let mut stream = UnixStream::connect(self.path("admin.sock")).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

fn server(peer: &mut Peer) {
    peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

fn with_tls(weir: &Weir, index: usize, certificates: &Certificates) -> Client {
    Client::connect(weir.address_of(index), Some(certificates.session()))
}

fn is_ok(answer: &Answer) -> bool {
    answer.status == 200 && answer.text() == "ok"
}

/// Covers TLS on both sides, names, a Unix socket, the log and its rotation, reloads, the admin socket, health checks,
/// signals and a drain.
#[test]
fn the_rights_of_a_container_are_enough() {
    let Some(confined) = Confined::new() else { return };
    let certificates = Certificates::new();
    let (upstream, tls) =
        (Upstream::start(None, server), Upstream::start(Some(certificates.server().core()), server));
    confined.take(&certificates.cert, "chain.pem");
    confined.take(&certificates.key, "key.pem");
    confined.take(&certificates.ca, "ca.pem");
    let folder = confined.folder.path().display();
    // A name server that does not respond.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = |more: &str| {
        format!(
            "workers = 2\ncores = '0'\nreload = 'watch'
            [listener.secure]\nbind = '127.0.0.1:0'\ntls = {{}}
            [listener.socket]\nbind = 'unix:{folder}/weir.sock'
            [[certificate]]\nchain = '{folder}/chain.pem'\nkey = '{folder}/key.pem'
            [service.cleartext]\nservers = 'http://{}'\nhealth.every = '50ms'
            [service.secure]\nservers = 'https://localhost:{}'\ntls.ca = '{folder}/ca.pem'
            [service.socket]\nservers = 'unix:{folder}/weir.sock'
            [[route]]\npath = '/secure'\nservice = 'secure'
            [[route]]\npath = '/socket'\nservice = 'socket'\nstrip_prefix = '/socket'
            [[route]]\nservice = 'cleartext'
            [log]\naccess = '{folder}/access.log'
            [admin]\nbind = 'unix:{folder}/admin.sock'\n{more}",
            upstream.address,
            tls.address.port()
        )
    };
    let file_of = confined.path("weir.toml");
    fs::write(&file_of, config("")).unwrap();
    let place = file_of.to_str().unwrap();
    let profile = file("seccomp.json");
    let weir = Weir::of_command(confined.weir(&profile, &["serve", "--config", place]), None, 2);
    let status = fs::read_to_string(format!("/proc/{}/status", weir.pid())).unwrap();
    let has = |line: &str| status.lines().any(|found| found.split_whitespace().eq(line.split_whitespace()));
    assert!(has("NoNewPrivs: 1") && has("Seccomp: 2"), "{status}");
    if confined.is_complete {
        assert!(
            has(&format!("Uid: {USER} {USER} {USER} {USER}")) && has("CapEff: 0000000000000000"),
            "{status}"
        );
    }
    let mut client = with_tls(&weir, 0, &certificates);
    for path in ["/", "/secure", "/socket"] {
        let answer = client.ask(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(is_ok(&answer), "{path}: {}{}\n{}", answer.head, answer.text(), weir.stderr());
    }
    // Log rotation tools rename the file.
    let log = confined.path("access.log");
    fs::rename(&log, confined.path("access.log.1")).unwrap();
    poll_until(DEADLINE, "a new file", || log.exists());
    client.ask("GET /rotated HTTP/1.1\r\nHost: h\r\n\r\n");
    poll_until(DEADLINE, "a line", || fs::read_to_string(&log).unwrap().contains("/rotated"));
    // Reloads by request, by a signal and by a changed file, first to a configuration with a name that cannot be
    // resolved.
    assert!(confined.admin("POST /reload").starts_with("HTTP/1.1 200"));
    weir.signal(Signal::HUP);
    poll_until(DEADLINE, "a line of both", || weir.stderr().matches("weir: reloaded").count() == 2);
    let write = |more: &str| {
        let next = confined.path("next.toml");
        fs::write(&next, config(more)).unwrap();
        fs::rename(&next, &file_of).unwrap();
    };
    write(&format!(
        "[dns]\nservers = '{}'\ntimeout = '100ms'\n[service.lost]\nservers = 'http://no.such.test'",
        silent.local_addr().unwrap()
    ));
    weir.wait_for_stderr(&["reload refused", "cannot resolve", "no answer within 100ms"]);
    write("[timeouts]\nstall = '7s'");
    poll_until(DEADLINE, "it is taken", || weir.stderr().matches("weir: reloaded").count() == 3);
    // A server changed at run time, metrics, and the health check of the Containerfile.
    let server = format!("/services/cleartext/servers/{}", upstream.address);
    assert!(confined.admin(&format!("POST {server}?state=drain")).contains("\"drained\""));
    assert!(confined.admin(&format!("POST {server}?state=ready")).contains("\"up\""));
    assert!(confined.admin("GET /metrics").contains("weir_reloads_total{result=\"taken\"} 3"));
    let admin = format!("unix:{folder}/admin.sock");
    let mut top = confined.weir(&profile, &["top", "--once", "--every", "0.1", "--admin", &admin]);
    let shown = top.output().unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    // Stop and continue, as a debugger does: waits must resume.
    weir.signal(Signal::STOP);
    weir.signal(Signal::CONT);
    weir.signal(Signal::USR1);
    weir.wait_for_stderr(&["weir: so far: served"]);
    assert!(is_ok(&client.ask(GET)));
    // A drain lets a request in flight finish.
    let mut last = with_tls(&weir, 0, &certificates);
    last.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbo");
    poll_until(DEADLINE, "it is at the server", || upstream.received_bytes() > 0);
    poll_until(DEADLINE, "and known", || confined.admin("GET /status").contains("\"in_flight\":1"));
    weir.terminate();
    poll_until(DEADLINE, "it drains", || confined.admin("GET /ready").contains("draining"));
    last.send("dy");
    assert!(is_ok(&last.answer(Method::Post)));
    let ended = weir.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!confined.path("weir.sock").exists(), "sockets go with the gateway");
}

/// The filter is effective: if it lacks a necessary call, nothing works.
#[test]
fn what_is_not_in_the_list_does_not_pass() {
    let Some(confined) = Confined::new() else { return };
    let config = "workers = 1\n[listener.a]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n";
    fs::write(confined.path("weir.toml"), config).unwrap();
    let place = confined.path("weir.toml");
    let all = fs::read_to_string(file("seccomp.json")).unwrap();
    for (call, words) in [("listen", "Function not implemented"), ("eventfd2", "Function not implemented")] {
        let less = confined.path("less.json");
        let text = all.replace(&format!("\"{call}\", "), "");
        assert_ne!(text, all, "{call}");
        fs::write(&less, text).unwrap();
        let ended = confined.weir(&less, &["serve", "--config", place.to_str().unwrap()]).output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(
            ended.status.code() == Some(1) && stderr.contains(words),
            "{call}: {:?} {stderr}",
            ended.status
        );
    }
}
