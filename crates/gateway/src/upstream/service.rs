//! Where requests go: a service, as one worker knows it.

use super::Pool;
use crate::config;
use crate::exchange::Budget;
use weir_tls::{Connector, PeerName};

/// A named group of servers, for now of one, with this worker's connections to it.
#[derive(Debug)]
pub(crate) struct Service {
    pub server: config::Server,
    pub tls: Option<(Connector, PeerName)>,
    pub pool: Pool,
    pub retries: Budget,
    /// Counts the changes of address; connections of an older one finish their work and are not used again.
    pub generation: u32,
}

impl Service {
    pub(crate) fn new(config: config::Service, tls: Option<(Connector, PeerName)>) -> Self {
        Self { server: config.server, tls, pool: Pool::default(), retries: Budget::default(), generation: 0 }
    }

    /// Goes on with another configuration. Returns whether the address changed, so that idle connections are of no use.
    pub(crate) fn adopt(&mut self, config: &config::Service) -> bool {
        if self.server == config.server {
            return false;
        }
        self.server = config.server.clone();
        self.generation += 1;
        true
    }
}
