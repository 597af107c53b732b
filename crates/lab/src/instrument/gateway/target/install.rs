//! `weir targets install`: runs a target's script and looks whether it did its work.

use super::find::look;
use super::{Target, samples};
use crate::error::{ConfigError, LabError};
use crate::found::Folders;
use crate::guard::Guard;
use crate::host::this_program;
use crate::interrupt::Interrupt;
use crate::progress::tell;
use crate::tool;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// Installs a target with its own script, which may use `jobs` cores and whose words go to standard error.
/// Returns one line for people: what is there. A target that is there already is left as it is if it has no script;
/// a script is run again, and is quick where there is nothing to do.
///
/// # Errors
/// An unknown target, a wrong description, a target without a script that is not there (with what its description says
/// about getting it), a script that fails, and one after which the target is still absent.
pub fn install(folders: &Folders, name: &str, jobs: usize) -> Result<String, LabError> {
    let values = samples()?;
    let directory = folders.folder(name)?;
    let (target, absent) = look(&directory, name, &values)?;
    let Some(install) = &target.description.install else {
        return match absent {
            None => Ok(format!("{}; it has no install script and needs none", present(&target))),
            Some(why) => Err(ConfigError::new(name, format!("no script installs it: {why}")).into()),
        };
    };
    let script = target.directory.join(&install.script);
    if !script.is_file() {
        let message = format!("install.script: {} is not there", script.display());
        return Err(ConfigError::new(target.file().display(), message).into());
    }
    let _turn = tool::lock(name, &target.installed)?;
    tell(format_args!("{name}: into {} (takes {})", target.installed.display(), install.takes));
    let interrupt = Interrupt::on_signals()?;
    let mut guard = Guard::start(&this_program()?)?;
    let status = run(&target, &install.script, jobs, &interrupt, &mut guard)
        .map_err(|source| LabError::System { action: "running an install script with bash", source })?;
    let failed = |message: String| LabError::Install { target: name.to_owned(), message };
    if interrupt.is_set() {
        return Err(failed("interrupted; a second call goes on".into()));
    }
    if !status.success() {
        return Err(failed(format!("{} failed: {status}; its last words are above", script.display())));
    }
    match look(&directory, name, &values)? {
        (target, None) => Ok(present(&target)),
        (_, Some(why)) => Err(failed(format!("{} ended well, but {why}", script.display()))),
    }
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
    guard: &mut Guard,
) -> io::Result<ExitStatus> {
    let mut bash = Command::new("bash");
    bash.arg(script).current_dir(&target.directory);
    bash.env("WEIR_INSTALL", &target.installed).env("WEIR_JOBS", jobs.to_string());
    tool::run(bash, interrupt, guard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{no_guard, told_to_guard};
    use std::fs::{self, File, TryLockError};
    use std::time::Duration;

    /// A directory with a target `fast` that a script installs, and this script.
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
    fn a_script_is_told_where_and_with_how_many_cores() {
        let script = "echo \"$PWD $WEIR_JOBS\" >\"$WEIR_INSTALL/told\"";
        let (directory, target) = installable(script, "");
        let status = run(&target, Path::new("install.sh"), 3, &Interrupt::default(), &mut no_guard());
        assert!(status.expect("runs").success());
        let told = fs::read_to_string(target.installed.join("told")).expect("is written");
        assert_eq!(told.trim(), format!("{} 3", directory.path().join("fast").display()));
    }

    #[test]
    fn an_interrupt_ends_the_script_and_what_it_started() {
        let (_directory, target) = installable("sleep 1000 & echo $! >\"$WEIR_INSTALL/pid\"; wait", "");
        let interrupt = Interrupt::default();
        let status = std::thread::scope(|scope| {
            let running =
                scope.spawn(|| run(&target, Path::new("install.sh"), 1, &interrupt, &mut no_guard()));
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

    /// A closed terminal kills this process, and is not told to a script in a group of its own, whose compilers went on.
    #[test]
    fn the_guard_knows_of_a_script() {
        let (_directory, target) = installable("printf $$ >\"$WEIR_INSTALL/pid\"", "");
        let told = told_to_guard(|guard| {
            run(&target, Path::new("install.sh"), 1, &Interrupt::default(), guard).expect("runs");
        });
        let pid = fs::read_to_string(target.installed.join("pid")).expect("is written");
        assert_eq!(told, format!("+{pid}\n-{pid}\n"));
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
