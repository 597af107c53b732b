//! Compiles policy.c against the headers of the very s2n-tls that is linked: they are not public, so they are taken from
//! where that package lies.

use std::env;

use engine_build::crate_source;

fn main() {
    println!("cargo:rerun-if-changed=policy.c");
    let library = crate_source("s2n-tls-sys").folder.join("lib");
    let mut build = cc::Build::new();
    // Their warnings are not ours.
    for headers in [library.clone(), library.join("api"), aws_lc().into()] {
        build.flag("-isystem").flag(headers);
    }
    build
        .file("policy.c")
        .flag("-include")
        .flag(library.join("utils/s2n_prelude.h"))
        .flag("-std=c11")
        .compile("weir-engine-s2n-policy");
}

/// aws-lc-sys passes the folder of its headers to its users, with its version in the variable's name.
fn aws_lc() -> String {
    env::vars()
        .find_map(|(name, value)| {
            (name.starts_with("DEP_AWS_LC_") && name.ends_with("_INCLUDE")).then_some(value)
        })
        .expect("aws-lc-sys says where its headers are")
}
