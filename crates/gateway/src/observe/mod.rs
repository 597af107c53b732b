//! Reports to the operator: counters, access log, and lines on stderr.

pub(crate) mod access;
mod counters;
mod exposition;
pub(crate) mod journal;
mod log;
pub(crate) mod process;
mod report;
mod servers;
mod times;

pub use counters::Counters;
pub(crate) use counters::{By, Bytes};
pub(crate) use exposition::Exposition;
pub(crate) use log::{Context, Log};
pub(crate) use report::{Report, Tickets};
pub(crate) use servers::{ServerReport, State};
pub(crate) use times::Times;
