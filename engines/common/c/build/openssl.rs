//! OpenSSL: from source, or the system's.

use std::path::Path;
use std::process::Command;

use crate::{Library, compiler, once, run, variable};

/// Builds OpenSSL from its source with `no-shared` (the engine links it statically), `no-tests` and otherwise the
/// defaults of `Configure`. From 3.0 on adds `no-module`, since the crate lacks the sources of modules.
pub fn openssl(source: &Path) -> Library {
    let compiler = compiler();
    let target = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "linux-x86_64",
        "aarch64" => "linux-aarch64",
        other => panic!("unknown OpenSSL target for {other}"),
    };
    let modules = source.join("providers").exists().then_some("no-module");
    let folder = once("openssl", source, &compiler, |folder| {
        let configure = source.join("Configure");
        run(Command::new("perl")
            .arg(configure)
            .args([target, "no-shared", "no-tests"])
            .args(modules)
            .env("CC", &compiler)
            .current_dir(folder));
        let jobs = format!("-j{}", variable("NUM_JOBS"));
        run(Command::new("make").args([&jobs, "build_libs"]).current_dir(folder));
    });
    Library {
        include: vec![folder.join("include"), source.join("include")],
        archives: Some(folder),
        ..Library::default()
    }
}

/// The system's libssl, as the compiler finds it.
pub fn system() -> Library {
    Library::default()
}
