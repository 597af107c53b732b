//! Where the CPU goes: samples of a process, by category.
//!
//! [`record()`] samples running processes with `perf`, [`read`] loads a `perf.data` file or folded stacks; both
//! return [`Stacks`]. [`Profile::new`] assigns each stack to a [`Category`] by the rules in `categories/*.toml`;
//! [`text()`], [`page()`] and [`flame`] show the result, and [`Difference`] compares two of them.

mod category;
mod difference;
mod error;
pub mod flame;
mod folded;
mod page;
mod perf;
mod profile;
mod record;
mod rules;
mod script;
mod stacks;
mod symbol;
mod text;
mod unwind;

pub use category::Category;
pub use difference::{Change, Difference};
pub use error::ProfileError;
pub use page::page;
pub use perf::check;
pub use profile::{CategoryShare, Contributor, Profile, Share};
pub use record::{Recorded, Recording, is_java, record, remove_maps, sampled, sampler};
pub use rules::{Rules, RulesError};
pub use stacks::{Frame, Stack, Stacks, UNRESOLVED};
pub use text::{hints, text, text_of_difference};
pub use unwind::{Unwind, is_go};

use std::path::Path;

/// Loads a `perf.data` file, or folded stacks as [`Stacks::folded`] writes them.
///
/// # Errors
/// The file is unreadable, is neither of these, or has no samples; for `perf.data`, `perf` is missing or fails.
pub fn read(file: &Path) -> Result<Stacks, ProfileError> {
    let stacks = match perf::is_perf_data(file)? {
        true => script::parse(&perf::script(file)?),
        false => folded::read(file)?,
    };
    match stacks.samples() {
        0 => Err(ProfileError::Empty { file: file.into() }),
        _ => Ok(stacks),
    }
}
