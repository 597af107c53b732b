//! Upgrades in place of gateways with the privileges of the systemd unit and of a container.

use super::confined::Confined;
use super::unit::calls;
use super::{allowed, file};
use crate::common::{Certificates, Client, DEADLINE, Weir, is_gone, peer, poll_until};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// The calls of systemd's `@process` that Rust's and the kernel's ways to start, signal and await a process may need.
/// The test's filter allows no others of this group, so it is narrower than the unit's.
const OF_PROCESS: [&str; 9] =
    ["clone", "clone3", "kill", "pidfd_open", "pidfd_send_signal", "prctl", "vfork", "wait4", "waitid"];

/// The unit's system calls, without those that systemd adds, as a profile for confined.py.
fn profile(confined: &Confined) -> PathBuf {
    let (group, upgrade) = calls();
    assert_eq!(group, "@process");
    let mut names = allowed();
    names.extend(upgrade.into_iter().chain(OF_PROCESS.map(str::to_owned)));
    names.sort_unstable();
    names.dedup();
    let profile = json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 38,
        "syscalls": [{ "names": names, "action": "SCMP_ACT_ALLOW" }],
    });
    let place = confined.path("unit.json");
    fs::write(&place, profile.to_string()).unwrap();
    place
}

/// Kills the processes that have replaced the gateway, if a test fails.
struct Upgraded(Weir);

impl Drop for Upgraded {
    fn drop(&mut self) {
        for pid in self.0.successors() {
            // An error means that the process has exited.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Starts a gateway with only these system calls: with TLS, a Unix socket, the log and the admin socket.
fn start(confined: &Confined, profile: &Path, certificates: &Certificates) -> Weir {
    confined.take(&certificates.cert, "chain.pem");
    confined.take(&certificates.key, "key.pem");
    write(confined, "old");
    let place = confined.path("weir.toml");
    Weir::of_command(confined.weir(profile, &["serve", "--config", place.to_str().unwrap()]), None, 2)
}

fn write(confined: &Confined, body: &str) {
    let folder = confined.path("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let config = format!(
        "workers = 2
        [listener.secure]\nbind = '127.0.0.1:0'\ntls = {{}}
        [listener.socket]\nbind = 'unix:{folder}/weir.sock'\nmode = '660'
        [[certificate]]\nchain = '{folder}/chain.pem'\nkey = '{folder}/key.pem'
        [[route]]\nrespond = {{ status = 200, body = '{body}' }}
        [log]\naccess = '{folder}/access.log'
        [admin]\nbind = 'unix:{folder}/admin.sock'\n"
    );
    fs::write(confined.path("weir.toml"), config).unwrap();
}

fn get(weir: &Weir, certificates: &Certificates) -> String {
    let answer = Client::connect(weir.address(), Some(certificates.session())).ask(GET);
    assert_eq!(answer.status, 200);
    answer.text().to_owned()
}

#[test]
fn the_calls_of_the_unit_are_enough_for_an_upgrade() {
    let Some(confined) = Confined::new() else { return };
    let certificates = Certificates::new();
    let profile = profile(&confined);
    let mut upgraded = Upgraded(start(&confined, &profile, &certificates));
    let weir = &mut upgraded.0;
    // An upgrade that fails: the old process waits for the new one to exit.
    fs::write(confined.path("weir.toml"), "nonsense").unwrap();
    weir.signal(Signal::USR2);
    weir.wait_for_stderr(&["weir: upgrade refused: ", "weir.toml:1", "; this process goes on"]);
    assert_eq!(get(weir, &certificates), "old");
    write(&confined, "new");
    weir.signal(Signal::USR2);
    poll_until(DEADLINE, "an upgrade", || weir.successors().len() == 1);
    assert_eq!(weir.exit_code(), Some(0), "{}", weir.stderr());
    assert_eq!(get(weir, &certificates), "new");
    // The new process has the same privileges.
    write(&confined, "newer");
    assert!(confined.admin("POST /upgrade").starts_with("HTTP/1.1 200"), "{}", weir.stderr());
    poll_until(DEADLINE, "another one", || weir.successors().len() == 2);
    let pids = weir.successors();
    poll_until(DEADLINE, "it is gone", || is_gone(pids[0]));
    let status = fs::read_to_string(format!("/proc/{}/status", pids[1].as_raw_nonzero())).unwrap();
    assert!(status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"])), "{status}");
    assert_eq!(get(weir, &certificates), "newer");
    assert!(confined.admin("GET /ready").ends_with("\r\n\r\nready\n"));
    kill_process(pids[1], Signal::TERM).unwrap();
    poll_until(DEADLINE, "it ends", || is_gone(pids[1]));
    assert!(!confined.path("weir.sock").exists(), "sockets go with the gateway");
}

#[test]
fn an_upgrade_in_a_container_is_refused_and_loses_nothing() {
    let Some(confined) = Confined::new() else { return };
    let certificates = Certificates::new();
    let weir = start(&confined, &file("seccomp.json"), &certificates);
    weir.signal(Signal::USR2);
    weir.wait_for_stderr(&["weir: upgrade refused: cannot start ", "Function not implemented", "goes on"]);
    assert_eq!(get(&weir, &certificates), "old");
    assert_eq!(weir.stop().code, Some(0));
}

#[test]
fn systemds_group_has_the_calls_that_an_upgrade_needs_of_it() {
    let Some(analyze) = peer("systemd-analyze") else { return };
    let listed = Command::new(analyze).args(["--no-pager", "syscall-filter", "@process"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout);
    for call in OF_PROCESS {
        assert!(listed.lines().any(|line| line.trim() == call), "{call}: {listed}");
    }
}
