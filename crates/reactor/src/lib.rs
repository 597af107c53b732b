//! One event loop per core: poller, timers, listeners, mailboxes, CPU placement.
//!
//! The loop makes no callbacks: a worker calls [`Reactor::turn`] and iterates over the [`Events`], so the worker owns
//! all of its state. Connections are stored in a [`Slab`]. Its [`Key`]s carry a generation, so a stale event or timer
//! finds no connection.

pub mod cores;
pub mod frontends;
pub mod limits;
pub mod listener;
pub mod mailbox;
pub mod socket;
pub mod stop;

mod address;
mod net;
mod share;
mod slab;
mod timer;
mod turn;
mod wheel;
mod workers;

pub use address::Address;
pub use frontends::Frontends;
pub use listener::Listener;
pub use net::{Net, Socket};
pub use slab::{Key, Slab};
pub use timer::Timer;
pub use turn::{Events, Interest, Reactor, Ready, earliest};
pub use wheel::{Entry, Wheel};
pub use workers::run_workers;
