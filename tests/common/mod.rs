//! Code shared by the whole-program tests: real `weir` processes, raw cleartext and TLS connections, an upstream that
//! runs a test's script, and certificates. It needs no other program.

#![allow(unreachable_pub)]

mod client;
mod described;
pub mod engine;
mod experiment;
mod fixture;
pub mod load;
pub mod namespaces;
pub mod sessions;
mod signals;
mod stream;
mod upstream;
mod weir;

pub use client::{Answer, Client};
pub use experiment::{Experiment, all_count, is_gone, pid_in, runs_in};
pub use fixture::{Case, Certificates, MODES, Mode, origin, serve};
pub use signals::{Switch, most_in_flight, until_still};
pub use stream::{Ending, Stream};
pub use upstream::{Message, Peer, Upstream};
pub use weir::{Ended, Weir};

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};
use weir_reactor::limits::raise_open_files;

/// The timeout of every wait in a test: far longer than any step needs, since it measures no speed.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Waits until `condition` holds.
///
/// # Panics
/// If it does not hold within `deadline`; `what` names the condition.
pub fn poll_until(deadline: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + deadline;
    while !condition() {
        assert!(Instant::now() < end, "timed out after {deadline:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Raises this process's limit of open files, once: all tests and their peers share it.
fn enough_files() {
    static RAISED: Once = Once::new();
    RAISED.call_once(|| {
        raise_open_files().unwrap();
    });
}

/// Sets a flag on drop, even in a panic, which stops the threads that poll it.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Writes a `sh` script. A separate process writes it: if this process had the file open for writing, a child that
/// another test forks would inherit the descriptor, and executing the script would fail (ETXTBSY) until that child
/// calls exec.
pub fn script(path: &Path, text: &str) {
    let mut writer = Command::new("/bin/sh");
    writer.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success(), "{}", path.display());
}

/// Copies a program in a separate process, as [`script`] does.
pub fn copy_program(from: impl AsRef<Path>, to: &Path) {
    assert!(Command::new("cp").arg(from.as_ref()).arg(to).status().unwrap().success(), "{}", to.display());
}

/// A program on the PATH; `None` and a line on stdout if it is absent, so that the test is skipped.
///
/// # Panics
/// If it is absent and `WEIR_REQUIRE_PEERS` is set, as on machines that install all peers.
pub fn peer(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    if found.is_none() {
        missing(&format!("{name} is not on the PATH"));
    }
    found
}

/// A file or directory of a package that `.ci/run` installs, by its path in `target/peers`; if absent, as [`peer`].
///
/// # Panics
/// As [`peer`].
pub fn installed_peer(path: &str) -> Option<PathBuf> {
    let found = peers_directory().join(path);
    if !found.exists() {
        missing(&format!("{} is not there; .ci/run installs it", found.display()));
        return None;
    }
    Some(found)
}

/// The directory of packages that `.ci/run` installs from other ecosystems.
pub fn peers_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("peers")
}

fn missing(what: &str) {
    assert!(std::env::var_os("WEIR_REQUIRE_PEERS").is_none(), "{what}");
    println!("skipped: {what}");
}

/// Builds a single-file Go program that needs only the standard library, with these flags; `None` if this machine has
/// no Go.
pub fn go_program(name: &str, source: &Path, flags: &[&str]) -> Option<PathBuf> {
    let go = peer("go")?;
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut build = Command::new(go);
    build.arg("build").args(flags).arg("-o").arg(&program).arg(source);
    let built = build.env("GOTOOLCHAIN", "local").env("GOPROXY", "off").env("GOFLAGS", "").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

/// Builds a Go module with the dependencies that `.ci/run` downloads; `None` if this machine lacks Go or this
/// dependency.
pub fn go_module(name: &str, module: &Path, dependency: &str) -> Option<PathBuf> {
    let go = peer("go")?;
    let cache = peers_directory().join("go");
    installed_peer(&format!("go/cache/download/{dependency}"))?;
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut build = Command::new(go);
    build.arg("build").arg("-C").arg(module).args(["-buildvcs=false", "-o"]).arg(&program);
    build.env("GOTOOLCHAIN", "local").env("GOPROXY", "off").env("GOFLAGS", "").env("GOMODCACHE", cache);
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

/// A body in which each byte depends on its position, so that a lost, duplicated or moved piece is detected.
pub fn pattern(length: usize) -> Vec<u8> {
    // Cached, since many tests need megabytes of it.
    static CACHE: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let more = cache.len() as u32..length as u32;
    cache.extend(more.map(|at| (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(31)) as u8));
    cache[..length].to_vec()
}
