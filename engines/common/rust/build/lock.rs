//! The build script of every Rust engine: the lock file must match engine.toml.
//!
//! It runs in the engine's directory, and passes on the facts that the libraries do not expose at run time.

mod manifest;

use std::env;
use std::process::{Command, ExitCode};

use manifest::{end, output, read, rustc, value};

fn main() -> ExitCode {
    for file in ["Cargo.lock", "engine.toml"] {
        println!("cargo:rerun-if-changed={file}");
    }
    for variable in ["CC", "RUSTC"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    end(check())
}

fn check() -> Result<(), String> {
    let toml = read("engine.toml")?;
    let lock = read("Cargo.lock")?;

    let stack = value(&toml, "stack")?;
    let said = value(&toml, "version")?;
    let locked = version(&lock, stack)?;
    if locked != said {
        return Err(format!("engine.toml needs {stack} {said}, Cargo.lock has {locked}"));
    }

    // A name and a version; the library itself reports the rest, after a comma.
    let crypto = value(&toml, "crypto")?.split(',').next().unwrap_or_default();
    let Some((name, said)) = crypto.split_once(' ') else {
        return Err(format!("engine.toml: crypto: invalid value `{crypto}`: expected a name and a version"));
    };
    let locked_crypto = version(&lock, name)?;
    if locked_crypto != said {
        return Err(format!("engine.toml needs {name} {said}, Cargo.lock has {locked_crypto}"));
    }

    println!("cargo:rustc-env=ENGINE_STACK={stack}");
    println!("cargo:rustc-env=ENGINE_TLS={stack} {locked}");
    println!("cargo:rustc-env=ENGINE_CRYPTO={name} {locked_crypto}");
    println!("cargo:rustc-env=ENGINE_COMPILER={}", compilers(&toml)?);
    Ok(())
}

/// The one version of a package in the lock file.
fn version<'a>(lock: &'a str, name: &str) -> Result<&'a str, String> {
    let header = format!("name = \"{name}\"");
    let mut versions = lock
        .split("[[package]]")
        .filter(|package| package.lines().any(|line| line == header))
        .map(|package| package.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"')));
    match (versions.next().flatten(), versions.next()) {
        (Some(version), None) => Ok(version),
        (None, _) => Err(format!("Cargo.lock: no `{name}`")),
        (Some(_), Some(_)) => Err(format!("Cargo.lock: more than one `{name}`")),
    }
}

/// The C compiler, if engine.toml names any, and rustc.
fn compilers(toml: &str) -> Result<String, String> {
    if toml.lines().any(|line| line.starts_with("compilers")) {
        Ok(format!("{}, {}", c_compiler()?, rustc()?))
    } else {
        rustc()
    }
}

/// The C compiler's identity, from its predefined macros.
fn c_compiler() -> Result<String, String> {
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    let macros = output(command.args(words).args(["-dM", "-E", "-x", "c", "/dev/null"]))?;
    let find = |name: &str| {
        macros.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '))
    };
    let names = if find("__clang__").is_some() {
        ("clang", ["__clang_major__", "__clang_minor__", "__clang_patchlevel__"])
    } else {
        ("gcc", ["__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"])
    };
    let version: Option<Vec<&str>> = names.1.iter().map(|name| find(name)).collect();
    let version = version.ok_or_else(|| format!("{compiler}: unknown version"))?;
    Ok(format!("{} {}", names.0, version.join(".")))
}
