//! The requirements of every run: this program, and cores.

use crate::base::error::{ConfigError, LabError};
use crate::running::process;
use std::path::PathBuf;

/// The running program, which is origin and load engine too.
pub(crate) fn this_program() -> Result<PathBuf, LabError> {
    std::env::current_exe()
        .map_err(|source| LabError::System { action: "finding this program's executable", source })
}

/// The allowed cores, needed before anything is pinned.
pub(crate) fn allowed_cores() -> Result<Vec<usize>, LabError> {
    let cores = process::allowed_cores()
        .map_err(|source| LabError::System { action: "reading the allowed cores", source })?;
    if cores.is_empty() {
        return Err(ConfigError::new("cores", "the system allows none to this process").into());
    }
    Ok(cores)
}
