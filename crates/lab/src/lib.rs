//! The lab: from an experiment file to a verdict. It drives processes, and links none of what it measures.
//!
//! `experiment.toml` becomes a plan (cells, blocks, seeded order); each run starts fresh processes pinned to given
//! cores and is stored when it ends; validity and limit are judged per run; statistics, `summary.json`, table and
//! report are pure functions of the stored data. An [`instrument`] defines a kind of measurement; they share one
//! pipeline. docs/LAB.md describes it on one page, and docs/ARCHITECTURE.md the rooms and who may use whom.

pub mod across;
pub mod base;
pub mod cost;
pub mod entry;
pub mod experiment;
pub mod findings;
pub mod found;
pub mod instrument;
pub mod planning;
pub mod report;
pub mod running;
pub mod store;
pub mod studies;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use base::error::{ConfigError, LabError};
pub use entry::{Outcome, compare, compare_levels, history, plan, report, run};
pub use experiment::options::RunOptions;
pub use running::guard::guard;
pub use weir_doctor as doctor;
pub use weir_netem as net;
pub use weir_stats as stats;
