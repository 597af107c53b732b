//! The network between load engine, gateway and origin: loopback, or a network namespace each, connected by veth
//! pairs, with added round-trip time and loss.
//!
//! The kernel's netem adds delay and loss if available; otherwise our relay does (see [`relay`]). The [`NetReport`]
//! says which.

mod description;
mod error;
mod line;
mod namespaces;
pub mod relay;
mod relay_process;
mod report;
mod setup;

pub use description::{Between, Kind, Network, Unfit};
pub use error::NetError;
pub use namespaces::{clean_dead, clean_of};
pub use report::{DirectionReport, Emulation, NetReport, RelayReport, Spread};
pub use setup::{GATEWAY_ADDRESS, LOAD_SOURCES, LOOPBACK_ADDRESS, Net, ORIGIN_ADDRESS, Place, RelayPlace};
