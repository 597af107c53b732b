//! Computes P-256's table of base multiples: the compiler's own evaluation would take eight seconds.

#![allow(dead_code)]

use std::path::Path;
use std::{env, fs};

#[path = "src/p256/base.rs"]
mod base;
#[path = "src/p256/modular.rs"]
mod modular;
#[path = "src/p256/words.rs"]
mod words;

fn main() {
    for file in ["base", "modular", "words"] {
        println!("cargo::rerun-if-changed=src/p256/{file}.rs");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let to = env::var_os("OUT_DIR").expect("Cargo names the directory of a build script's output");
    fs::write(Path::new(&to).join("p256.rs"), format!("{:?}", base::table()))
        .expect("the directory is writable");
}
