//! The files in `deploy/` are valid, and the privileges that they grant suffice for the gateway.

mod certbot;
mod confined;
mod unit;
mod upgrade;

use crate::common::{Certificates, Weir};
use std::path::{Path, PathBuf};

/// The path of a file in `deploy/`.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name).canonicalize().unwrap()
}

/// The system calls that deploy/seccomp.json allows, sorted.
fn allowed() -> Vec<String> {
    let profile: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file("seccomp.json")).unwrap()).unwrap();
    let groups = profile["syscalls"].as_array().unwrap().iter();
    let names = groups.flat_map(|group| group["names"].as_array().unwrap());
    let mut names: Vec<_> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_example_configuration_is_valid() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("weir.toml");
    let text = std::fs::read_to_string(file("weir.toml")).unwrap();
    let text = text
        .replace("/etc/weir/fullchain.pem", &certificates.cert.display().to_string())
        .replace("/etc/weir/privkey.pem", &certificates.key.display().to_string());
    std::fs::write(&config, text).unwrap();
    let ended = Weir::run(&["check", "--config", config.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
