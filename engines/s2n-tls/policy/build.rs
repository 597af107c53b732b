//! Compiles policy.c against the headers of the linked s2n-tls: they are private, so they are taken from its package.

use std::env;

use engine_build::crate_source;

fn main() {
    println!("cargo:rerun-if-changed=policy.c");
    let library = crate_source("s2n-tls-sys").folder.join("lib");
    let mut build = cc::Build::new();
    // Ignore their warnings.
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

/// aws-lc-sys passes the directory of its headers to its users, in a variable whose name includes the version.
fn aws_lc() -> String {
    env::vars()
        .find_map(|(name, value)| {
            (name.starts_with("DEP_AWS_LC_") && name.ends_with("_INCLUDE")).then_some(value)
        })
        .expect("aws-lc-sys sets its headers' directory")
}
