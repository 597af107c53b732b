//! The words that may be said about a ratio, and the rule that chooses between them: for targets within one result, and
//! for one target in two.

mod noise;
mod note;
mod ratio;
mod rule;
mod words;

pub use noise::{Floors, Noise};
pub use note::Note;
pub use ratio::{Ratio, Verdict};
pub use rule::Rule;
pub use words::{difference, with_remark};
