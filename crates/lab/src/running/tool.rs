//! Build tools: installers and compilers, which run for seconds or minutes and are killed with all their children.

use crate::base::error::LabError;
use crate::running::guard::Guard;
use crate::running::interrupt::Interrupt;
use crate::running::progress::note;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The polling interval of a running tool.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs a tool in a process group of its own, so that an interrupt kills its compilers, too, and the guard does if this
/// process is killed or its terminal closes. Its output goes to standard error.
pub(crate) fn run(mut tool: Command, interrupt: &Interrupt, guard: &Guard) -> io::Result<ExitStatus> {
    // Standard output is for this program's own output.
    let mut child = tool.stdin(Stdio::null()).stdout(io::stderr()).process_group(0).spawn()?;
    guard.watch(child.id());
    let group = Pid::from_child(&child);
    let mut asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            guard.release(child.id());
            return Ok(status);
        }
        if interrupt.is_set() && !asked {
            asked = true;
            // It may just have exited.
            let _ = kill_process_group(group, Signal::TERM);
        }
        std::thread::sleep(INTERVAL);
    }
}

/// The jobs of a tool on all allowed cores.
pub(crate) fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Waits for the lock to make `what` in a directory shared by checkouts; dropping the returned file releases it.
/// Errors: the directory or its lock cannot be created.
pub(crate) fn lock(what: &str, directory: &Path) -> Result<File, LabError> {
    fs::create_dir_all(directory).map_err(LabError::file(directory, "cannot be created"))?;
    let path = directory.with_extension("lock");
    let file = File::create(&path).map_err(LabError::file(&path, "cannot be created"))?;
    let locked = match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            note(format_args!("{what}: waiting for another installation of it to finish"));
            file.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
    };
    locked.map_err(LabError::file(&path, "cannot be locked"))?;
    Ok(file)
}
