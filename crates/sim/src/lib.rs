//! A simulation under the gateway's worker: clients and origins as state machines with faults, one virtual clock, one seed.
//!
//! The worker is the real one; what it stands on is not. So every order of events can happen, the same seed makes the same
//! run, and an hour passes in a millisecond. [`run()`] plays a [`Plan`] to its end and checks, all the way: no byte is lost,
//! doubled or sent to another's connection; each request ends once, with its answer or with a reason in the log; a request
//! that may have had an effect arrives once; after an error only other servers get it, and its client the last response alone;
//! nothing is left behind; a drain ends. [`shrink`] makes a failing run small.

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
