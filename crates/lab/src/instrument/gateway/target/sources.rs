//! The sources of a target: its directory, and what its install script built from it.

use super::Target;
use crate::base::files::add_files;
use crate::base::hash;
use std::fs;
use std::path::PathBuf;

/// The file that records the sources of an installed build, in the format of `sha256sum`, with paths relative to the
/// target's directory. It is in the install directory, or beside a file of `requires`.
const STAMP: &str = "sources";

impl Target {
    /// The files of its directory and of those with shared templates, and the installed files that it requires;
    /// in a fixed order.
    pub(crate) fn sources(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        add_files(&self.directory, &mut files);
        for shared in &self.description.templates {
            add_files(&self.directory.join(shared), &mut files);
        }
        files.sort();
        files.extend(self.built().cloned());
        files
    }

    fn built(&self) -> impl Iterator<Item = &PathBuf> {
        self.required.iter().filter(|file| file.starts_with(&self.installed) && file.is_file())
    }

    /// Whether it was built from other sources than the current ones, by the record of its install script.
    pub(super) fn is_stale(&self) -> bool {
        let named = self.built().filter(|file| file.ends_with(STAMP)).cloned();
        let stamps = named.chain([self.installed.join(STAMP)]);
        let stamps = stamps.filter_map(|file| fs::read_to_string(file).ok());
        stamps.into_iter().any(|stamp| stamp.lines().any(|line| !self.has(line)))
    }

    /// Whether a line of `sha256sum` matches.
    fn has(&self, line: &str) -> bool {
        let Some((sum, name)) = line.split_once("  ") else { return false };
        fs::read(self.directory.join(name)).is_ok_and(|contents| hash::bytes(&contents) == sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::target::find::look;
    use crate::instrument::gateway::template::Values;

    /// A target whose program was built from `src/main.rs`, in a directory that contains its install directory too.
    struct Built(tempfile::TempDir);

    impl Built {
        fn new() -> Self {
            let built = Self(tempfile::tempdir().expect("a directory"));
            built.write("fast/target.toml", "title = 'F'\nabout = 'A'\nmodes = ['h1c']\n");
            built.write("fast/src/main.rs", "fn main() {}");
            built.write("installed/fast", "a program");
            let sum = hash::bytes(b"fn main() {}");
            built.write("installed/sources", &format!("{sum}  src/main.rs\n"));
            built
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("is made");
            fs::write(path, text).expect("is written");
        }

        fn target(&self) -> Target {
            let (mut target, _) = look(self.0.path(), "fast", &Values::default()).expect("is read");
            target.installed = self.0.path().join("installed");
            target.required = vec![target.installed.join("fast")];
            target
        }

        fn hash(&self) -> String {
            hash::files(&self.target().sources()).expect("are read")
        }
    }

    /// Regression test: only the top-level files counted, so `--continue` mixed runs of two programs.
    #[test]
    fn sources_in_folders_and_the_installed_program_count() {
        let built = Built::new();
        let before = built.hash();
        built.write("fast/target/debug/output", "of a build by hand");
        built.write("fast/.cache/output", "of a tool");
        assert_eq!(built.hash(), before);
        built.write("fast/src/main.rs", "fn main() { }");
        let changed = built.hash();
        assert_ne!(changed, before);
        built.write("installed/fast", "another program");
        assert_ne!(built.hash(), changed);
    }

    /// Regression test: after an update of the sources, the program of the old ones was measured silently.
    #[test]
    fn a_build_from_other_sources_is_stale() {
        let built = Built::new();
        assert!(!built.target().is_stale());
        built.write("fast/src/main.rs", "fn main() { }");
        assert!(built.target().is_stale());
        fs::remove_file(built.0.path().join("fast/src/main.rs")).expect("is removed");
        assert!(built.target().is_stale());
        fs::remove_file(built.0.path().join("installed/sources")).expect("is removed");
        assert!(!built.target().is_stale(), "its script leaves nothing to compare with");
        built.write("installed/1.2/sources", "not a list of hashes\n");
        let mut target = built.target();
        target.required.push(built.0.path().join("installed/1.2/sources"));
        assert!(target.is_stale());
    }
}
