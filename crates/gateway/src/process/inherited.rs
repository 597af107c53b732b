//! The inheritance of a process at its start: listening sockets, from systemd or from the old process of an upgrade.

use super::sockets::{Given, systemd};
use super::upgrade::{OldProcess, Received, State};
use crate::config::{EndpointLists, Overrides, SetCertificates};

/// Everything that a process inherits. With nothing inherited, it binds its addresses itself.
#[derive(Debug, Default)]
pub struct Inherited {
    pub(super) sockets: Vec<Given>,
    /// The process that this one replaces.
    pub(super) old: Option<OldProcess>,
    /// The servers that were set there at run time.
    pub(super) endpoints: EndpointLists,
    /// The certificates that were set there at run time.
    pub(super) certificates: SetCertificates,
    /// The settings of servers that an operator changed there.
    pub(super) overrides: Overrides,
    pub(super) state: State,
}

impl Inherited {
    /// Takes the sockets that the environment offers. Call it once, before other threads start.
    ///
    /// # Errors
    /// In words: this program does not understand the offer.
    pub fn take() -> Result<Self, String> {
        match OldProcess::of_environment()? {
            Some(old) => {
                let Received { sockets, endpoints, certificates, overrides, state } = old.receive()?;
                Ok(Self { sockets, old: Some(old), endpoints, certificates, overrides, state })
            }
            None => Ok(Self { sockets: systemd::sockets()?, ..Self::default() }),
        }
    }

    /// Returns a function that reports to the old process why this one will not replace it.
    pub fn teller(&self) -> impl Fn(&str) + use<> {
        let old = self.old.clone();
        move |why| {
            if let Some(old) = &old {
                old.fail(why);
            }
        }
    }
}
