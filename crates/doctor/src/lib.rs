//! The machine: its hardware, and what disturbs a measurement on it. All is read, nothing is written.
//!
//! Each check gives one [`Finding`]. What the system does not tell is `unknown`, which is no error: a virtual machine has
//! no frequency governor to be asked for.

mod activity;
mod cgroup;
pub mod cores;
mod examine;
mod finding;
mod hardware;
mod hypervisor;
mod kernel;
mod meter;
mod network;
mod process;
mod processor;
mod stat;
mod system;
mod table;
#[cfg(test)]
mod testing;

pub use examine::examine;
pub use finding::{Finding, Level};
pub use hardware::Hardware;
pub use meter::{Meter, Taken};
pub use network::{LISTENERS_FROM, ROOM_BELOW};
pub use table::{table, warn};
