//! An experiment's file, and where what it names is looked for.

use std::path::PathBuf;

/// An experiment's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentFile {
    /// Where it is.
    pub path: PathBuf,
    /// The folder that its `targets_directory` starts from: its own, or where one stands when it came with the program.
    pub base: PathBuf,
    /// Whether it lies where one stands, and did not come with the program.
    pub is_own: bool,
}
