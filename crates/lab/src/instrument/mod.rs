//! The instruments: kinds of measurement, each with its metrics, its runs and its rules of validity. The pipeline from
//! an experiment's file to its report is common to all. Each of its rooms states in a trait what it needs of an
//! instrument: `Grammar`, `Subjects`, `Stored`, `Judge`, `Measure` and `Shown`.

pub mod gateway;
pub mod stacks;
