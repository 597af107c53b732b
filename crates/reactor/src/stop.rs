//! SIGTERM and SIGINT for every loop.

use crate::mailbox::Sender;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;

/// How a worker is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The first signal: finish what has begun, begin nothing.
    Drain,
    /// A second signal: stop at once.
    Now,
}

/// Sends a message to every loop for each signal: [`Stop::Drain`] for the first, [`Stop::Now`] for every further one.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn forward_signals<M: From<Stop> + Send + 'static>(loops: Vec<Sender<M>>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut stop = Stop::Drain;
        for _ in signals.forever() {
            for sender in &loops {
                sender.send(M::from(stop));
            }
            stop = Stop::Now;
        }
    })?;
    Ok(())
}
