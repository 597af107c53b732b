//! From a plan to stored runs: the conduct of an experiment, its processes, and its progress.

pub(crate) mod conduct;
pub(crate) mod disturbance;
pub mod guard;
pub mod host;
pub mod interrupt;
pub mod measure;
pub mod process;
pub(crate) mod profiles;
pub(crate) mod progress;
pub(crate) mod setup;
pub(crate) mod tool;
