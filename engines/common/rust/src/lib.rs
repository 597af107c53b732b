//! The Rust part of Weir's TLS engines: reads a scenario, measures a TLS stack in memory and reports.
//!
//! docs/ENGINES.md specifies input and output. An engine implements [`Stack`] for its
//! library, and its `main` is a call of [`main`]. The loops here decide what is timed and what counts as an error, so
//! that all stacks are measured alike.

mod allocator;
pub mod callbacks;
mod calls;
mod connect;
mod error;
mod handshake;
mod measure;
mod memory;
mod names;
pub mod notes;
pub mod pem;
mod primitive;
mod report;
mod run;
mod scenario;
pub mod sealing;
mod stack;
mod transfer;
mod usage;
mod wire;

pub use error::{Error, Fault};
pub use names::{Certificate, Group, Named, Operation, Resumption, Side, Suite, Version};
pub use run::{main, run};
pub use scenario::{Connection, Handshake, Load, Memory, Primitive, Scenario, Transfer, Until};
pub use stack::{End, Facts, Kind, Operate, Outcome, Session, Stack};
