//! Links the distribution's wolfSSL, if it has the version in engine.toml.

#[path = "../common/rust/build/manifest.rs"]
mod manifest;

use std::process::{Command, ExitCode};

use manifest::{end, output, read, rustc, value};

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=engine.toml");
    println!("cargo:rerun-if-changed=build.rs");
    end(check())
}

fn check() -> Result<(), String> {
    let toml = read("engine.toml")?;
    let wanted = value(&toml, "version")?;
    let found = output(Command::new("pkg-config").args(["--modversion", "wolfssl"]))?;
    if found != wanted {
        return Err(format!("engine.toml needs wolfssl {wanted}, this machine has {found}"));
    }
    println!("cargo:rustc-env=ENGINE_COMPILER={}; wolfSSL as distributed", rustc()?);
    println!("cargo:rustc-link-lib=wolfssl");
    Ok(())
}
