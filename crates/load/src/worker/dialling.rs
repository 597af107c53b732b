//! How a worker makes connections, and with which sessions.

use super::Worker;
use crate::connection::{Connection, Purpose};
use crate::options::PerConnection;
use std::time::Instant;
use weir_tls::Session;
use weir_transport::Transport;

/// Connections that are made at once for sessions: the server is to be asked, not stormed.
const PRIMING_AT_ONCE: u32 = 16;

impl Worker<'_> {
    /// Makes a connection for any request.
    pub(super) fn dial_stock(&mut self, failures: u32) {
        let session = self.session();
        self.dial(Purpose::Stock, session, failures);
    }

    /// As many sessions as may be under way at once, and some that come back late.
    pub(super) fn sessions_wanted(&self) -> u32 {
        self.policy.connections + self.policy.connections / 4 + 1
    }

    /// Makes connections until there are sessions enough.
    pub(super) fn prime(&mut self) {
        while self.to_prime > 0 && self.priming < PRIMING_AT_ONCE {
            let Some((connector, name)) = &self.policy.tls else { return };
            if connector.sessions(name) + self.priming as usize >= self.sessions_wanted() as usize {
                return;
            }
            let session = connector.connect_full(name);
            self.to_prime -= 1;
            self.priming += 1;
            self.dial(Purpose::Session, Some((session, false)), 0);
        }
    }

    /// Makes a connection for what was planned for `planned`.
    pub(super) fn dial_for(&mut self, planned: Instant, failures: u32) {
        self.busy += 1;
        let session = self.session();
        let purpose = match self.policy.per_connection {
            PerConnection::Handshake => Purpose::Handshake(planned),
            PerConnection::Unlimited | PerConnection::Requests { .. } => Purpose::Request(planned),
        };
        self.dial(purpose, session, failures);
    }

    /// The client's side of a new connection, and whether it offers a session because it is to resume.
    fn session(&mut self) -> Option<(Session, bool)> {
        let (connector, name) = self.policy.tls.as_ref()?;
        self.resume_credit += self.policy.resume;
        if self.resume_credit < 100.0 {
            return Some((connector.connect_full(name), false));
        }
        self.resume_credit -= 100.0;
        Some(match connector.connect_resuming(name) {
            Some(session) => (session, true),
            None => {
                self.desk.recorder.counters.had_nothing += 1;
                (connector.connect_full(name), false)
            }
        })
    }

    pub(super) fn dial(&mut self, purpose: Purpose, session: Option<(Session, bool)>, failures: u32) {
        let (session, offered) = session.unzip();
        let now = self.desk.now;
        let deadline = now + self.policy.timeout;
        match Transport::connect_from(self.policy.sources.next(), &self.policy.address, session) {
            Ok(transport) => {
                self.desk.recorder.counters.connections += 1;
                let mut connection = Connection::new(transport, purpose, now, deadline);
                connection.failures = failures;
                connection.offered = offered.unwrap_or(false);
                if let PerConnection::Requests { least, most } = self.policy.per_connection {
                    let range = (most - least + 1) as usize;
                    connection.quota = least + self.policy.rng.below(range) as u64;
                }
                let key = self.connections.insert(connection);
                self.arm(key);
                self.watch(key);
            }
            Err(fault) => {
                self.busy -= u32::from(purpose.planned().is_some());
                self.desk.recorder.error(&fault.into());
                self.failed(purpose, failures + 1);
            }
        }
    }
}
