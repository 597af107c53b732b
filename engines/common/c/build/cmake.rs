//! BoringSSL and AWS-LC: from source with cmake.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Library, compiler, once, run, variable};

/// Builds the targets `crypto` and `ssl` for release, with these extra definitions.
pub fn cmake(source: &Path, definitions: &[&str]) -> Library {
    let compiler = compiler();
    let folder = once("cmake", source, &compiler, |folder| {
        run(Command::new("cmake")
            .arg(format!("-DCMAKE_C_COMPILER={}", compiler.display()))
            .arg(format!("-DCMAKE_CXX_COMPILER={}", cpp_of(&compiler).display()))
            .arg("-DCMAKE_BUILD_TYPE=Release")
            .arg(format!("-DCMAKE_ARCHIVE_OUTPUT_DIRECTORY={}", folder.join("archives").display()))
            .args(definitions)
            .arg(source)
            .current_dir(folder));
        let jobs = variable("NUM_JOBS");
        run(Command::new("cmake")
            .args(["--build", ".", "--target", "crypto", "ssl", "--parallel", &jobs])
            .current_dir(folder));
    });
    Library {
        include: vec![source.join("include")],
        archives: Some(folder.join("archives")),
        cpp: true,
        ..Library::default()
    }
}

/// The C++ compiler that matches a C compiler: an engine's build sets only CC.
fn cpp_of(compiler: &Path) -> PathBuf {
    let name = compiler.file_name().and_then(|name| name.to_str()).unwrap_or("cc");
    let cpp = if let Some(version) = name.strip_prefix("clang") {
        format!("clang++{version}")
    } else if let Some((before, version)) = name.rsplit_once("gcc") {
        format!("{before}g++{version}")
    } else {
        "c++".to_owned()
    };
    compiler.with_file_name(cpp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_c_compiler_has_a_matching_cpp_compiler() {
        for (c, cpp) in [
            ("clang", "clang++"),
            ("/opt/bin/clang-19", "/opt/bin/clang++-19"),
            ("gcc-12", "g++-12"),
            ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++"),
            ("cc", "c++"),
        ] {
            assert_eq!(cpp_of(Path::new(c)), Path::new(cpp));
        }
    }
}
