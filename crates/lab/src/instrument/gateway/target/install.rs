//! `weir targets install`: runs a target's script and checks its result.

use super::description::Install;
use super::find::{Absent, look};
use super::{Target, Targets, samples};
use crate::base::duration::duration;
use crate::base::error::{ConfigError, LabError};
use crate::experiment::Experiment;
use crate::experiment::options::RunOptions;
use crate::found::Folders;
use crate::running::guard::Guard;
use crate::running::host::this_program;
use crate::running::interrupt::Interrupt;
use crate::running::progress::note;
use crate::running::tool;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Instant;

/// Installs a target with its own script, which may use `jobs` cores and whose output goes to standard error.
/// Returns one line for the user: the installed version. A present target without a script is left as it is;
/// a script is run again, and is quick if there is nothing to do.
///
/// # Errors
/// An unknown target, an invalid description, an absent target without a script (with the hints of its description), a
/// script that fails, and one after which the target is still absent.
pub fn install(folders: &Folders, name: &str, jobs: usize) -> Result<String, LabError> {
    let values = samples()?;
    let directory = folders.folder(name)?;
    let (target, absent) = look(&directory, name, &values)?;
    if let Some(other) = target.description.installed.as_ref().filter(|other| *other != name) {
        return install(folders, other, jobs);
    }
    let Some(install) = &target.description.install else {
        return match absent {
            None => Ok(format!("{}; it has no install script and needs none", present(&target))),
            Some(why) => Err(ConfigError::new(name, format!("it has no install script: {why}")).into()),
        };
    };
    let (interrupt, guard) = (Interrupt::on_signals()?, Guard::start(&this_program()?)?);
    build(&target, install, jobs, &interrupt, &guard)?;
    match look(&directory, name, &values)? {
        (target, None) => Ok(present(&target)),
        (_, Some(why)) => Err(failed(name, format!("{} succeeded, but {why}", install.script.display()))),
    }
}

/// Installs the absent targets that an experiment or its options name. Returns whether any is present now.
/// Errors: an interrupt.
pub(crate) fn install_wanted(
    experiment: &Experiment,
    targets: &Targets,
    options: &RunOptions,
    interrupt: &Interrupt,
) -> Result<bool, LabError> {
    let is_wanted = |name: &String| match options.install {
        Some(all) => all,
        None => experiment.install.contains(name),
    };
    let is_left_out = |name: &str| {
        let mut named = options.only.iter().filter(|(key, _)| key == "target").peekable();
        named.peek().is_some() && named.all(|(_, only)| only != name)
    };
    let mut is_any_here = false;
    for (name, Absent { target, .. }) in targets.absent.iter().filter(|(name, _)| is_wanted(name)) {
        // One that runs another's installation says which one to install.
        let is_own = target.description.installed.is_none();
        let Some(install) = target.description.install.as_ref().filter(|_| is_own && !is_left_out(name))
        else {
            continue;
        };
        let guard = Guard::start(&this_program()?)?;
        match build(target, install, tool::jobs(), interrupt, &guard) {
            Ok(()) => is_any_here = true,
            Err(error) if interrupt.is_set() => return Err(error),
            Err(error) => note(format_args!("{error}\n{name}: skipped; the others are measured")),
        }
    }
    Ok(is_any_here)
}

/// Runs the script of a target, one at a time on this machine.
fn build(
    target: &Target,
    install: &Install,
    jobs: usize,
    interrupt: &Interrupt,
    guard: &Guard,
) -> Result<(), LabError> {
    let name = &target.name;
    let script = target.directory.join(&install.script);
    if !script.is_file() {
        let message = format!("install.script: {} does not exist", script.display());
        return Err(ConfigError::new(target.file().display(), message).into());
    }
    let _turn = tool::lock(name, &target.installed)?;
    let place = target.installed.display();
    note(format_args!("{name}: installing into {place}, once (takes {})", install.takes));
    let began = Instant::now();
    let status = run(target, &install.script, jobs, interrupt, guard)
        .map_err(|source| LabError::System { action: "running an install script with bash", source })?;
    if interrupt.is_set() {
        return Err(failed(name, "interrupted; run it again to continue".into()));
    }
    if !status.success() {
        let message = format!("{} failed: {status}; its last output is above", script.display());
        return Err(failed(name, message));
    }
    note(format_args!("{name}: installed in {}", duration(began.elapsed())));
    Ok(())
}

