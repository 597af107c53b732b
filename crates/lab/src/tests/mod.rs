//! The pipeline as a whole, from experiments to findings, in a made-up world.

mod pipeline;
mod proof;
mod stored;
pub(crate) mod verdicts;
