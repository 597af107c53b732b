//! Tells the program which release it is built of: of hyper, or of pingora, whose target has this build script too.

fn main() {
    let target = std::env::var("CARGO_PKG_NAME").expect("cargo tells the package");
    let name = target.trim_start_matches("weir-target-");
    let lock = std::fs::read_to_string("Cargo.lock").expect("the lock file lies beside the manifest");
    let entry = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split(&entry).nth(1).and_then(|rest| rest.split('"').next());
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rustc-env=RELEASE={name} {}", version.expect("it is locked"));
}
