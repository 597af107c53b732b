//! From an experiment to its plan: cells, blocks, and the order of runs. Plans are data; nothing runs here.

pub mod cell;
pub(crate) mod counterpart;
pub mod placement;
pub mod plan;
pub mod planned_run;
pub(crate) mod planner;
pub(crate) mod schedule;
pub(crate) mod select;
pub mod subjects;
