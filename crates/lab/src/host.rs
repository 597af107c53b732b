//! What every run needs of the machine: this program, and cores to run on.

use crate::error::{ConfigError, LabError};
use crate::process;
use std::path::PathBuf;

/// The program that is running now, which is origin and load engine too.
pub(crate) fn this_program() -> Result<PathBuf, LabError> {
    std::env::current_exe()
        .map_err(|source| LabError::System { action: "finding this program's own file", source })
}

/// Cores must be known before anything is placed.
pub(crate) fn allowed_cores() -> Result<Vec<usize>, LabError> {
    let cores = process::allowed_cores()
        .map_err(|source| LabError::System { action: "reading the cores that may be used", source })?;
    if cores.is_empty() {
        return Err(ConfigError::new("cores", "the system allows none").into());
    }
    Ok(cores)
}
