//! Experiment, plan, runs, statistics, report.
mod rng;
pub mod stats;
