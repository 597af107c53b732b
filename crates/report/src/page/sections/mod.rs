//! The parts of the page, one file for each.

pub(crate) mod claims;
pub(crate) mod costs;
pub(crate) mod figures;
pub(crate) mod header;
pub(crate) mod latency;
pub(crate) mod limits;
pub(crate) mod numbers;
pub(crate) mod origins;
pub(crate) mod seconds;
pub(crate) mod throughput;
pub(crate) mod verdicts;

mod parts;
