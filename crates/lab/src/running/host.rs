//! The requirements of every run: this program, and cores.

use crate::base::error::{ConfigError, LabError};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::path::PathBuf;

/// The running program, which is origin and load engine too.
pub(crate) fn this_program() -> Result<PathBuf, LabError> {
    std::env::current_exe()
        .map_err(|source| LabError::System { action: "finding this program's executable", source })
}

/// The allowed cores, needed before anything is pinned; at least one.
///
/// # Errors
/// The system does not report them, or allows none.
pub fn allowed_cores() -> Result<Vec<usize>, LabError> {
    let set = sched_getaffinity(None)
        .map_err(|error| LabError::System { action: "reading the allowed cores", source: error.into() })?;
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
    if cores.is_empty() {
        return Err(ConfigError::new("cores", "the system allows none to this process").into());
    }
    Ok(cores)
}
