//! Sets RELEASE to the release of hyper, or of pingora, whose target shares this build script.

fn main() {
    let target = std::env::var("CARGO_PKG_NAME").expect("cargo sets the package name");
    let name = target.trim_start_matches("weir-target-");
    let lock = std::fs::read_to_string("Cargo.lock").expect("the lock file is next to the manifest");
    let entry = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split(&entry).nth(1).and_then(|rest| rest.split('"').next());
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rustc-env=RELEASE={name} {}", version.expect("the lock file has the crate"));
}
