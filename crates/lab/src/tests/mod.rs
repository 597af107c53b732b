//! The pipeline as a whole, from experiments to findings, in a made-up world.

mod duets;
mod findings;
mod pipeline;
mod proof;
mod stored;
pub(crate) mod verdicts;
mod world;
