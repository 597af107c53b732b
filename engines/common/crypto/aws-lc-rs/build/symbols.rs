//! AWS-LC stores the detected CPU features in a variable without a binding, whose name includes the version.

use std::process::ExitCode;
use std::{env, fs, path};

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=build/symbols.rs");
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Declares the variable by its link name in this version. aws-lc-sys passes its prefix to its users' build scripts in
/// variable names: DEP_AWS_LC_0_47_0_INCLUDE.
fn write() -> Result<(), String> {
    let version = env::vars()
        .find_map(|(name, _)| Some(name.strip_prefix("DEP_AWS_LC_")?.strip_suffix("_INCLUDE")?.to_owned()))
        .ok_or("aws-lc-sys has not said its version")?;
    let out = env::var("OUT_DIR").map_err(|error| format!("OUT_DIR: {error}"))?;
    let code = format!(
        "unsafe extern \"C\" {{\n    #[link_name = \"aws_lc_{version}_OPENSSL_ia32cap_P\"]\n    \
         pub(super) safe static CAPABILITIES: [u32; 4];\n}}\n"
    );
    let file = path::Path::new(&out).join("symbols.rs");
    fs::write(&file, code).map_err(|error| format!("{}: {error}", file.display()))
}
