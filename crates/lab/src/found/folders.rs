//! The search path of targets and engines.

use super::built_in;
use super::file::ExperimentFile;
use crate::base::error::{ConfigError, LabError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Directories of targets or engines: the first one with the wanted name wins; the built-in ones come last.
#[derive(Clone, Debug)]
pub struct Folders {
    kind: Kind,
    folders: Vec<PathBuf>,
    with_built_in: bool,
}

/// The kind of subject.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Targets,
    Engines,
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Self::Targets => "targets",
            Self::Engines => "engines",
        }
    }

    fn one(self) -> &'static str {
        match self {
            Self::Targets => "target",
            Self::Engines => "engine",
        }
    }

    /// The file that marks the directory of a target or an engine.
    fn file(self) -> &'static str {
        match self {
            Self::Targets => "target.toml",
            Self::Engines => "engine.toml",
        }
    }
}

impl Folders {
    /// Targets: in the given directory only; by default in `targets` of the current directory, beside the program, and
    /// built in.
    pub fn targets(directory: Option<&Path>) -> Self {
        Self::of(Kind::Targets, directory)
    }

    /// Engines, as for [`Self::targets`].
    pub fn engines(directory: Option<&Path>) -> Self {
        Self::of(Kind::Engines, directory)
    }

    fn of(kind: Kind, directory: Option<&Path>) -> Self {
        match directory {
            Some(folder) => Self { kind, folders: vec![folder.to_owned()], with_built_in: false },
            None => {
                let local = PathBuf::from(kind.folder());
                let folders =
                    [local].into_iter().filter(|folder| folder.is_dir()).chain(beside(kind.folder()));
                Self { kind, folders: folders.collect(), with_built_in: true }
            }
        }
    }

    /// Puts the directory of an experiment first; by default `../targets` or `../engines`, which need not exist.
    /// Errors: any other directory that does not exist.
    pub(crate) fn of_experiment(mut self, file: &ExperimentFile, directory: &Path) -> Result<Self, String> {
        let is_default = directory == Path::new("..").join(self.kind.folder());
        // An experiment that came with the program uses the default search path.
        if is_default && !file.is_own {
            return Ok(self);
        }
        let folder = file.base.join(directory);
        match folder.is_dir() {
            true => self.folders.insert(0, folder),
            false if is_default => {}
            false => return Err(format!("{}: no such directory", folder.display())),
        }
        Ok(self)
    }

