//! A substitute for an upgrade's new process: this test program itself, in a special role.

use super::Line;
use crate::common::{DEADLINE, poll_until};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::env;
use std::fs;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio, exit};

const PART: &str = "WEIR_TEST_PART";
const FOLDER: &str = "WEIR_TEST_FOLDER";

impl Line {
    /// Makes the next program run this test in this role.
    pub(super) fn play(&self, test: &str, part: &str) {
        let (folder, program) = (self.folder.path().display(), env::current_exe().unwrap());
        for mark in ["pid", "ready", "went", "on", "said"] {
            let _ = fs::remove_file(self.file(mark));
        }
        self.replace(&format!(
            "{PART}={part} {FOLDER}='{folder}' exec '{}' {test} --exact --nocapture",
            program.display()
        ));
    }
}

/// A stand-in's resources.
pub(super) struct StandIn {
    before: OwnedFd,
    folder: PathBuf,
    /// The old process's sockets.
    sockets: Vec<OwnedFd>,
}

impl StandIn {
    /// The role of this process, if it is a stand-in.
    pub(super) fn of_process() -> Option<(String, Self)> {
        let part = env::var(PART).ok()?;
        let before = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        let stand_in = Self { before, folder: env::var_os(FOLDER)?.into(), sockets: Vec::new() };
        stand_in.mark("pid", &std::process::id().to_string());
        Some((part, stand_in))
    }

    /// Receives the state, reports ready, and waits for its turn.
    pub(super) fn take_turn(&mut self) {
        self.hear("{\"end\":");
        self.be_ready();
        self.hear("\"go\"");
    }

    pub(super) fn be_ready(&self) {
        self.say("{\"ready\":{\"left\":[]}}");
    }

    pub(super) fn say(&self, message: &str) {
        send(&self.before, message.as_bytes(), &[]);
    }

    /// Waits for a message that begins with `word`.
    pub(super) fn hear(&mut self, word: &str) {
        while !self.next().expect("the process before").starts_with(word.as_bytes()) {}
    }

    /// Reads messages until the old process closes the connection.
    pub(super) fn hear_all(&mut self) {
        while self.next().is_some() {}
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let (message, sockets) = receive(&self.before)?;
        self.sockets.extend(sockets);
        Some(message)
    }

    /// Signals the test by a file of this name.
    pub(super) fn mark(&self, name: &str, text: &str) {
        let next = self.folder.join(format!("{name}.next"));
        fs::write(&next, format!("{text}\n")).unwrap();
        fs::rename(next, self.folder.join(name)).unwrap();
    }

    pub(super) fn wait_for(&self, name: &str) {
        poll_until(DEADLINE, name, || self.folder.join(name).exists());
    }

    /// Relays between the old process and a gateway, and delays the gateway's ready message until the mark `on`.
    pub(super) fn relay(self) {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["serve", "--config"]).arg(self.folder.join("weir.toml")).stdin(Stdio::from(theirs));
        let mut weir = command.spawn().unwrap();
        // The gateway inherits the other side, which closes when the gateway exits.
        drop(command);
        self.mark("pid", &weir.id().to_string());
        for socket in [&self.before, &ours] {
            set_socket_timeout(socket, Timeout::Recv, Some(DEADLINE)).unwrap();
        }
        let mut pass = |from: &OwnedFd, to: &OwnedFd| match receive(from) {
            Some((message, sockets)) => {
                send(to, &message, &sockets);
                message
            }
            None => exit(weir.wait().unwrap().code().unwrap_or(99)),
        };
        let end = loop {
            let message = pass(&self.before, &ours);
            if message.starts_with(b"{\"end\":") {
                break String::from_utf8(message).unwrap();
            }
        };
        if end.contains("\"has_secret\":true") {
            pass(&self.before, &ours);
        }
        let Some((ready, _)) = receive(&ours) else { exit(98) };
        self.mark("ready", "");
        self.wait_for("on");
        send(&self.before, &ready, &[]);
        pass(&self.before, &ours);
        loop {
            pass(&ours, &self.before);
        }
    }
}

/// More messages than any upgrade in these tests sends.
const MOST: usize = 64;

fn receive(from: &OwnedFd) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; 64 * 1024];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(from, &mut [IoSliceMut::new(&mut bytes)], &mut beside, flags).ok()?;
    let rights = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let sockets = rights.flatten().collect();
    bytes.truncate(received.bytes);
    (received.bytes > 0).then_some((bytes, sockets))
}

fn send(to: &OwnedFd, message: &[u8], with: &[OwnedFd]) {
    let with: Vec<_> = with.iter().map(|socket| socket.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(with.is_empty() || beside.push(SendAncillaryMessage::ScmRights(&with)));
    sendmsg(to, &[IoSlice::new(message)], &mut beside, SendFlags::NOSIGNAL).unwrap();
}
