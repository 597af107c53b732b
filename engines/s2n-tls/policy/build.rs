//! Compiles policy.c against the headers of the very s2n-tls that is linked: they are not public, so cargo is asked
//! where that package lies.

use std::path::PathBuf;
use std::process::Command;
use std::{env, str};

fn main() {
    println!("cargo:rerun-if-changed=policy.c");
    let library = s2n_tls().join("lib");
    let mut build = cc::Build::new();
    // Their warnings are not ours.
    for headers in [library.clone(), library.join("api"), aws_lc()] {
        build.flag("-isystem").flag(headers);
    }
    build
        .file("policy.c")
        .flag("-include")
        .flag(library.join("utils/s2n_prelude.h"))
        .flag("-std=c11")
        .compile("weir-engine-s2n-policy");
}

/// The folder of the package s2n-tls-sys.
fn s2n_tls() -> PathBuf {
    let cargo = env::var("CARGO").expect("cargo says where it is");
    let metadata = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline"])
        .output()
        .expect("cargo can be asked for metadata");
    assert!(metadata.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&metadata.stderr));
    let metadata = str::from_utf8(&metadata.stdout).expect("metadata are text");
    metadata
        .split("\"manifest_path\":\"")
        .filter_map(|rest| rest.split('"').next())
        .map(PathBuf::from)
        .find_map(|manifest| {
            let folder = manifest.parent()?;
            folder.file_name()?.to_str()?.starts_with("s2n-tls-sys").then(|| folder.to_owned())
        })
        .expect("s2n-tls-sys is among the packages")
}

/// aws-lc-sys passes the folder of its headers to its users, with its version in the variable's name.
fn aws_lc() -> PathBuf {
    env::vars()
        .find_map(|(name, value)| {
            (name.starts_with("DEP_AWS_LC_") && name.ends_with("_INCLUDE")).then_some(value)
        })
        .map(PathBuf::from)
        .expect("aws-lc-sys says where its headers are")
}
