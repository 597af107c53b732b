//! A target's own check of its configuration.

use crate::interrupt::Interrupt;
use crate::process::{Process, Waited, allowed_cores};
use crate::target::{Stop, StopSignal};
use std::path::Path;
use std::time::Duration;

/// How long a check may take: a JVM on a busy machine needs some seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs a target's check in the directory that holds its rendered files. The error is what it said last.
pub fn run_check(command: &[String], directory: &Path) -> Result<(), String> {
    let program = command.first().map_or("", String::as_str);
    let failed = |error: std::io::Error| format!("{program}: {error}");
    let cores = allowed_cores().map_err(failed)?;
    let mut process = Process::start("check", command, &cores, directory).map_err(failed)?;
    if process.wait(TIMEOUT, &Interrupt::default()) != Waited::Ended {
        return Err(format!("{program}: not done after {} s", TIMEOUT.as_secs()));
    }
    let exit = process.finish(Stop { signal: StopSignal::Term, timeout_ms: 0 }).map_err(failed)?;
    if exit.success {
        return Ok(());
    }
    let words = process.last_words();
    Err(if words.is_empty() { format!("{program}: {}", exit.status) } else { words })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(script: &str) -> Result<(), String> {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("fast.conf"), "port 8080").expect("is written");
        run_check(&["sh", "-c", script].map(str::to_owned), directory.path())
    }

    #[test]
    fn a_check_runs_where_the_files_are() {
        assert_eq!(checked("grep -q 8080 fast.conf"), Ok(()));
    }

    #[test]
    fn a_failed_check_says_why() {
        assert_eq!(checked("echo 'line 3: no such key' >&2; exit 1"), Err("line 3: no such key".into()));
        assert_eq!(checked("echo told; exit 1"), Err("told".into()));
        assert_eq!(checked("exit 4"), Err("sh: exit status: 4".into()));
        let missing = run_check(&["/no/such/program".to_owned()], Path::new("/tmp"));
        assert!(missing.expect_err("fails").starts_with("/no/such/program: "));
    }
}
