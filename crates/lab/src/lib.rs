//! The lab: from an experiment file to a verdict. It drives processes, and links none of what it measures.
//!
//! `experiment.toml` becomes a plan (cells, blocks, seeded order); each run starts fresh processes on stated cores and
//! is stored as it ends; validity and limit are judged per run; statistics, `summary.json`, table and report are pure
//! functions of what is stored.

pub mod across;
pub mod cell;
pub mod claims;
pub mod comparison;
pub mod cost;
pub mod error;
pub mod evidence;
pub mod experiment;
pub mod export;
pub mod found;
pub mod gc;
pub mod history;
pub mod limit;
pub mod machine;
pub mod metric;
pub mod network;
pub mod options;
pub mod placement;
pub mod plan;
pub mod process;
pub mod results;
pub mod run;
pub mod stacks;
pub mod store;
pub mod summary;
pub mod target;
pub mod template;
pub mod validity;

mod busy;
mod cache;
mod conduct;
mod describe;
mod executor;
mod guard;
mod hash;
mod interrupt;
mod lab;
mod pairing;
#[cfg(test)]
mod pipeline_tests;
mod progress;
#[cfg(test)]
mod proof_tests;
mod report;
#[cfg(test)]
mod synthetic;
pub mod table;
#[cfg(test)]
mod testing;
mod tool;
mod vary;
#[cfg(test)]
mod verdict_tests;

pub use error::{ConfigError, LabError};
pub use guard::guard;
pub use lab::{Outcome, plan, report, run};
pub use options::RunOptions;
pub use weir_doctor as doctor;
pub use weir_netem as net;
pub use weir_stats as stats;
pub use weir_stats::{histogram, verdict};