    /// The directory that contains the target or engine of this name.
    /// Errors: an unknown name, with the known ones; a cache that cannot be written.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, LabError> {
        let Self { kind, folders, with_built_in } = self;
        let has = |folder: &&PathBuf| folder.join(name).join(kind.file()).is_file();
        if let Some(folder) = folders.iter().find(has) {
            return Ok(folder.clone());
        }
        if *with_built_in && built_in::has(&format!("{}/{name}/{}", kind.folder(), kind.file())) {
            return Ok(built_in::unpacked()?.join(kind.folder()));
        }
        let known = self.names()?.join(", ");
        let message = format!("unknown name `{name}`, not in {}: expected one of {known}", self.words());
        Err(ConfigError::new(kind.one(), message).into())
    }

    /// All names, sorted.
    /// Errors: no target or engine at all.
    pub(crate) fn names(&self) -> Result<Vec<String>, ConfigError> {
        let Self { kind, folders, with_built_in } = self;
        let mut names: BTreeSet<String> =
            folders.iter().flat_map(|folder| subfolders(folder, *kind)).collect();
        if *with_built_in {
            let of_file = |path: &str| Some(path.strip_suffix(kind.file())?.strip_suffix('/')?.to_owned());
            names.extend(built_in::below(kind.folder()).filter_map(of_file));
        }
        if names.is_empty() {
            let message =
                format!("no {} found: expected subdirectories with {} files", kind.one(), kind.file());
            return Err(ConfigError::new(self.words(), message));
        }
        Ok(names.into_iter().collect())
    }

    /// The search path, for a message.
    fn words(&self) -> String {
        let folders = self.folders.iter().map(|folder| folder.display().to_string());
        folders
            .chain(self.with_built_in.then(|| format!("built-in {}", self.kind.folder())))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// The names of the subdirectories that contain the marker file.
fn subfolders(folder: &Path, kind: Kind) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |path: &Path| path.join(kind.file()).is_file();
    entries
        .filter(|entry| is_one(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// The directories of this name beside the program: in `PREFIX/share/weir` for `PREFIX/bin/weir`, and in the checkout
/// that the program was built in.
pub(super) fn beside(name: &'static str) -> impl Iterator<Item = PathBuf> {
    let program = env::current_exe().unwrap_or_default();
    beside_program(&program).into_iter().map(move |folder| folder.join(name)).filter(|folder| folder.is_dir())
}

fn beside_program(program: &Path) -> Vec<PathBuf> {
    let prefix = program.parent().filter(|folder| folder.ends_with("bin")).and_then(Path::parent);
    let output = program.ancestors().find(|folder| folder.ends_with("target"));
    let checkout =
        output.and_then(Path::parent).filter(|folder| folder.join("crates/weir/Cargo.toml").is_file());
    prefix.map(|prefix| prefix.join("share/weir")).into_iter().chain(checkout.map(Path::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories with targets of these names.
    fn folders(names: &[&[&str]]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let root = tempfile::tempdir().expect("a directory");
        let make = |(index, names): (usize, &&[&str])| {
            let folder = root.path().join(index.to_string());
            for name in *names {
                fs::create_dir_all(folder.join(name)).expect("is made");
                fs::write(folder.join(name).join("target.toml"), "").expect("is written");
            }
            folder
        };
        let folders = names.iter().enumerate().map(make).collect();
        (root, folders)
    }

    #[test]
    fn the_first_directory_with_the_name_wins() {
        let (_root, all) = folders(&[&["mine", "nginx"], &["mine", "other"]]);
        let found = Folders { kind: Kind::Targets, folders: all.clone(), with_built_in: true };
        for (name, folder) in [("mine", &all[0]), ("nginx", &all[0]), ("other", &all[1])] {
            assert_eq!(found.folder(name).expect("is found"), *folder, "{name}");
        }
        let names = found.names().expect("there are some");
        let times = |name: &str| names.iter().filter(|known| *known == name).count();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(["caddy", "mine", "nginx", "other", "common"].map(times), [1, 1, 1, 1, 0], "{names:?}");
        let error = found.folder("none").expect_err("is nowhere").to_string();
        assert!(
            error.starts_with("target: unknown name `none`, not in /") && error.contains(", mine, "),
            "{error}"
        );
    }

    #[test]
    fn the_directory_of_an_experiment_goes_first_and_need_not_exist() {
        let (root, all) = folders(&[&["mine"]]);
        let file =
            |is_own| ExperimentFile { path: root.path().join("e.toml"), base: root.path().join("e"), is_own };
        let of = |is_own, directory: &str| {
            let folders = Folders { kind: Kind::Targets, folders: Vec::new(), with_built_in: true };
            folders.of_experiment(&file(is_own), Path::new(directory)).map(|found| found.folders)
        };
        fs::create_dir(root.path().join("e")).expect("is made");
        assert_eq!(of(true, "../0"), Ok(vec![root.path().join("e/../0")]));
        assert_eq!(of(true, "../targets"), Ok(vec![]), "the default");
        assert!(of(true, "../1").is_err_and(|message| message.ends_with("e/../1: no such directory")));
        fs::rename(&all[0], root.path().join("targets")).expect("is renamed");
        assert_eq!(of(true, "../targets"), Ok(vec![root.path().join("e/../targets")]));
        assert_eq!(of(false, "../targets"), Ok(vec![]), "it uses the default search path");
    }

    #[test]
    fn a_given_directory_is_the_only_one() {
        let (_root, all) = folders(&[&["mine"]]);
        let folders = Folders::targets(Some(&all[0]));
        assert_eq!(folders.names().expect("there is one"), ["mine"]);
        let error = folders.folder("nginx").expect_err("is not there").to_string();
        assert!(error.ends_with(": expected one of mine"), "{error}");
        let error = Folders::engines(Some(Path::new("/no/such"))).names().expect_err("is empty").to_string();
        assert!(error.starts_with("/no/such: no engine found: expected "), "{error}");
    }

    #[test]
    fn beside_the_program_are_its_prefix_and_its_checkout() {
        let root = tempfile::tempdir().expect("a directory");
        let of = |program: &str| beside_program(&root.path().join(program));
        assert_eq!(of("bin/weir"), [root.path().join("share/weir")]);
        assert!(of("target/release/weir").is_empty() && of("weir").is_empty());
        fs::create_dir_all(root.path().join("crates/weir")).expect("is made");
        fs::write(root.path().join("crates/weir/Cargo.toml"), "").expect("is written");
        for program in ["target/release/weir", "target/x86_64-unknown-linux-gnu/debug/weir"] {
            assert_eq!(of(program), [root.path()]);
        }
    }
}
