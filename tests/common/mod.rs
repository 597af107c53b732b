//! What the whole-program tests share: real `weir` processes, raw connections in cleartext and over TLS, an upstream
//! that does what its test says, and certificates for all of them. Nothing here needs a peer program.

#![allow(unreachable_pub)]

mod client;
pub mod engine;
mod experiment;
mod fixture;
pub mod load;
pub mod namespaces;
mod signals;
mod stream;
mod upstream;
mod weir;

pub use client::{Answer, Client};
pub use experiment::{Experiment, is_gone, pid_in};
pub use fixture::{Case, Certificates, MODES, Mode, origin, serve};
pub use signals::{Switch, until_still};
pub use stream::{Ending, Stream};
pub use upstream::{Message, Peer, Upstream};
pub use weir::{Ended, Weir};

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up: no measure of speed, so far more than it ever needs.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Waits until `condition` holds.
///
/// # Panics
/// When it does not within `deadline`; `what` says what was waited for.
pub fn poll_until(deadline: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + deadline;
    while !condition() {
        assert!(Instant::now() < end, "waited {deadline:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A program on the PATH; where it is absent, that is printed and the test has nothing to do.
///
/// # Panics
/// When it is absent and `WEIR_REQUIRE_PEERS` is set: what installs the peers wants to know.
pub fn peer(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    if found.is_none() {
        assert!(std::env::var_os("WEIR_REQUIRE_PEERS").is_none(), "{name} is not on the PATH");
        println!("skipped: {name} is not on the PATH");
    }
    found
}

/// A body whose every byte depends on its place, so that a lost, doubled or moved piece shows.
pub fn pattern(length: usize) -> Vec<u8> {
    // Kept, since many tests want megabytes of it.
    static MADE: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let more = made.len() as u32..length as u32;
    made.extend(more.map(|at| (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(31)) as u8));
    made[..length].to_vec()
}
