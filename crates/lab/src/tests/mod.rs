//! The whole pipeline, from experiments to findings, in a synthetic world.

mod duets;
mod findings;
mod pipeline;
mod proof;
mod stored;
pub(crate) mod verdicts;
pub(crate) mod world;
