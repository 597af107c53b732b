//! Where clients' connections come from.

use crate::config::{Listener, Network, Role};
use std::net::IpAddr;
use std::sync::Arc;
use weir_tls::Acceptor;

/// A listener, as one worker knows it.
#[derive(Debug)]
pub(crate) struct Frontend {
    pub name: Arc<str>,
    pub role: Role,
    /// Networks of proxies in front.
    pub trusted: Arc<[Network]>,
    pub tls: Option<Acceptor>,
}

impl Frontend {
    /// Whether this address is that of a proxy in front.
    #[inline]
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }

    pub(crate) fn new(listener: &Listener) -> Self {
        Self {
            name: Arc::clone(&listener.name),
            role: listener.role,
            trusted: Arc::clone(&listener.trusted),
            tls: listener.tls.as_ref().map(weir_tls::Server::core),
        }
    }
}
