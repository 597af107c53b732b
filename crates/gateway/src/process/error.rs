//! The errors of a gateway process.

use crate::config::Fault;
use std::io;
use weir_reactor::listener::BindError;

/// The reason why a gateway failed.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// An invalid configuration.
    #[error(transparent)]
    Config(#[from] Fault),
    /// A failure to listen on an address.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// A system error.
    #[error("{0}")]
    System(#[from] io::Error),
}
