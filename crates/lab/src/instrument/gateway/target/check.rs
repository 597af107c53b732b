//! A target's own check of its configuration.

use super::find::look;
use super::{Target, samples};
use crate::base::error::LabError;
use crate::found::Folders;
use crate::instrument::gateway::ports::{MOST_SERVERS, Ports, first_look};
use crate::instrument::gateway::template::Values;
use crate::instrument::gateway::{Tls, issue_certificate, short_directory};
use crate::running::guard::Guard;
use crate::running::host::{allowed_cores, this_program};
use crate::running::interrupt::Interrupt;
use crate::running::process::{Process, Stop, StopSignal, Waited};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The timeout of a check: a JVM on a busy machine needs some seconds, and so does collecting a heap of some GB.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Whether a target accepted its configuration; the error is its output.
pub(crate) type Accepted = Result<(), String>;

/// The outcomes of the targets' checks.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// A line for each mode of each target, or why a target was not checked.
    pub text: String,
    /// Rejected configurations, and absent targets that were named.
    pub failed: u32,
}

/// Renders each mode of the named targets, or of all, with a certificate of its own and runs the
/// target's own check on it.
///
/// # Errors
/// An unknown target, an invalid description or template; no certificate, port or directory available.
pub fn check(folders: &Folders, wanted: &[String]) -> Result<Checks, LabError> {
    let all = folders.names()?;
    let values = samples()?;
    let interrupt = Interrupt::on_signals()?;
    let guard = Guard::start(&this_program()?)?;
    let mut checks = Checks::default();
    let chosen = if wanted.is_empty() { &all } else { wanted };
    let width = chosen.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for name in chosen.iter().take_while(|_| !interrupt.is_set()) {
        let (target, absent) = look(&folders.folder(name)?, name, &values)?;
        let mut say = |words: &str| _ = writeln!(checks.text, "{name:width$}  {words}");
        match absent {
            Some(why) => {
                say(&format!("absent: {why}"));
                checks.failed += u32::from(!wanted.is_empty());
            }
            None if target.description.check.is_none() => say("has no check of its own"),
            None => {
                for (mode, outcome) in each_mode(&target, &values, &interrupt, &guard)? {
                    match outcome {
                        Ok(()) => say(&format!("{mode:7}  accepted")),
                        Err(words) => {
                            say(&format!("{mode:7}  rejected: {words}"));
                            checks.failed += 1;
                        }
                    }
                }
            }
        }
    }
    Ok(checks)
}

/// The outcome of each mode's check.
fn each_mode(
    target: &Target,
    values: &Values,
    interrupt: &Interrupt,
    guard: &Guard,
) -> Result<Vec<(String, Accepted)>, LabError> {
    let place = tempfile::tempdir()
        .map_err(|source| LabError::System { action: "creating a temporary directory", source })?;
    issue_certificate(&Tls::default(), place.path())?;
    let mut outcomes = Vec::new();
    for &mode in &target.description.modes {
        let work = place.path().join(mode.to_string());
        fs::create_dir(&work).map_err(LabError::file(&work, "cannot be created"))?;
        let short = short_directory()?;
        // A check may bind its listener, so the ports are real.
        let ports = Ports::find(first_look())?;
        let values = values
            .clone()
            .with_certificate(place.path())
            .with("dir", work.display())
            .with("short_dir", short.path().display())
            .with_ports(&ports, MOST_SERVERS);
        let Some(prepared) = target.prepare(mode, &values)? else { continue };
        for (name, text) in &prepared.files {
            let path = work.join(name);
            fs::write(&path, text).map_err(LabError::file(path, "cannot be written"))?;
        }
        if let Some(command) = &prepared.check {
            outcomes.push((mode.to_string(), run_check("check", command, &work, interrupt, guard).flatten()));
        }
    }
    Ok(outcomes)
}

/// Runs a short command, such as a target's check, in the directory of its files, and returns its verdict, which is its
/// exit code. The error says why there is none: it did not start, or did not finish.
pub(crate) fn run_check(
    name: &str,
    command: &[String],
    directory: &Path,
    interrupt: &Interrupt,
    guard: &Guard,
) -> Result<Accepted, String> {
    let program = command.first().map_or("", String::as_str);
    let failed = |error: std::io::Error| format!("{program}: {error}");
    let cores = allowed_cores().map_err(|error| error.to_string())?;
    let mut process = Process::start(name, command, &cores, directory).map_err(failed)?;
    guard.watch(process.pid());
    let waited = process.wait(TIMEOUT, interrupt);
    let exit = process.finish(Stop { signal: StopSignal::Term, timeout_ms: 0 });
    guard.release(process.pid());
    let exit = exit.map_err(failed)?;
    match (waited, exit.code) {
        (Waited::Deadline, _) => Err(format!("{program}: timed out after {} s", TIMEOUT.as_secs())),
        (Waited::Interrupted, _) => Err(format!("{program}: interrupted")),
        (Waited::Ended, None) => Err(format!("{program}: {}", exit.status)),
        (Waited::Ended, Some(0)) => Ok(Ok(())),
        (Waited::Ended, Some(_)) => {
            let words = process.last_words();
            Ok(Err(if words.is_empty() { format!("{program}: {}", exit.status) } else { words }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{guard_input, no_guard};

    fn words(command: &[&str]) -> Vec<String> {
        command.iter().map(|word| (*word).to_owned()).collect()
    }

    fn run(command: &[&str], interrupt: &Interrupt) -> Result<Accepted, String> {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("fast.conf"), "port 8080").expect("is written");
        run_check("check", &words(command), directory.path(), interrupt, &no_guard())
    }

    fn checked(script: &str) -> Accepted {
        run(&["sh", "-c", script], &Interrupt::default()).expect("a judgement")
    }

    #[test]
    fn a_check_runs_where_the_files_are() {
        assert_eq!(checked("grep -q 8080 fast.conf"), Ok(()));
    }

    #[test]
    fn a_failed_check_says_why() {
        assert_eq!(checked("echo 'line 3: no such key' >&2; exit 1"), Err("line 3: no such key".into()));
        assert_eq!(checked("echo output; exit 1"), Err("output".into()));
        assert_eq!(checked("exit 4"), Err("sh: exit status: 4".into()));
    }

    #[test]
    fn a_check_that_does_not_finish_gives_no_verdict() {
        let missing = run(&["/no/such/program"], &Interrupt::default());
        assert!(missing.expect_err("cannot start").starts_with("/no/such/program: "));
        let killed = run(&["sh", "-c", "kill -KILL $$"], &Interrupt::default());
        assert!(killed.expect_err("has no exit code").starts_with("sh: signal: 9"));
    }

    /// A check may take a minute; an interrupted lab must not wait for that.
    #[test]
    fn an_interrupt_ends_a_check() {
        let interrupt = Interrupt::default();
        interrupt.set();
        assert_eq!(run(&["sleep", "1000"], &interrupt), Err("sleep: interrupted".into()));
    }

    /// Regression test: a check that was not registered outlived a killed lab.
    #[test]
    fn the_guard_knows_of_a_check() {
        let directory = tempfile::tempdir().expect("a directory");
        let command = words(&["sh", "-c", "printf $$ >pid"]);
        let output = guard_input(|guard| {
            let accepted = run_check("check", &command, directory.path(), &Interrupt::default(), guard);
            assert_eq!(accepted, Ok(Ok(())));
        });
        let pid = fs::read_to_string(directory.path().join("pid")).expect("is written");
        assert_eq!(output, format!("+{pid}\n-{pid}\n"));
    }
}
