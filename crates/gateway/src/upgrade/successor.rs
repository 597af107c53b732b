//! The old process's side of an upgrade: the new process.

use super::channel::{Channel, MOST};
use super::message::{FromNew, FromOld, Handed, State, VARIABLE, VERSION};
use super::program::Program;
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use weir_tls::TICKET_SECRET_LEN;

/// The new process.
#[derive(Debug)]
pub(super) struct Successor {
    child: Child,
    channel: Channel,
    limit: Duration,
}

impl Successor {
    /// Starts it; it has to answer within `limit`. Errors: it cannot be started.
    pub(super) fn start(program: &Program, limit: Duration) -> Result<Self, String> {
        let wrong = |error: io::Error| format!("cannot start {}: {error}", program.path().display());
        let (channel, theirs) = Channel::pair().map_err(wrong)?;
        channel.limit(limit).map_err(wrong)?;
        let mut command = program.command();
        command.env(VARIABLE, VERSION).stdin(Stdio::from(theirs));
        // The sockets of systemd come along with the others.
        for variable in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            command.env_remove(variable);
        }
        let child = command.spawn().map_err(wrong)?;
        Ok(Self { child, channel, limit })
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives it all, and waits until it is prepared. Returns the numbers of the sockets that it does not take. Errors: why it
    /// is not.
    pub(super) fn prepare(
        &mut self,
        sockets: &[(Handed, OwnedFd)],
        state: State,
        secret: Option<[u8; TICKET_SECRET_LEN]>,
    ) -> Result<Vec<usize>, String> {
        match self.give(sockets, state, secret).and_then(|()| self.channel.receive()) {
            Ok((FromNew::Ready { left }, _)) => Ok(left),
            Ok((FromNew::Failed { why }, _)) => Err(why),
            Err(error) => Err(self.in_words(&error)),
        }
    }

    /// Lets it accept. Errors: it is gone.
    pub(super) fn go(&mut self) -> Result<(), String> {
        self.channel.send(&FromOld::Go, &[]).map_err(|error| self.in_words(&error))
    }

    /// Ends it, if it has not ended; returns the words for why.
    pub(super) fn end(mut self, why: String) -> String {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        why
    }

    /// Lets it go on. While this process lives, it is its child, and must not stay a zombie.
    pub(super) fn leave(mut self) {
        let waiting = thread::Builder::new().name("successor".into());
        // Without a thread, it is one until this process ends.
        let _ = waiting.spawn(move || drop(self.child.wait()));
    }

    fn give(
        &self,
        sockets: &[(Handed, OwnedFd)],
        state: State,
        secret: Option<[u8; TICKET_SECRET_LEN]>,
    ) -> io::Result<()> {
        for some in sockets.chunks(MOST) {
            let (handed, descriptors): (Vec<_>, Vec<_>) =
                some.iter().map(|(handed, socket)| (handed.clone(), socket.as_fd())).unzip();
            self.channel.send(&FromOld::Sockets(handed), &descriptors)?;
        }
        self.channel.send(&FromOld::End(state), &[])?;
        secret.map_or(Ok(()), |secret| self.channel.send_secret(&secret))
    }

    /// Why there is no answer: what has become of the process says more than the channel.
    fn in_words(&mut self, error: &io::Error) -> String {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return format!("the new process was not ready within {:?}", self.limit);
        }
        match self.exit() {
            Some(status) => format!("the new process ended before it was ready ({status})"),
            None => format!("the new process has no part in an upgrade: {error}"),
        }
    }

    /// How it has ended, if it has, or does right away.
    fn exit(&mut self) -> Option<ExitStatus> {
        let by = Instant::now() + EXIT;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < by => thread::sleep(EXIT / 100),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

/// A process whose descriptors are closed has nearly ended.
const EXIT: Duration = Duration::from_secs(1);
