//! What the gateway tells its operator: counters, log, lines.

mod counters;
pub(crate) mod journal;
mod log;

pub use counters::Counters;
pub(crate) use log::{Context, Log};
