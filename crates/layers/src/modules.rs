//! The modules of a crate, found by their declarations from the crate's root on, and so without those of tests.

use crate::code;
use std::fs;
use std::io;
use std::path::Path;

/// A module in a file of its own.
#[derive(Debug)]
pub(crate) struct Module {
    /// The names from the crate's root; empty for the root itself.
    pub(crate) path: Vec<String>,
    /// Its file, relative to the root's directory.
    pub(crate) file: String,
    /// Its code without comments and tests.
    pub(crate) code: String,
}

impl Module {
    /// The room that it belongs to; the root belongs to none.
    pub(crate) fn room(&self) -> Option<&str> {
        self.path.first().map(String::as_str)
    }
}

/// The modules of the crate whose `lib.rs` is in this directory.
pub(crate) fn of_crate(source: &Path) -> io::Result<Vec<Module>> {
    let mut modules = Vec::new();
    add(source, Vec::new(), "lib.rs".into(), &mut modules)?;
    Ok(modules)
}

/// Adds a module and those that it declares.
fn add(source: &Path, path: Vec<String>, file: String, modules: &mut Vec<Module>) -> io::Result<()> {
    let text = fs::read_to_string(source.join(&file))
        .map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))?;
    let code = code::of(&text);
    for name in code::declared_modules(&code) {
        let inner = [path.as_slice(), &[name.to_owned()]].concat();
        let flat = format!("{}.rs", inner.join("/"));
        let file = if source.join(&flat).is_file() { flat } else { format!("{}/mod.rs", inner.join("/")) };
        add(source, inner, file, modules)?;
    }
    modules.push(Module { path, file, code });
    Ok(())
}
