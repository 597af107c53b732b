//! Whether sessions outlive the handshakes of other clients.

use super::visit::Visitor;
use crate::fact::Facts;
use std::io;
use weir_tls::Connector;

/// Enough to tell a cache that is too small from one that loses a session now and then.
const CLIENTS: usize = 8;

/// Clients that hold a session each.
pub(crate) struct Clients(Vec<Connector>);

/// How many of them resumed when they came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    clients: usize,
    resumed: usize,
    /// Handshakes of others in the meantime.
    pub(crate) between: u64,
}

impl Clients {
    /// Makes a handshake and an exchange with each; fewer if the server gives no sessions.
    pub(crate) fn new(visitor: &Visitor) -> io::Result<Self> {
        let all = (0..CLIENTS).map(|_| visitor.leave_with_session());
        Ok(Self(all.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect()))
    }

    /// Comes back with each session, after this number of handshakes by others; `None` without sessions.
    pub(crate) fn come_back(&self, visitor: &Visitor, between: u64) -> io::Result<Option<Returned>> {
        let resumed = self.0.iter().map(|client| visitor.resumes(client)).collect::<io::Result<Vec<_>>>()?;
        let resumed = resumed.into_iter().filter(|resumed| *resumed).count();
        let returned = Returned { clients: self.0.len(), resumed, between };
        Ok((returned.clients > 0).then_some(returned))
    }
}

impl Facts {
    /// Adds how many clients resumed after others made handshakes.
    pub(crate) fn add_returned(&mut self, returned: Returned) {
        let Returned { clients, resumed, between } = returned;
        const SOURCE: &str = "clients that return after the load on new connections";
        self.add("resumption.returning", clients as f64, SOURCE);
        self.add("resumption.kept", resumed as f64, SOURCE);
        self.add("resumption.kept_share", resumed as f64 / clients as f64, SOURCE);
        self.add("resumption.handshakes_between", between as f64, SOURCE);
    }
}
