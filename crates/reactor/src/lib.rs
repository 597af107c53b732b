//! One event loop per core: poller, timers, listeners, mailboxes, CPU placement.
//!
//! The loop is pulled, not inverted: a worker calls [`Reactor::turn`], then walks the [`Events`] it was given. So the
//! worker owns all of its state, and no callback borrows it behind its back. Connections live in a [`Slab`], whose
//! [`Key`]s carry a generation: an event or a timer that outlived its connection finds nothing.

pub mod cores;
pub mod limits;
pub mod listener;
pub mod mailbox;
pub mod socket;
pub mod stop;

mod slab;
mod turn;
mod wheel;
mod workers;

pub use listener::Listener;
pub use slab::{Key, Slab};
pub use turn::{Events, Interest, Reactor, Ready};
pub use wheel::Wheel;
pub use workers::run_workers;
