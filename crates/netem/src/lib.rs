//! The network between load engine, gateway and origin: loopback, or network namespaces of their own, joined by veth
//! pairs, with round-trip time and loss on the way.
//!
//! Where the kernel has netem, netem delays and loses; where it has not, a relay of ours does (see [`relay`]). Which of
//! them it was stands in the [`NetReport`].

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
