//! `weir tickets`: rotated files of ticket secrets, loaded by one gateway after the other.

use super::tickets::{answering, counted};
use crate::common::sessions::{connector, resumes};
use crate::common::{Certificates, DEADLINE, Ended, Weir, poll_until};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use weir_tls::{Connector, Version};

/// A gateway with its own copy of the fleet's file.
struct Machine<'a> {
    weir: Weir,
    admin: SocketAddr,
    file: PathBuf,
    certificates: &'a Certificates,
}

impl<'a> Machine<'a> {
    fn start(certificates: &'a Certificates, file: PathBuf) -> Self {
        let (weir, admin) = answering(certificates, &format!("ticket_secrets = '{}'", file.display()));
        Self { weir, admin, file, certificates }
    }

    /// A new client with a ticket of this machine.
    fn client(&self) -> Connector {
        let client = connector(&self.certificates.ca, &[Version::Tls13]);
        assert!(!self.resumes(&client), "a new client");
        client
    }

    /// Whether the client's ticket resumes a session here. The client gets a new ticket.
    fn resumes(&self, client: &Connector) -> bool {
        resumes(self.weir.address(), client)
    }

    fn wait_for_reloads(&self, count: u64) {
        let metric = format!("weir_ticket_secrets_reloads_total{{file=\"{}\"}}", self.file.display());
        poll_until(DEADLINE, "the gateway loads the file", || counted(self.admin, &metric) == count);
    }

    fn refused(&self) -> u64 {
        counted(self.admin, "weir_tickets_refused_total{reason=\"unknown_key\"}")
    }
}

fn run(command: &str, file: &Path) -> Ended {
    Weir::run(&["tickets", command, file.to_str().unwrap()])
}

/// Replaces a file as rsync does.
fn copy(from: &Path, to: &Path) {
    let new = to.with_extension("new");
    fs::copy(from, &new).unwrap();
    fs::rename(new, to).unwrap();
}

#[test]
fn tickets_survive_rotations_that_a_machine_gets_late() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let [file, copied] = ["secrets", "copied"].map(|name| folder.path().join(name));
    assert_eq!(run("new", &file).code, Some(0));
    copy(&file, &copied);
    let early = Machine::start(&certificates, file.clone());
    let late = Machine::start(&certificates, copied.clone());
    // Per rotation: clients with a ticket from before it, one for each later use.
    let mut before: Vec<Vec<Connector>> = Vec::new();
    // Per rotation: a client with a ticket of the machine that did not have it yet.
    let mut from_late: Vec<Connector> = Vec::new();
    let mut expected_refusals = 0;
    for rotation in 1..=4 {
        before.push((0..3).map(|_| early.client()).collect());
        let secrets = fs::read_to_string(&file).unwrap();
        let Ended { code, stdout, stderr } = run("rotate", &file);
        assert!(code == Some(0) && stdout.contains("the next secret issues tickets now"), "{stdout}{stderr}");
        assert!(!secrets.lines().any(|secret| stdout.contains(secret)), "a secret in {stdout}");
        early.wait_for_reloads(rotation);

        for (issuer, other) in [(&early, &late), (&late, &early)] {
            assert!(other.resumes(&issuer.client()), "rotation {rotation}: one machine is late");
        }
        let done = before.len();
        for (age, is_known) in [(1, true), (2, true), (3, false)] {
            let Some(client) = done.checked_sub(age).and_then(|at| before[at].pop()) else { break };
            assert_eq!(early.resumes(&client), is_known, "rotation {rotation}: {age} since");
            expected_refusals += u64::from(!is_known);
        }
        if let Some(client) = from_late.last() {
            assert!(early.resumes(client), "rotation {rotation}: a late machine issued it");
        }
        from_late.push(late.client());
        assert_eq!((early.refused(), late.refused()), (expected_refusals, 0), "rotation {rotation}");

        copy(&file, &copied);
        late.wait_for_reloads(rotation);
        assert!(late.resumes(&early.client()) && early.resumes(&late.client()), "rotation {rotation}");
    }
    assert_eq!(expected_refusals, 2);
}

#[test]
fn files_that_are_not_rotated_stay_and_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let [good, link, bad, missing] = ["good", "link", "bad", "missing"].map(|name| folder.path().join(name));
    let ended = run("new", &good);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    symlink(&good, &link).unwrap();
    let secret = "ab".repeat(31);
    fs::write(&bad, &secret).unwrap();
    let content = fs::read_to_string(&good).unwrap();
    let create = format!("create it with `weir tickets new {}`", missing.display());
    for (command, file, expected_code, expected) in [
        ("new", &good, 2, "exists: expected the name of a new file"),
        ("rotate", &link, 2, "a symbolic link; name the file that it leads to"),
        ("rotate", &bad, 2, "line 1: expected at least 64 hexadecimal digits"),
        ("rotate", &missing, 1, create.as_str()),
    ] {
        let Ended { code, stdout, stderr } = run(command, file);
        assert_eq!((code, stdout.as_str()), (Some(expected_code), ""), "{stderr}");
        assert!(stderr.contains(expected) && stderr.contains(file.to_str().unwrap()), "{stderr}");
        assert!(!stderr.contains(&secret), "a secret in {stderr}");
    }
    // Another process that rotates the file holds its lock.
    let lock = fs::File::open(&good).unwrap();
    lock.lock().unwrap();
    let ended = run("rotate", &good);
    assert!(ended.code == Some(1) && ended.stderr.contains("another process rotates it"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&good).unwrap(), content);
    assert_eq!(fs::read_to_string(&bad).unwrap(), secret);
    drop(lock);
    let by_hand = folder.path().join("by-hand");
    fs::write(&by_hand, "cd".repeat(32)).unwrap();
    for expected in
        ["the first one still issues tickets; secrets 2, dropped 0", "the next secret issues tickets now"]
    {
        let Ended { code, stdout, .. } = run("rotate", &by_hand);
        assert!(code == Some(0) && stdout.contains(expected), "{stdout}");
    }
}
