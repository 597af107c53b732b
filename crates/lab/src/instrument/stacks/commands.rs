//! The commands that are about engines and no experiment: list, build.

use super::engine::{Engine, Variant};
use crate::error::LabError;
use crate::found::Folders;
use crate::guard::Guard;
use crate::host::this_program;
use crate::interrupt::Interrupt;
use crate::progress::tell;
use std::fmt::Write;

/// The engines of these folders with their versions, and whether they are built.
///
/// # Errors
/// Folders without any engine. A description that is wrong is a row that says so.
pub fn list(folders: &Folders) -> Result<String, LabError> {
    let read = |name: String| Engine::read(folders, &name).map_err(|error| (name, error.to_string()));
    Ok(render(&folders.names()?.into_iter().map(read).collect::<Vec<_>>()))
}

/// Builds engines: those named, or all. Returns what became of each, and how many failed.
///
/// # Errors
/// An unknown name, a wrong description among those named, an interrupt.
pub fn build(folders: &Folders, names: &[String], jobs: usize) -> Result<(String, usize), LabError> {
    let names = if names.is_empty() { folders.names()? } else { names.to_vec() };
    let engines = names.iter().map(|name| Engine::read(folders, name)).collect::<Result<Vec<_>, _>>()?;
    let interrupt = Interrupt::on_signals()?;
    let mut guard = Guard::start(&this_program()?)?;
    let (mut text, mut failed) = (String::new(), 0);
    for engine in &engines {
        let about = &engine.description;
        tell(format_args!("{}: {} {}", engine.name, about.stack, about.version));
        match engine.build(&Variant::plain(), jobs, &interrupt, &mut guard) {
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

/// The engines of a folder: what is built, and in which versions.
fn render(engines: &[Result<Engine, (String, String)>]) -> String {
    let row = |engine: &Result<Engine, (String, String)>| match engine {
        Ok(engine) => {
            let about = &engine.description;
            let state = if engine.is_built(&Variant::plain()) { "built" } else { "not built" };
            [&engine.name, &about.version, &about.crypto, state].map(str::to_owned)
        }
        Err((name, why)) => [name.clone(), String::new(), String::new(), format!("broken: {why}")],
    };
    let head = ["engine", "version", "crypto", "state"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(engines.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let [name, version, crypto] = [0, 1, 2].map(width);
    let mut text = String::new();
    for [first, second, third, state] in &rows {
        let _ = writeln!(text, "{first:<name$}  {second:<version$}  {third:<crypto$}  {state}");
    }
    if rows.iter().any(|row| row[3] == "not built") {
        text.push_str(
            "\n`weir stacks build NAME` builds one; `weir stacks run` builds those that it needs.\n",
        );
    }
    text
}
