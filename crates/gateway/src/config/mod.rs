//! What an operator sets, and what the workers get of it.

mod settings;
mod snapshot;

pub use settings::{Settings, Timeouts, UpstreamTls};
pub(crate) use snapshot::{Policy, Role, Server, Service, Snapshot};
