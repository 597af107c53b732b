//! The listening sockets and the state that a process inherits at startup, from systemd or from the old process of an
//! upgrade.

use super::sockets::{Given, systemd};
use super::upgrade::{OldProcess, Received, State};
use crate::config::{EndpointLists, Overrides, SetCertificates};

/// Everything that a process inherits. The process itself binds the addresses for which it inherits no socket.
#[derive(Debug, Default)]
pub struct Inherited {
    pub(super) sockets: Vec<Given>,
    pub(super) old: Option<OldProcess>,
    pub(super) endpoints: EndpointLists,
    pub(super) certificates: SetCertificates,
    pub(super) overrides: Overrides,
    pub(super) state: State,
}

impl Inherited {
    /// Takes the sockets that the environment offers. Call it once, before other threads start.
    ///
    /// # Errors
    /// A message, if this program does not understand the offer.
    pub fn take() -> Result<Self, String> {
        match OldProcess::of_environment()? {
            Some(old) => {
                let Received { sockets, endpoints, certificates, overrides, state } = old.receive()?;
                Ok(Self { sockets, old: Some(old), endpoints, certificates, overrides, state })
            }
            None => Ok(Self { sockets: systemd::sockets()?, ..Self::default() }),
        }
    }

    /// Returns a function that reports to the old process the reason why this process will not replace it.
    pub fn teller(&self) -> impl Fn(&str) + use<> {
        let old = self.old.clone();
        move |why| {
            if let Some(old) = &old {
                old.fail(why);
            }
        }
    }
}
