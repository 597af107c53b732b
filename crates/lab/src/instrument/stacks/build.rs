//! Lists and builds engines, independently of each other: one that fails to build is absent, the others run.

use super::engine::{Engine, Variant};
use crate::base::error::LabError;
use crate::base::files::{add_files, on_path};
use crate::base::hash;
use crate::found::Folders;
use crate::running::guard::Guard;
use crate::running::host::this_program;
use crate::running::interrupt::Interrupt;
use crate::running::progress::note;
use crate::running::tool;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The file in an engine's target directory with the hash of the sources it was built from.
const STAMP: &str = "weir-built";

/// The engines in these directories with their versions, and whether they are built.
///
/// # Errors
/// Directories without any engine. An invalid description is reported in its row.
pub fn list(folders: &Folders) -> Result<String, LabError> {
    let row = |name: String| match Engine::read(folders, &name) {
        Ok(engine) => {
            let state = if engine.is_built(&Variant::plain()) { "built" } else { "not built" };
            [name, engine.description.version, engine.description.crypto, state.to_owned()]
        }
        Err(error) => [name, String::new(), String::new(), format!("broken: {error}")],
    };
    let head = ["engine", "version", "crypto", "state"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(folders.names()?.into_iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let [name, version, crypto] = [0, 1, 2].map(width);
    let mut text = String::new();
    for [first, second, third, state] in &rows {
        let _ = writeln!(text, "{first:<name$}  {second:<version$}  {third:<crypto$}  {state}");
    }
    if rows.iter().any(|row| row[3] == "not built") {
        text += "\nBuild one with `weir stacks build NAME`; `weir stacks run` builds those it needs.\n";
    }
    Ok(text)
}

/// Builds the named engines, or all. Returns the outcome of each, and the number of failures.
///
/// # Errors
/// An unknown name, an invalid description, an interrupt.
pub fn build(folders: &Folders, names: &[String], jobs: usize) -> Result<(String, usize), LabError> {
    let names = if names.is_empty() { folders.names()? } else { names.to_vec() };
    let engines = names.iter().map(|name| Engine::read(folders, name)).collect::<Result<Vec<_>, _>>()?;
    let interrupt = Interrupt::on_signals()?;
    let guard = Guard::start(&this_program()?)?;
    let (mut text, mut failed) = (String::new(), 0);
    for engine in &engines {
        let about = &engine.description;
        note(format_args!("{}: {} {}", engine.name, about.stack, about.version));
        match engine.build(&Variant::plain(), jobs, &interrupt, &guard) {
            Ok(()) => drop(writeln!(text, "{}: built", engine.name)),
            Err(error) if interrupt.is_set() => return Err(error),
            Err(error) => {
                failed += 1;
                let _ = writeln!(text, "{error}");
            }
        }
    }
    Ok((text, failed))
}

impl Engine {
    /// Whether a variant is built from the present sources.
    pub(crate) fn is_built(&self, variant: &Variant) -> bool {
        let stamp = fs::read_to_string(self.target(variant).join(STAMP));
        stamp.is_ok_and(|stamp| self.sources().is_ok_and(|sources| stamp.trim() == sources))
    }

    /// The hash of its own directory, of the further sources that it names, and of the files that engines share.
    pub(crate) fn sources(&self) -> Result<String, LabError> {
        let mut files = Vec::new();
        add_files(&self.directory, &mut files);
        for source in &self.description.sources {
            let source = self.directory.join(source);
            match source.is_dir() {
                true => add_files(&source, &mut files),
                false => files.push(source),
            }
        }
        if let Some(engines) = self.directory.parent() {
            add_files(&engines.join("common"), &mut files);
        }
        files.sort();
        hash::files(&files)
    }

    /// Builds a variant that is not built yet.
    /// Errors: a missing program, a failed build, an interrupt.
    pub(crate) fn build(
        &self,
        variant: &Variant,
        jobs: usize,
        interrupt: &Interrupt,
        guard: &Guard,
    ) -> Result<(), LabError> {
        let failed = |message: String| LabError::Install { target: self.name.clone(), message };
        let path = std::env::var_os("PATH");
        let is_missing = |name: &&str| on_path(name, path.as_deref()).is_none();
        let compiler = Some(variant.compiler.as_str()).filter(|name| *name != Variant::PLAIN);
        let needs = self.description.needs.iter().map(String::as_str).chain(compiler);
        let missing: Vec<&str> = needs.filter(is_missing).collect();
        if !missing.is_empty() {
            return Err(failed(format!("needs {}, not on the PATH", missing.join(", "))));
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
            return Err(failed("interrupted; run the command again to continue".into()));
        }
        if !status.success() {
            return Err(failed(format!("build failed: {status}; see its output above")));
        }
        let stamp = target.join(STAMP);
        fs::write(&stamp, sources + "\n").map_err(LabError::file(stamp, "cannot write"))
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
