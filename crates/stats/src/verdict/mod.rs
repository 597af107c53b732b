//! The verdict on a ratio, and its rule: for targets within one result, and
//! for one target in two.

mod ratio;
mod rule;

pub use crate::words::{difference, with_remark};
pub use ratio::{Ratio, Verdict};
pub use rule::{Better, Floors, Noise, Note, Rule};
