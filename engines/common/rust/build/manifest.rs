//! Reading engine.toml and compiler versions in build scripts.

use std::env;
use std::fs;
use std::process::{Command, ExitCode};

/// Ends a build script, with the reason on failure.
pub(crate) fn end(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// A file's text.
pub(crate) fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
}

/// A string of engine.toml's first table.
pub(crate) fn value<'a>(toml: &'a str, key: &str) -> Result<&'a str, String> {
    toml.lines()
        .take_while(|line| !line.starts_with('['))
        .find_map(|line| {
            line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')
        })
        .and_then(|rest| rest.split('"').next())
        .ok_or_else(|| format!("engine.toml: no string `{key}`"))
}

/// rustc and its version.
pub(crate) fn rustc() -> Result<String, String> {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = output(Command::new(rustc).arg("--version"))?;
    Ok(version.split(' ').take(2).collect::<Vec<_>>().join(" "))
}

/// The output of a successful command.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
