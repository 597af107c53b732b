//! What an operator sets, and what the workers get of it.

mod settings;
mod snapshot;

pub use settings::{Settings, Timeouts, UpstreamTls};
pub use snapshot::Role;
pub(crate) use snapshot::{Policy, Server, Service, Snapshot};
