//! An instrument: a kind of measurement, with its metrics, its runs and its rules of validity. The pipeline from an
//! experiment's file to its report is common to all instruments. Each submodule is one instrument.

pub mod commands;
pub mod gateway;
pub mod stacks;
