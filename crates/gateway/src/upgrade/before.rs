//! The new process's side of an upgrade.

use super::channel::Channel;
use super::message::{FromNew, FromOld, Handed, VARIABLE, VERSION};
use crate::inherited::{Given, Inherited, Label};
use std::env;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_reactor::Listener;
use weir_reactor::listener::Hold;

/// The process that this one is to replace.
#[derive(Clone, Debug)]
pub(crate) struct Before(Arc<Channel>);

impl Before {
    /// The one that started this process; None: another one did, such as a shell. Errors: why there can be no upgrade.
    pub(crate) fn of_environment() -> Result<Option<Self>, String> {
        let Some(version) = env::var_os(VARIABLE) else { return Ok(None) };
        if version != VERSION {
            let version = version.display();
            return Err(format!(
                "{VARIABLE}: unknown version `{version}` of the hand-over: expected {VERSION}"
            ));
        }
        let channel = Channel::of_stdin();
        let channel =
            channel.map_err(|error| format!("{VARIABLE}: this is no upgrade of a gateway: {error}"))?;
        Ok(Some(Self(Arc::new(channel))))
    }

    /// Takes what it hands over. Errors: it is not what this version knows.
    pub(crate) fn receive(self) -> Result<Inherited, String> {
        self.receive_all().map_err(|error| {
            let why = format!("upgrade: what the process before hands over: {error}");
            self.fail(&why);
            why
        })
    }

    fn receive_all(&self) -> io::Result<Inherited> {
        let (mut sockets, mut settings) = (Vec::new(), Vec::new());
        loop {
            match self.0.receive()? {
                (FromOld::Sockets(handed), descriptors) if handed.len() == descriptors.len() => {
                    for (handed, descriptor) in handed.into_iter().zip(descriptors) {
                        sockets.push(given(handed, descriptor)?);
                    }
                }
                (FromOld::Servers(some), _) => settings.extend(some),
                (FromOld::End(state), _) => {
                    if state.has_secret && !weir_tls::take_secret_of_process(self.0.receive_secret()?) {
                        return Err(io::Error::other("the secret of tickets came too late"));
                    }
                    let overrides = settings.into_iter().collect();
                    return Ok(Inherited { sockets, before: Some(self.clone()), overrides, state });
                }
                (FromOld::Sockets(_) | FromOld::Go, _) => {
                    return Err(io::Error::other("a message out of turn"));
                }
            }
        }
    }

    /// Says that all is prepared, but for the sockets with these numbers, and waits until this process may begin. Errors: the one
    /// before is gone.
    pub(crate) fn take_turn(&self, left: Vec<usize>) -> io::Result<()> {
        self.0.send(&FromNew::Ready { left }, &[]).map_err(gone)?;
        match self.0.receive().map_err(gone)? {
            (FromOld::Go, _) => Ok(()),
            (FromOld::Sockets(_) | FromOld::Servers(_) | FromOld::End(_), _) => {
                Err(io::Error::other("upgrade: a message out of turn"))
            }
        }
    }

    /// Says that this process is the service from now on. Errors: the one before goes on, and this one must not accept.
    pub(crate) fn serve(&self) -> io::Result<()> {
        self.0.send(&FromNew::Serving, &[]).map_err(gone)
    }

    /// Waits, but not long, until the one before has heard it, and has told its supervisor.
    pub(crate) fn be_heard(&self) {
        // Whatever it does, this process is the service.
        let _ = self.0.wait(Instant::now() + HEARING);
    }

    /// Says why this process will not go on.
    pub(crate) fn fail(&self, why: &str) {
        // It may not want to know any more.
        let _ = self.0.send(&FromNew::Failed { why: why.chars().take(WORDS).collect() }, &[]);
    }
}

fn gone(error: io::Error) -> io::Error {
    io::Error::other(format!("upgrade: the process before does not hand over: {error}"))
}

fn given(handed: Handed, descriptor: OwnedFd) -> io::Result<Given> {
    let Handed { admin, name, place, lent, file } = handed;
    let hold = if lent { Hold::Lent } else { Hold::Own };
    let listener = Listener::inherit(descriptor, hold)?;
    let listener = match file {
        Some(file) => listener.with_file(file),
        None => listener,
    };
    Ok(Given { listener, label: Label::Handed { admin, name, place } })
}

/// It has nothing else to do at that time.
const HEARING: Duration = Duration::from_secs(5);

/// As much as an operator reads, in characters.
const WORDS: usize = 4000;
