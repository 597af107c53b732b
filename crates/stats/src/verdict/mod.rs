//! The words that may be said about a ratio, and the rule that chooses between them: for targets within one result, and
//! for one target in two.

mod ratio;
mod rule;

pub use crate::words::{difference, with_remark};
pub use ratio::{Ratio, Verdict};
pub use rule::{Better, Floors, Noise, Note, Rule};
