//! What an operator sets, and what the workers get of it.

pub mod document;

mod compile;
mod costs;
mod explain;
mod file;
mod network;
mod snapshot;
mod tls_costs;

pub use crate::route::PathPattern;
pub use compile::Fault;
pub(crate) use compile::{compile, workers};
pub use file::{Checked, ConfigError, read};
pub use network::Network;
pub use snapshot::Role;
pub(crate) use snapshot::{
    AccessLog, Action, FieldNames, Listener, Pages, Passthrough, Policy, Route, Server, Service, Snapshot,
    Tracing, UpstreamTls,
};
