//! Where clients' connections come from.

use crate::config::{Listener, Role};
use std::sync::Arc;
use weir_tls::Acceptor;

/// A listener, as one worker knows it.
#[derive(Debug)]
pub(crate) struct Frontend {
    pub name: Arc<str>,
    pub role: Role,
    pub tls: Option<Acceptor>,
}

impl Frontend {
    pub(crate) fn new(listener: &Listener) -> Self {
        Self {
            name: Arc::clone(&listener.name),
            role: listener.role,
            tls: listener.tls.as_ref().map(weir_tls::Server::core),
        }
    }
}
