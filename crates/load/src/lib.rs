//! The load engine: what a run is asked for, how it is run, what was seen, and how that is told.
//!
//! [`run`] takes [`Options`] ([`LoadArgs`] are their words) and gives a [`result::LoadResult`]. Each worker is one thread
//! with a loop, connections and counters of its own; a thread that conducts them starts them together and gathers
//! each second's part. A run has five phases: connections are opened; the warm-up and the settling after it are not
//! measured; the window is; then no request is begun and those that have begun may end.
//!
//! In a closed loop each connection sends the next request when it has its answer. In an open loop arrivals are planned
//! before anything is sent, and a request's response time counts from its planned instant whether or not a connection
//! was free then; so a server that stalls cannot hide the requests that it kept waiting.

mod accounting;
mod args;
pub mod calibrate;
pub mod ceiling;
mod check;
mod conductor;
mod connection;
mod engine;
mod error;
mod interrupt;
pub mod limit;
pub mod meter;
mod options;
mod output;
mod record;
mod rendezvous;
mod request;
pub mod result;
mod route;
mod schedule;
mod target;
mod tls_client;
mod usage;
mod worker;

pub use accounting::since_boot;
pub use args::LoadArgs;
pub use ceiling::Machine;
pub use check::{ErrorClass, Expect, sha256};
pub use conductor::{Phase, Progress};
pub use engine::run;
pub use error::LoadError;
pub use interrupt::stop_on_signals;
pub use options::{
    ArrivalKind, Close, Meter, Options, PerConnection, Phases, Policy, RateStep, RequestOptions, Route,
    Schedule, Server, TlsOptions,
};
pub use output::assert::{Assertion, check_all};
pub use output::figures::plural;
pub use output::metric::Metric;
pub use output::table::table;
pub use output::{csv, figures, live};
pub use record::validity::exceeds_budget;
pub use rendezvous::OPEN;
pub use request::requests_of;
pub use route::source::Sources;
pub use target::{Resolve, Target};
pub use usage::{Usage, size, time};
