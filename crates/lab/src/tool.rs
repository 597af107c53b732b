//! Tools that make what is measured: installers and compilers, which run for seconds or minutes and are ended with all that
//! they have started.

use crate::guard::Guard;
use crate::interrupt::Interrupt;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::error::LabError;
use crate::progress::tell;

/// How often a running tool is looked at.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs a tool in a process group of its own, so that an interrupt ends its compilers, too, and the guard does when this
/// process is killed or its terminal closed. Its words go to standard error.
pub(crate) fn run(mut tool: Command, interrupt: &Interrupt, guard: &Guard) -> io::Result<ExitStatus> {
    // Standard output is for what this program says itself.
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
            // It may have ended just before.
            let _ = kill_process_group(group, Signal::TERM);
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Waits for its turn to make `what` in a directory, which checkouts share; the turn ends with the file that is returned.
/// Errors: when the directory or its lock cannot be made.
pub(crate) fn lock(what: &str, directory: &Path) -> Result<File, LabError> {
    fs::create_dir_all(directory).map_err(LabError::file(directory, "cannot be made"))?;
    let path = directory.with_extension("lock");
    let file = File::create(&path).map_err(LabError::file(&path, "cannot be made"))?;
    let locked = match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            tell(format_args!("{what}: waiting for another install of it"));
            file.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
    };
    locked.map_err(LabError::file(&path, "cannot be locked"))?;
    Ok(file)
}
