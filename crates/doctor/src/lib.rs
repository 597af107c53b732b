//! The machine: its hardware, and what disturbs measurements on it. Read-only.
//!
//! Each check returns one [`Finding`]. Unavailable values are `unknown`, not errors: a virtual machine has
//! no frequency governor.

mod activity;
mod cgroup;
pub mod cores;
mod distribution;
mod examine;
mod finding;
mod hardware;
mod hypervisor;
mod kernel;
mod meter;
mod ports;
pub mod proc;
mod process;
mod processor;
mod stat;
mod system;
mod table;
#[cfg(test)]
mod testing;

pub use cgroup::usable_cores;
pub use distribution::how_to_get;
pub use examine::examine;
pub use finding::{Finding, Level};
pub use hardware::{FEATURES, Hardware};
pub use meter::{Meter, Taken};
pub use ports::{LISTENERS_FROM, ROOM_BELOW};
pub use table::{table, warn};
