//! The old process's side of an upgrade: starts the new process and hands over to it.

use super::certificates;
use super::channel::{Channel, MOST};
use super::message::{FromNew, FromOld, Handed, State, VARIABLE, VERSION};
use super::program::Program;
use crate::config::{EndpointLists, Overrides, SetCertificates};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use weir_tls::TICKET_SECRET_LEN;

/// The new process of an upgrade, as its parent manages it.
#[derive(Debug)]
pub(super) struct NewProcess {
    child: Child,
    line: Arc<Line>,
    limit: Duration,
    /// The deadline: `limit` after the start of the process.
    until: Instant,
    is_ready: bool,
}

/// The channel to the new process and a handle on the process, for the thread that decides whether it serves.
#[derive(Debug)]
pub(super) struct Line {
    channel: Channel,
    /// A pidfd, which, unlike a PID, never refers to another process.
    process: OwnedFd,
    id: u32,
}

pub(super) struct Handover<'a> {
    pub sockets: Vec<(Handed, OwnedFd)>,
    pub endpoints: &'a EndpointLists,
    pub certificates: &'a SetCertificates,
    pub overrides: &'a Overrides,
    pub state: State,
    pub secret: Option<[u8; TICKET_SECRET_LEN]>,
}

#[derive(Debug)]
pub(super) enum Failure {
    Said(String),
    Silent(io::Error),
}

impl NewProcess {
    /// Starts the process, which must serve within `limit`. Errors: it cannot be started.
    pub(super) fn start(program: &Program, limit: Duration) -> Result<Self, String> {
        let wrong = |error: io::Error| format!("cannot start {}: {error}", program.path().display());
        let until = Instant::now() + limit;
        let (channel, theirs) = Channel::pair().map_err(wrong)?;
        let mut command = program.command();
        command.env(VARIABLE, VERSION).stdin(Stdio::from(theirs));
        // The new process gets systemd's sockets through the channel, not from the environment.
        for variable in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            command.env_remove(variable);
        }
        let mut child = command.spawn().map_err(wrong)?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(process) => {
                let line = Arc::new(Line { channel: channel.until(until), process, id: child.id() });
                Ok(Self { child, line, limit, until, is_ready: false })
            }
            Err(error) => {
                end(&mut child);
                Err(wrong(error.into()))
            }
        }
    }

    pub(super) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// Hands everything over, and waits until the process is ready. Returns the numbers of the sockets that it does not
    /// take over. Errors: the reason why it is not ready.
    pub(super) fn prepare(&mut self, handover: &Handover<'_>) -> Result<Vec<usize>, Failure> {
        self.line.give(handover).map_err(Failure::Silent)?;
        match self.line.channel.receive() {
            Ok((FromNew::Ready { left }, _)) => {
                self.is_ready = true;
                Ok(left)
            }
            Ok((word, _)) => Err(word.into()),
            Err(error) => Err(Failure::Silent(error)),
        }
    }

    /// Waits for the next message or the limit; [`Line::last_word`] then returns whether the process serves.
    pub(super) fn wait(&self) {
        // An error means that the limit was reached; without a message, `last_word` then fails.
        let _ = self.line.channel.wait(self.until);
    }

    /// Kills the process if it still runs, and returns the reason for the failure as a message.
    pub(super) fn end(mut self, why: Failure) -> String {
        let why = self.in_words(why);
        end(&mut self.child);
        why
    }

    /// Lets the process continue. It remains a child of this one, which reaps it.
    pub(super) fn leave(mut self) {
        let waiting = thread::Builder::new().name("successor".into());
        // If the thread cannot start, the process may stay a zombie until this one exits.
        let _ = waiting.spawn(move || drop(self.child.wait()));
    }

    /// Describes the failure: the exit status explains more than the channel's error.
    fn in_words(&mut self, why: Failure) -> String {
        let error = match why {
            Failure::Said(why) => return why,
            Failure::Silent(error) => error,
        };
        let step = if self.is_ready { "served" } else { "was ready" };
        let is_late = Instant::now() >= self.until;
        match self.exit(if is_late { Duration::ZERO } else { EXIT }) {
            Some(status) => format!("the new process ended before it {step} ({status})"),
            None if is_late => {
                let step = if self.is_ready { "did not serve" } else { "was not ready" };
                format!("the new process {step} within {:?}", self.limit)
            }
            None => format!("the new process has no part in an upgrade: {error}"),
        }
    }

    /// The exit status, if the process exits within this time.
    fn exit(&mut self, within: Duration) -> Option<ExitStatus> {
        let by = Instant::now() + within;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < by => thread::sleep(EXIT / 100),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

impl Line {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Lets the process begin. Errors: it has exited.
    pub(super) fn go(&self) -> io::Result<()> {
        self.channel.send(&FromOld::Go, &[])
    }

    /// Takes the last message, which should report that the process serves. From now on the process can send no more
    /// messages. Errors: it has not reported that it serves, and will exit.
    pub(super) fn last_word(&self) -> Result<(), Failure> {
        match self.channel.last() {
            Ok((FromNew::Serving, _)) => Ok(()),
            Ok((word, _)) => Err(word.into()),
            Err(error) => Err(Failure::Silent(error)),
        }
    }

    /// Closes the sending side of the channel, so that [`OldProcess::be_heard`](super::OldProcess::be_heard) returns.
    pub(super) fn close(&self) {
        self.channel.close();
    }

    /// Kills the process, so that it cannot serve later.
    pub(super) fn kill(&self) {
        // An error means that the process has exited.
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }

    fn give(&self, handover: &Handover<'_>) -> io::Result<()> {
        let Handover { sockets, endpoints, certificates, overrides, state, secret } = handover;
        for some in sockets.chunks(MOST) {
            let (handed, descriptors): (Vec<_>, Vec<_>) =
                some.iter().map(|(handed, socket)| (handed.clone(), socket.as_fd())).unzip();
            self.channel.send(&FromOld::Sockets(handed), &descriptors)?;
        }
        for (service, endpoints) in *endpoints {
            for part in endpoints.parts(MOST) {
                let service = service.clone();
                self.channel.send(&FromOld::Endpoints { service, part }, &[])?;
            }
        }
        for (name, served) in *certificates {
            certificates::send(&self.channel, name, served)?;
        }
        for some in overrides.settings().chunks(MOST) {
            self.channel.send(&FromOld::Servers(some.to_vec()), &[])?;
        }
        self.channel.send(&FromOld::End(*state), &[])?;
        secret.map_or(Ok(()), |secret| self.channel.send_secret(&secret))
    }
}

impl From<FromNew> for Failure {
    /// The failure for a message other than the expected one.
    fn from(word: FromNew) -> Self {
        match word {
            FromNew::Failed { why } => Self::Said(why),
            FromNew::Ready { .. } | FromNew::Serving => {
                Self::Silent(io::Error::other("a message out of turn"))
            }
        }
    }
}

fn end(child: &mut Child) {
    // The process may have exited already.
    let _ = child.kill();
    let _ = child.wait();
}

/// The time in which a process that has closed its channel should exit.
const EXIT: Duration = Duration::from_secs(1);