fn failed(name: &str, message: String) -> LabError {
    LabError::Install { target: name.to_owned(), message }
}

fn present(target: &Target) -> String {
    match target.version.as_str() {
        "" => format!("{}: present", target.name),
        version => format!("{}: present, version {version}", target.name),
    }
}

fn run(
    target: &Target,
    script: &Path,
    jobs: usize,
    interrupt: &Interrupt,
    guard: &Guard,
) -> io::Result<ExitStatus> {
    let mut bash = Command::new("bash");
    bash.arg(script).current_dir(&target.directory);
    bash.env("WEIR_INSTALL", &target.installed).env("WEIR_JOBS", jobs.to_string());
    tool::run(bash, interrupt, guard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{guard_input, no_guard};
    use std::fs::{self, File, TryLockError};
    use std::time::Duration;

    /// A directory with a target `fast` and this install script for it.
    fn installable(script: &str, more: &str) -> (tempfile::TempDir, Target) {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("fast");
        fs::create_dir(&folder).expect("is made");
        let description = format!(
            "title = 'T'\nabout = 'A'\nmodes = ['h1c']\nrequires = '{{{{installed}}}}/fast'\n{more}\n\
            version = {{ command = ['{{{{installed}}}}/fast'], after = 'fast ' }}\n\
            [install]\nscript = 'install.sh'\ntakes = 'no time'\n"
        );
        fs::write(folder.join("target.toml"), description).expect("is written");
        fs::write(folder.join("install.sh"), script).expect("is written");
        let (mut target, _) = look(directory.path(), "fast", &samples().expect("values")).expect("is read");
        target.installed = directory.path().join("installed/fast");
        fs::create_dir_all(&target.installed).expect("is made");
        (directory, target)
    }

    #[test]
    fn a_script_gets_its_directory_and_cores() {
        let script = "echo \"$PWD $WEIR_JOBS\" >\"$WEIR_INSTALL/output\"";
        let (directory, target) = installable(script, "");
        let status = run(&target, Path::new("install.sh"), 3, &Interrupt::default(), &no_guard());
        assert!(status.expect("runs").success());
        let output = fs::read_to_string(target.installed.join("output")).expect("is written");
        assert_eq!(output.trim(), format!("{} 3", directory.path().join("fast").display()));
    }

    #[test]
    fn an_interrupt_kills_the_script_and_its_children() {
        let (_directory, target) = installable("sleep 1000 & echo $! >\"$WEIR_INSTALL/pid\"; wait", "");
        let interrupt = Interrupt::default();
        let status = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(&target, Path::new("install.sh"), 1, &interrupt, &no_guard()));
            let deadline = std::time::Instant::now() + Duration::from_secs(20);
            let pid = target.installed.join("pid");
            while !fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')) {
                assert!(std::time::Instant::now() < deadline, "the script did not begin");
                std::thread::yield_now();
            }
            interrupt.set();
            running.join().expect("no panic").expect("runs")
        });
        assert!(!status.success());
    }

    /// Regression test: a closed terminal kills this process, but no script in a group of its own, with its compilers.
    #[test]
    fn the_guard_knows_of_a_script() {
        let (_directory, target) = installable("printf $$ >\"$WEIR_INSTALL/pid\"", "");
        let output = guard_input(|guard| {
            run(&target, Path::new("install.sh"), 1, &Interrupt::default(), guard).expect("runs");
        });
        let pid = fs::read_to_string(target.installed.join("pid")).expect("is written");
        assert_eq!(output, format!("+{pid}\n-{pid}\n"));
    }

    #[test]
    fn two_installs_take_turns() {
        let (_directory, target) = installable("", "");
        let first = tool::lock("fast", &target.installed).expect("locks");
        let path = target.installed.with_extension("lock");
        let second = File::open(&path).expect("opens");
        assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
        drop(first);
        assert!(second.try_lock().is_ok());
    }
}
