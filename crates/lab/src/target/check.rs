//! A target's own check of its configuration.

use super::find::look;
use super::list::names;
use super::{SAMPLE_TLS, Stop, StopSignal, Target, samples};
use crate::error::LabError;
use crate::executor::issue_certificate;
use crate::interrupt::Interrupt;
use crate::network::free_ports;
use crate::process::{Process, Waited, allowed_cores};
use crate::template::Values;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long a check may take: a JVM on a busy machine needs some seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Whether a target accepted its configuration; the error is what it said.
type Accepted = Result<(), String>;

/// What targets said about their configurations.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// One line for each mode of each target, or why a target was not asked.
    pub text: String,
    /// Configurations that were refused, and targets asked for by name that are absent.
    pub failed: u32,
}

/// Renders each mode of the targets named, or of all that are in `directory`, with a certificate of its own and lets the
/// target's own check judge it.
///
/// # Errors
/// An unknown target, a wrong description or template; a certificate, a port or a directory that is not to be had.
pub fn check(directory: &Path, wanted: &[String]) -> Result<Checks, LabError> {
    let all = names(directory)?;
    let values = samples()?;
    let mut checks = Checks::default();
    let chosen = if wanted.is_empty() { &all } else { wanted };
    let width = chosen.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for name in chosen {
        let (target, absent) = look(directory, name, &values)?;
        let mut say = |words: &str| _ = writeln!(checks.text, "{name:width$}  {words}");
        match absent {
            Some(why) => {
                say(&format!("absent: {why}"));
                checks.failed += u32::from(!wanted.is_empty());
            }
            None if target.description.check.is_none() => say("has no check of its own"),
            None => {
                for (mode, outcome) in each_mode(&target, &values)? {
                    match outcome {
                        Ok(()) => say(&format!("{mode:7}  accepted")),
                        Err(words) => {
                            say(&format!("{mode:7}  refused: {words}"));
                            checks.failed += 1;
                        }
                    }
                }
            }
        }
    }
    Ok(checks)
}

/// What the target says to each of its modes.
fn each_mode(target: &Target, values: &Values) -> Result<Vec<(String, Accepted)>, LabError> {
    let system = |action| move |source| LabError::System { action, source };
    let place = tempfile::tempdir().map_err(system("making a temporary directory"))?;
    issue_certificate(&SAMPLE_TLS, place.path())?;
    let pem = |name: &str| place.path().join(name).display().to_string();
    let mut outcomes = Vec::new();
    for &mode in &target.modes {
        let work = place.path().join(mode.to_string());
        fs::create_dir(&work).map_err(LabError::file(&work, "cannot be made"))?;
        // A check may bind its listener, so the ports are real.
        let ports = free_ports(2, std::process::id() as u16).map_err(system("looking for free ports"))?;
        let values = values
            .clone()
            .with("dir", work.display())
            .with("listen_port", ports[0])
            .with("upstream_port", ports[1])
            .with("cert", pem("cert.pem"))
            .with("key", pem("key.pem"))
            .with("identity", pem("identity.pem"))
            .with("ca", pem("ca.pem"))
            .with("workers", 1)
            .with("connections", 64);
        let values = target.with_settings(&values, &BTreeMap::new())?;
        let Some(prepared) = target.prepare(mode, &values)? else { continue };
        for (name, text) in &prepared.files {
            let path = work.join(name);
            fs::write(&path, text).map_err(LabError::file(path, "cannot be written"))?;
        }
        if let Some(command) = &prepared.check {
            outcomes.push((mode.to_string(), run_check(command, &work)));
        }
    }
    Ok(outcomes)
}

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
