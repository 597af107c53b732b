//! Settings as the workers see them: checked, immutable, replaced as a whole.

use super::{Settings, Timeouts};
use std::net::SocketAddr;
use weir_http1::Limits;

/// One state of the configuration. A worker gets it by mail; exchanges keep the policy that they began with.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub policy: Policy,
    /// What listeners are for.
    pub role: Role,
    /// Where requests go; for now there is one.
    pub service: Service,
}

impl Snapshot {
    /// The settings of flags, with the upstream's address as it was resolved.
    pub(crate) fn new(settings: &Settings, role: Role, address: SocketAddr) -> Self {
        let authority = settings.to.authority();
        Self {
            policy: Policy {
                limits: settings.limits,
                max_body: settings.max_body.unwrap_or(u64::MAX),
                timeouts: settings.timeouts,
            },
            role,
            service: Service { name: authority.clone(), server: Server { address, authority } },
        }
    }
}

/// What an exchange is held to.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub limits: Limits,
    /// The largest request body in bytes.
    pub max_body: u64,
    pub timeouts: Timeouts,
}

/// What becomes of an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// HTTP requests are passed on.
    Gateway,
    /// Bytes are passed on, unread: the floor.
    Tunnel,
}

/// A named group of servers that answer alike.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub name: String,
    /// For now there is one.
    pub server: Server,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub address: SocketAddr,
    /// Host and port as in a `Host` field.
    pub authority: String,
}
