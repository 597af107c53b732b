//! The load engine: options, execution, recording and output.
//!
//! [`run`] takes [`Options`] (parsed from [`LoadArgs`]) and returns a [`result::LoadResult`]. Each worker is one thread
//! with its own event loop, connections and counters; the conductor starts them together and collects
//! per-second figures. A run has five phases: opening connections; warm-up and settling, which are not
//! measured; the window, which is; and the drain, which finishes requests in flight.
//!
//! In a closed loop each connection (with HTTP/2: each stream) sends the next request after its response. In an open loop
//! arrivals are planned before anything is sent, and response time counts from the planned instant, whether or not a
//! connection was free; so a stalled server cannot hide the requests it kept waiting.

mod accounting;
mod args;
pub mod calibrate;
pub mod ceiling;
mod check;
mod conductor;
mod connection;
mod engine;
mod error;
mod h2;
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
mod setup;
mod share;
mod target;
mod team;
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
    ArrivalKind, Close, Grpc, HttpVersion, HttpVersions, Meter, Options, PerConnection, Phases, Policy,
    RateStep, RequestOptions, Route, Schedule, Server, TlsOptions,
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
