//! The file of an experiment, and the base of its relative paths.

use std::path::PathBuf;

/// An experiment's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentFile {
    /// Its path.
    pub path: PathBuf,
    /// The base of `targets_directory`: the file's own directory, or the current one if the file came with the program.
    pub base: PathBuf,
    /// Whether it is the user's own, rather than one that came with the program.
    pub is_own: bool,
}
