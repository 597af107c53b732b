//! Tells the program which pingora it is built of.

fn main() {
    let lock = std::fs::read_to_string("Cargo.lock").expect("the lock file lies beside the manifest");
    let version =
        lock.split("name = \"pingora\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rustc-env=PINGORA_VERSION={}", version.expect("pingora is locked"));
}
