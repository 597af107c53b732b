//! Builds engines, each apart from the others: one that fails is absent, and the rest goes on.

use super::engine::{Engine, Variant};
use crate::error::LabError;
use crate::files::{add_files, on_path};
use crate::guard::Guard;
use crate::hash;
use crate::interrupt::Interrupt;
use crate::tool;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was built and of which sources, in an engine's target folder.
const STAMP: &str = "weir-built";

impl Engine {
    /// Whether a variant is built of the sources that are here.
    pub(crate) fn is_built(&self, variant: &Variant) -> bool {
        let stamp = fs::read_to_string(self.target(variant).join(STAMP));
        stamp.is_ok_and(|stamp| self.sources().is_ok_and(|sources| stamp.trim() == sources))
    }

    /// The hash of its own folder and of what engines share.
    pub(crate) fn sources(&self) -> Result<String, LabError> {
        let mut files: Vec<PathBuf> = Vec::new();
        add_files(&self.directory, &mut files);
        if let Some(engines) = self.directory.parent() {
            add_files(&engines.join("common"), &mut files);
        }
        files.sort();
        hash::files(&files)
    }

    /// Builds a variant that is not built yet.
    ///
    /// # Errors
    /// A program that the build needs is not here, the build fails, or it was interrupted.
    pub(crate) fn build(
        &self,
        variant: &Variant,
        jobs: usize,
        interrupt: &Interrupt,
        guard: &mut Guard,
    ) -> Result<(), LabError> {
        let failed = |message: String| LabError::Install { target: self.name.clone(), message };
        let path = std::env::var_os("PATH");
        let is_missing = |name: &&str| on_path(name, path.as_deref()).is_none();
        let needs = self.description.needs.iter().map(String::as_str);
        let missing: Vec<&str> = needs.filter(is_missing).collect();
        if !missing.is_empty() {
            return Err(failed(format!("it needs {}: not on the PATH", missing.join(", "))));
        }
        let target = self.target(variant);
        let _turn = tool::lock(&self.name, &target)?;
        if self.is_built(variant) {
            return Ok(());
        }
        let sources = self.sources()?;
        let mut build = self.command(variant, &target);
        build.env("CARGO_BUILD_JOBS", jobs.to_string()).env("WEIR_JOBS", jobs.to_string());
        let status = tool::run(build, interrupt, guard)
            .map_err(|error| failed(format!("{}: {error}", self.description.build[0])))?;
        if interrupt.is_set() {
            return Err(failed("interrupted; a second call goes on".into()));
        }
        if !status.success() {
            return Err(failed(format!("its build failed: {status}; its last words are above")));
        }
        let stamp = target.join(STAMP);
        fs::write(&stamp, sources + "\n").map_err(LabError::file(stamp, "cannot be written"))
    }

    fn command(&self, variant: &Variant, target: &Path) -> Command {
        let mut words = self.words(&self.description.build, target);
        if variant.allocator != Variant::plain().allocator {
            words.extend(["--features".to_owned(), variant.allocator.to_string()]);
        }
        let mut build = Command::new(&words[0]);
        build.args(&words[1..]).current_dir(&self.directory);
        match variant.compiler.as_str() {
            "gcc" => drop(build.env("CC", "gcc").env("CXX", "g++")),
            "clang" => drop(build.env("CC", "clang").env("CXX", "clang++")),
            _ => {}
        }
        build
    }
}
