//! Tells the program which hyper it is built of.

fn main() {
    let lock = std::fs::read_to_string("Cargo.lock").expect("the lock file lies beside the manifest");
    let version = lock.split("name = \"hyper\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rustc-env=HYPER_VERSION={}", version.expect("hyper is locked"));
}
