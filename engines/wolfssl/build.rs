//! Links the distribution's wolfSSL, if it is the one of engine.toml.

use std::env;
use std::fs;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=engine.toml");
    println!("cargo:rerun-if-changed=build.rs");
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<(), String> {
    let toml = fs::read_to_string("engine.toml").map_err(|error| format!("engine.toml: {error}"))?;
    let wanted = toml
        .lines()
        .find_map(|line| line.strip_prefix("version = \"")?.split('"').next())
        .ok_or("engine.toml: no version")?;
    let found = output(Command::new("pkg-config").args(["--modversion", "wolfssl"]))?;
    if found != wanted {
        return Err(format!("engine.toml says wolfssl {wanted}, this machine has {found}"));
    }
    let rustc =
        output(Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())).arg("--version"))?;
    let rustc = rustc.split(' ').take(2).collect::<Vec<_>>().join(" ");
    println!("cargo:rustc-env=ENGINE_COMPILER={rustc}; wolfSSL as distributed");
    println!("cargo:rustc-link-lib=wolfssl");
    Ok(())
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
