//! Whether the server still resumes sessions after handshakes of other clients.

use super::visit::Visitor;
use crate::fact::Facts;
use std::io;
use weir_tls::Connector;

/// Enough to distinguish a cache that is too small from one that occasionally loses a session.
const CLIENTS: usize = 8;

/// Clients with one session each.
pub(crate) struct Clients(Vec<Connector>);

/// The number of clients that resumed when they returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    clients: usize,
    resumed: usize,
    /// Handshakes of other clients in the meantime.
    pub(crate) between: u64,
}

impl Clients {
    /// Completes a handshake and an exchange per client; keeps the clients that got a session.
    pub(crate) fn new(visitor: &Visitor) -> io::Result<Self> {
        let all = (0..CLIENTS).map(|_| visitor.leave_with_session());
        Ok(Self(all.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect()))
    }

    /// Returns with each session; `between` is the number of other clients' handshakes since. `None` without sessions.
    pub(crate) fn come_back(&self, visitor: &Visitor, between: u64) -> io::Result<Option<Returned>> {
        let resumed = self.0.iter().map(|client| visitor.resumes(client)).collect::<io::Result<Vec<_>>>()?;
        let resumed = resumed.into_iter().filter(|resumed| *resumed).count();
        let returned = Returned { clients: self.0.len(), resumed, between };
        Ok((returned.clients > 0).then_some(returned))
    }
}

impl Facts {
    /// Adds the number of clients that resumed after other clients' handshakes.
    pub(crate) fn add_returned(&mut self, returned: Returned) {
        let Returned { clients, resumed, between } = returned;
        const SOURCE: &str = "clients that return after the load on new connections";
        self.add("resumption.returning", clients as f64, SOURCE);
        self.add("resumption.kept", resumed as f64, SOURCE);
        self.add("resumption.kept_share", resumed as f64 / clients as f64, SOURCE);
        self.add("resumption.handshakes_between", between as f64, SOURCE);
    }
}
