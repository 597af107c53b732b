//! What the gateway tells its operator: counters, log, lines.

pub(crate) mod access;
mod counters;
pub(crate) mod journal;
mod log;
mod report;
mod servers;

pub(crate) use counters::By;
pub use counters::Counters;
pub(crate) use log::{Context, Log};
pub(crate) use report::{Report, Tickets};
pub(crate) use servers::{ServerReport, State};
