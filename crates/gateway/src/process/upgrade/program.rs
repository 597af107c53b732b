//! The program file that an upgrade starts.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The path of this program. An upgrade starts the file that is then at the path, which may be newer than this process.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    name: OsString,
}

impl Program {
    /// The program of this process; `None` if neither its name nor the system reveals the path.
    pub(super) fn of_process() -> Option<Self> {
        let name = env::args_os().next().unwrap_or_default();
        let path = locate(&name, env::var_os("PATH").as_deref()).or_else(|| env::current_exe().ok())?;
        Some(Self { path, name })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(&self.name).args(env::args_os().skip(1));
        command
    }
}

/// Finds a program by its name, as a shell does. Does not resolve symbolic links, which may have other targets at an
/// upgrade.
fn locate(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if name.as_encoded_bytes().contains(&b'/') {
        return std::path::absolute(name).ok().filter(is_program);
    }
    let named = (!name.is_empty()).then_some(name)?;
    let files = env::split_paths(path?).map(|folder| folder.join(named));
    files.filter_map(|file| std::path::absolute(file).ok()).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_is_found_as_a_shell_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let [empty, full] = ["empty", "full"].map(|name| folder.path().join(name));
        for folder in [&empty, &full] {
            fs::create_dir(folder).unwrap();
        }
        let [file, link] = ["weir", "link"].map(|name| full.join(name));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        let path = env::join_paths([&empty, &full]).unwrap();
        let found = |name: &OsStr| locate(name, Some(&path));
        assert_eq!(found("weir".as_ref()), None, "it cannot be run");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found("weir".as_ref()), Some(file.clone()));
        assert_eq!(found("link".as_ref()), Some(link), "the link stays");
        assert_eq!(found(file.as_os_str()), Some(file));
        for name in ["", "other", "./weir"] {
            assert_eq!(found(name.as_ref()), None, "{name}");
        }
    }
}
