//! Reports to the operator: counters, access log, and lines on stderr.

pub(crate) mod access;
mod counters;
mod exposition;
mod histogram;
pub(crate) mod journal;
mod latency;
mod log;
mod metrics;
pub(crate) mod process;
mod report;
mod row;
mod servers;
mod times;
mod values;

pub(crate) use counters::{By, Bytes, RetryRule};
pub(crate) use exposition::Exposition;
pub(crate) use latency::{Latency, LatencyByName, Measured};
pub(crate) use log::{Context, Log};
pub use metrics::{Counters, ROWS};
pub(crate) use report::Report;
pub use row::Row;
pub use servers::{ServerReport, Source, State};
pub(crate) use times::Times;
pub(crate) use values::Process;
