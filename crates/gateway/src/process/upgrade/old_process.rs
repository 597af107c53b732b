//! The new process's side of an upgrade: takes over from the old process.

use super::certificates;
use super::channel::Channel;
use super::message::{FromNew, FromOld, Handed, State, VARIABLE, VERSION};
use crate::config::{EndpointLists, Endpoints, Overrides, SetCertificates};
use crate::process::sockets::{Given, Label};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::env;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_reactor::Listener;
use weir_reactor::listener::Hold;

#[derive(Clone, Debug)]
pub(crate) struct OldProcess(Arc<Channel>);

#[derive(Debug)]
pub(crate) struct Received {
    pub sockets: Vec<Given>,
    pub endpoints: EndpointLists,
    pub certificates: SetCertificates,
    pub overrides: Overrides,
    pub state: State,
}

impl OldProcess {
    /// The gateway that started this process for an upgrade; `None` if another program did, such as a shell. Errors:
    /// the reason why an upgrade is impossible.
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

    /// Receives everything that the old process hands over. Errors: the old process has exited, or this version does
    /// not accept a message.
    pub(crate) fn receive(&self) -> Result<Received, String> {
        self.receive_all().map_err(|error| {
            let why = format!("upgrade: what the process before hands over: {error}");
            self.fail(&why);
            why
        })
    }

    fn receive_all(&self) -> io::Result<Received> {
        let (mut sockets, mut settings) = (Vec::new(), Vec::new());
        let mut lists: BTreeMap<String, Endpoints> = BTreeMap::new();
        let mut set = SetCertificates::new();
        loop {
            match self.0.receive()? {
                (FromOld::Sockets(handed), descriptors) if handed.len() == descriptors.len() => {
                    for (handed, descriptor) in handed.into_iter().zip(descriptors) {
                        sockets.push(given(handed, descriptor)?);
                    }
                }
                (FromOld::Servers(some), _) => settings.extend(some),
                (FromOld::Endpoints { service, part }, _) => match lists.entry(service) {
                    Entry::Vacant(entry) => {
                        entry.insert(part);
                    }
                    Entry::Occupied(mut entry) => entry.get_mut().extend(part),
                },
                (FromOld::Certificate(handed), _) => {
                    let (name, served) = certificates::receive(&self.0, handed)?;
                    set.insert(name, served);
                }
                (FromOld::End(state), _) => {
                    if state.has_secret && !weir_tls::take_secret_of_process(self.0.receive_secret()?) {
                        return Err(io::Error::other("the secret of tickets came too late"));
                    }
                    let overrides = settings.into_iter().collect();
                    let endpoints = lists.into_iter().map(|(name, list)| (name, Arc::new(list))).collect();
                    return Ok(Received { sockets, endpoints, certificates: set, overrides, state });
                }
                (FromOld::Sockets(_) | FromOld::Go, _) => {
                    return Err(io::Error::other("a message out of turn"));
                }
            }
        }
    }

    /// Reports that this process is ready and does not take over the sockets with these numbers, and waits until it may
    /// begin. Errors: the old process has exited, or sends another message.
    pub(crate) fn take_turn(&self, left: Vec<usize>) -> io::Result<()> {
        self.0.send(&FromNew::Ready { left }, &[]).map_err(gone)?;
        match self.0.receive().map_err(gone)? {
            (FromOld::Go, _) => Ok(()),
            (
                FromOld::Sockets(_)
                | FromOld::Endpoints { .. }
                | FromOld::Certificate(_)
                | FromOld::Servers(_)
                | FromOld::End(_),
                _,
            ) => Err(io::Error::other("upgrade: a message out of turn")),
        }
    }

    /// Reports that this process is the service from now on. Errors: the old process continues, and this one must not
    /// accept.
    pub(crate) fn serve(&self) -> io::Result<()> {
        self.0.send(&FromNew::Serving, &[]).map_err(gone)
    }

    /// Waits up to [`HEARING`] until the old process has received the report of [`OldProcess::serve`] and has notified
    /// its supervisor.
    pub(crate) fn be_heard(&self) {
        // This process is the service even after a timeout.
        let _ = self.0.wait(Instant::now() + HEARING);
    }

    pub(crate) fn fail(&self, why: &str) {
        // The old process may have given up, too.
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

/// The timeout of [`OldProcess::be_heard`]. The old process usually receives the report immediately.
const HEARING: Duration = Duration::from_secs(5);

/// The maximum length of the error message that [`OldProcess::fail`] reports, in characters.
const WORDS: usize = 4000;
