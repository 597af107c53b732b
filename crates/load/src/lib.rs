//! The load engine: schedule, connection policy, worker, recorder, result.
//!
//! [`run`] takes [`Options`] and gives a [`result::LoadResult`]. Each worker is one thread with a loop, connections and
//! counters of its own. A run has four phases: connections are opened; the warm-up is not measured; the window is;
//! then no request is begun and those that have begun may end.
//!
//! In a closed loop each connection sends the next request when it has its answer. In an open loop (`rate`) arrivals
//! are planned at a constant rate before anything is sent, and a request's latency counts from its planned instant
//! whether or not a connection was free then; so a server that stalls cannot hide the requests that it kept waiting.

mod accounting;
mod args;
mod assert;
pub mod calibrate;
pub mod ceiling;
mod check;
mod conductor;
mod connection;
pub mod csv;
mod destination;
mod digest;
mod engine;
mod figures;
mod interrupt;
pub mod limit;
pub mod live;
mod machine;
pub mod meter;
mod metric;
mod options;
mod ports;
mod recorder;
mod request;
pub mod result;
pub mod rng;
mod schedule;
mod seconds;
mod source;
mod stationarity;
mod sum;
mod table;
mod target;
mod times;
mod tls_client;
mod trial;
mod usage;
mod validity;
mod worker;

pub use args::LoadArgs;
pub use assert::{Assertion, AssertionError, Broken, check_all};
pub use check::{ErrorClass, Expect};
pub use destination::host_port;
pub use digest::sha256;
pub use engine::{LoadError, Phase, Progress, run};
pub use interrupt::stop_on_signals;
pub use machine::Machine;
pub use metric::Metric;
pub use options::{
    ArrivalKind, Close, Meter, Options, PerConnection, Phases, Policy, RateStep, RequestOptions, Resolve,
    Route, Schedule, Server, Sni, TlsOptions,
};
pub use request::{field, requests_from_file};
pub use source::Sources;
pub use table::table;
pub use target::{Target, requests_of};
pub use trial::{Unreachable, Why};
pub use usage::{Usage, size, time};
