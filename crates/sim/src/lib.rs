//! Deterministic simulation of the gateway's worker: clients and origins as state machines with faults, one virtual
//! clock, one seed.
//!
//! The worker is the production code; only its `Net` is simulated. So the simulation reaches any order of events, the
//! same seed reproduces the same run, and an hour passes in a millisecond. [`run()`] plays a [`Plan`] to its end and
//! checks throughout that:
//! - no byte is lost, duplicated or sent to another connection;
//! - each request ends once, with its response or with a reason in the log;
//! - a request that may have had an effect arrives once; after an error only other servers receive it, and its client
//!   receives the last response alone;
//! - the worker leaves no connection, exchange or timer behind, and a drain ends.
//!
//! [`shrink`] reduces a failing run.

mod client;
mod gateway;
mod host;
mod judge;
mod ledger;
mod message;
mod net;
mod origin;
mod peer;
mod plan;
mod raw;
mod run;
mod setting;
mod standing;
mod storm;
mod tls;
mod world;

pub use host::Host;
pub use plan::{Plan, shrink};
pub use raw::connection;
pub use run::{Report, Steady, run};
pub use storm::{Storm, Toll};
