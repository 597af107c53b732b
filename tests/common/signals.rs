//! Synchronisation between a test and the threads of its script.

use super::{DEADLINE, poll_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A switch that a test throws and a script waits for.
#[derive(Clone, Default)]
pub struct Switch(Arc<AtomicBool>);

impl Switch {
    /// Releases all waiting threads.
    pub fn throw(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Waits until a test throws the switch.
    pub fn wait(&self) {
        poll_until(DEADLINE, "a switch", || self.0.load(Ordering::SeqCst));
    }
}

/// Waits until `sent` is above 0 and no longer grows: the sender is blocked or done.
pub fn until_still(sent: &AtomicUsize) -> usize {
    let (mut last, mut still) = (0, 0);
    poll_until(DEADLINE, "the sender to be stopped", || {
        let now = sent.load(Ordering::SeqCst);
        still = if now == last && now > 0 { still + 1 } else { 0 };
        last = now;
        still > 150
    });
    last
}

/// The maximum number of bytes in flight between client, gateway and upstream if one of them stops reading: the
/// kernel's buffers for two connections, and 4 MiB for the three processes. A multiple of 64 KiB.
pub fn most_in_flight() -> usize {
    const HELD: usize = 4 << 20;
    let kept = 2 * (largest_buffer("tcp_rmem") + largest_buffer("tcp_wmem"));
    (kept + HELD).next_multiple_of(1 << 16)
}

/// The kernel's maximum size of a socket buffer.
fn largest_buffer(name: &str) -> usize {
    let sizes = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
    sizes.split_whitespace().nth(2).and_then(|size| size.parse().ok()).unwrap()
}
