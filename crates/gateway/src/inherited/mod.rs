//! What a process is given when it starts: listening sockets, of systemd or of the process that it is to replace.

mod activation;
mod matching;

pub(crate) use matching::{Matched, Wanted, matched};

use crate::config::Overrides;
use crate::upgrade::{Before, State};
use weir_reactor::Listener;

/// All of it. Without any, the process binds its addresses itself.
#[derive(Debug, Default)]
pub struct Inherited {
    pub(crate) sockets: Vec<Given>,
    /// The process that this one is to replace.
    pub(crate) before: Option<Before>,
    /// What was set there for servers at run time.
    pub(crate) overrides: Overrides,
    pub(crate) state: State,
}

/// A listening socket from outside.
#[derive(Debug)]
pub(crate) struct Given {
    pub listener: Listener,
    pub label: Label,
}

/// What is known of it beside its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// Of systemd; the name is that of the socket's unit if none was given to it.
    Named(String),
    /// Of the process before: for the admin address or a listener of this name, and the address as it was configured.
    Handed { admin: bool, name: String, place: String },
}

impl Inherited {
    /// Takes what the environment offers. To be called once, before there are other threads.
    ///
    /// # Errors
    /// In words: it is not what this program understands.
    pub fn take() -> Result<Self, String> {
        match Before::of_environment()? {
            Some(before) => before.receive(),
            None => Ok(Self { sockets: activation::sockets()?, ..Self::default() }),
        }
    }

    /// Tells the process that this one was to replace why it will not.
    pub fn teller(&self) -> impl Fn(&str) + use<> {
        let before = self.before.clone();
        move |why| {
            if let Some(before) = &before {
                before.fail(why);
            }
        }
    }
}
